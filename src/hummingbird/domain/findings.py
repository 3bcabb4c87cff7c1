"""What a review found on a line of the diff (W2), and by what it is known again. Posts nothing, knows no forge."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

from hummingbird.domain.limits import FINDING_NEAR_LINES, FINDING_TELLING_CHARS

_WORD = re.compile(r"\w+")
_HALF = 12  # hexadecimal digits of each half of a fingerprint


class Severity(StrEnum):
    """The most serious first."""

    BLOCKER = "blocker"
    MAJOR = "major"
    MINOR = "minor"
    NIT = "nit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`old`: the line is one that the change removes, counted as before it. `suggestion`: lines that the one it is on
    should become, or all from `first_line` on; None if there is none, empty if they should go. `tried`: git applies
    it, so that somebody may do so with a click. `told`: its text as it may be posted, where that differs; by the text
    itself it is known again."""

    path: str
    line: int
    severity: Severity
    text: str
    suggestion: str | None = None
    old: bool = False
    first_line: int = 0
    tried: bool = False
    told: str = ""

    @property
    def shown(self) -> str:
        return self.told or self.text

    @property
    def above(self) -> int:
        """Lines above it that its suggestion replaces too."""
        return max(0, self.line - self.first_line) if self.first_line else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """One that stands in the merge request already. `line`: where it stands now, 0 if nobody knows; `followed`: that
    very line, through every push since. `was`: what its file was called when it was made, if that is another name.
    `dismissed`: a developer said that nothing will be done about it."""

    path: str
    line: int
    fingerprint: str
    resolved: bool = False
    dismissed: bool = False
    followed: bool = False
    old: bool = False
    was: str = ""


def fingerprint(finding: Finding, code: str) -> str:
    """Two halves: which line of code it is on, by what stands there, and what it says, by its words. A push that moves
    the line changes neither."""
    return place_of(finding.path, code) + _said(finding.path, finding.text)


def place_of(path: str, code: str) -> str:
    """The first half: a line of code in a file."""
    return _digest("place", path, " ".join(code.split()))


def telling(code: str) -> bool:
    """Whether a line of code is told from others wherever it stands."""
    return len("".join(code.split())) >= FINDING_TELLING_CHARS


def is_place(fingerprint: str, place: str) -> bool:
    return bool(fingerprint) and fingerprint[:_HALF] == place


def says(finding: Finding, one: Earlier) -> bool:
    """Whether it is said in the same words, whatever the file is called by now."""
    said = one.fingerprint[_HALF:]
    return any(said == _said(path, finding.text) for path in {finding.path, one.was or finding.path})


def near(finding: Finding, one: Earlier) -> bool:
    return one.path == finding.path and one.line > 0 and abs(one.line - finding.line) <= FINDING_NEAR_LINES


def repeated(finding: Finding, code: str, earlier: Iterable[Earlier], *, in_other_words: bool = True) -> Earlier | None:
    """The one that has said it before: the same words about the same place, or in other words, as a model says the same
    each time, anything about the same line of code."""
    here = place_of(finding.path, code)
    known_anywhere = telling(code)
    for one in earlier:
        if one.path == finding.path:
            there = one.followed and (one.line, one.old) == (finding.line, finding.old)
            close = near(finding, one)
            alike = is_place(one.fingerprint, here) and (close or not one.followed)  # its like may stand far away, too
            place = there or alike
            if (says(finding, one) and (close or place)) or (in_other_words and place and (close or known_anywhere)):
                return one
    return None


def _said(path: str, text: str) -> str:
    return _digest("said", path, " ".join(_WORD.findall(text.casefold())))


def _digest(*parts: str) -> str:
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:_HALF]
