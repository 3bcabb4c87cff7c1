"""Define review findings on lines of a diff, and recognise findings that were posted before.

The module also recognises replies that dismiss a finding, and applies suggested edits to a file's content the way
GitLab does when a person clicks on a suggestion.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

from hummingbird.core.limits import DISMISSAL_CHARS, FINDING_NEAR_LINES, FINDING_TELLING_CHARS
from hummingbird.core.text import replace_surrogates

_WORD = re.compile(r"\w+")
_HALF_DIGITS = 12  # hexadecimal digits of each half of a fingerprint


class Severity(StrEnum):
    """How serious a finding is, the most serious first."""

    BLOCKER = "blocker"
    MAJOR = "major"
    MINOR = "minor"
    NIT = "nit"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewFinding:
    """One remark of a review about a line.

    `old`: the change removes the line, and `line` counts as before the change. `suggestion` holds the lines that should
    replace this line, or all lines from `first_line` on; None if there is no suggestion, empty to delete them.
    `applies_cleanly`: git applies the suggestion, so that a person can do so with a click. `posted_text` is the text to
    post, where it differs from `text`; fingerprints use `text`.
    """

    path: str
    line: int
    severity: Severity
    text: str
    suggestion: str | None = None
    old: bool = False
    first_line: int = 0
    applies_cleanly: bool = False
    posted_text: str = ""

    @property
    def display_text(self) -> str:
        """Return the text to post."""
        return self.posted_text or self.text

    @property
    def lines_above(self) -> int:
        """Return how many lines above its own line the suggestion replaces too."""
        return max(0, self.line - self.first_line) if self.first_line else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PostedFinding:
    """A finding that is in the merge request already.

    `line` is where it is now, 0 if unknown; `line_is_tracked`: that very line was followed through every push since.
    `original_path` is the file's name when the finding was made, if it was another. `dismissed`: a developer replied
    that nothing will be done about it.
    """

    path: str
    line: int
    fingerprint: str
    resolved: bool = False
    dismissed: bool = False
    line_is_tracked: bool = False
    old: bool = False
    original_path: str = ""


def finding_fingerprint(finding: ReviewFinding, code: str) -> str:
    """Return a fingerprint of two halves: the line of code it is on, and the words it says.

    A push that only moves the line changes neither half.
    """
    return line_fingerprint(finding.path, code) + _text_fingerprint(finding.path, finding.text)


def line_fingerprint(path: str, code: str) -> str:
    """Return the first half of a fingerprint: a line of code in a file."""
    return _digest("place", path, " ".join(code.split()))


def is_distinctive(code: str) -> bool:
    """Tell whether a line of code is long enough to be recognised wherever it is."""
    return len("".join(code.split())) >= FINDING_TELLING_CHARS


def has_line_fingerprint(fingerprint: str, place: str) -> bool:
    """Tell whether a finding's fingerprint is about this line of code."""
    return bool(fingerprint) and fingerprint[:_HALF_DIGITS] == place


def has_same_text(finding: ReviewFinding, one: PostedFinding) -> bool:
    """Tell whether both findings use the same words, even if the file was renamed since."""
    said = one.fingerprint[_HALF_DIGITS:]
    return any(
        said == _text_fingerprint(path, finding.text) for path in {finding.path, one.original_path or finding.path}
    )


def is_near(finding: ReviewFinding, one: PostedFinding) -> bool:
    """Tell whether both findings are within a few lines of each other."""
    return one.path == finding.path and one.line > 0 and abs(one.line - finding.line) <= FINDING_NEAR_LINES


def find_repeated(
    finding: ReviewFinding, code: str, earlier: Iterable[PostedFinding], *, in_other_words: bool = True
) -> PostedFinding | None:
    """Return the earlier finding that already says the same, or None.

    It has the same words about the same place; or, with `in_other_words`, any words about the same line of code,
    because a model words the same finding differently each time.
    """
    here = line_fingerprint(finding.path, code)
    known_anywhere = is_distinctive(code)
    for one in earlier:
        if one.path == finding.path:
            there = one.line_is_tracked and (one.line, one.old) == (finding.line, finding.old)
            close = is_near(finding, one)
            alike = has_line_fingerprint(one.fingerprint, here) and (
                close or not one.line_is_tracked
            )  # a similar line may be far away, too
            place = there or alike
            if (has_same_text(finding, one) and (close or place)) or (
                in_other_words and place and (close or known_anywhere)
            ):
                return one
    return None


def _text_fingerprint(path: str, text: str) -> str:
    return _digest("said", path, " ".join(_WORD.findall(text.casefold())))


def _digest(*parts: str) -> str:
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:_HALF_DIGITS]


_BEFORE = r"(?:(?:ok|okay|sorry|no|nope|yes|thanks|hm)[,.!:]?\s+)?"
# The subject must be we or I: "it won't fix it" is about something else.
_REFUSED_ACTION = (
    r"(?:(?:we|i)\s+)?(?:wont\s?fix|won't\s?fix|won'?t\s+(?:do|change)|will\s+not\s+(?:fix|do|change)|dismiss(?:ed)?)"
)
_REFUSAL = r"(?:(?:we're|i'm|we\s+are|i\s+am)\s+)?not\s+going\s+to\s+(?:fix|change)"
_OF_IT = (
    r"(?:(?:this|that|it|these|those)(?:'s|\s+is|\s+are)?\s+)?(?:(?:a|an|closing\s+as|marking\s+as|marked\s+as)\s+)?"
)
_STATES = (
    r"(?:won't|will\s+not)\s+be\s+fixed",
    r"by\s+design",
    r"(?:(?:works|working|behaves|behaving)\s+)?as\s+(?:designed|intended|expected)",
    r"intended|intentional|deliberate|on\s+purpose",
    r"(?:the\s+)?(?:expected|intended)\s+behaviou?r",
    r"false[\s-]positives?",
    r"not\s+(?:a|an)\s+(?:bug|defect|problem|issue|error)",
)
_OBJECT = r"(?:\s+(?:this|that|it|these|those|here|now|for\s+now|in\s+this\s+(?:mr|merge\s+request|change)))*"
_REASON = r"(?:\s*[.!,:;()–—-].*|\s*\n.*|\s+(?:because|since|as|due\s+to|for|see)\b.*|\s*)"
_DISMISSAL = re.compile(
    rf"{_BEFORE}(?:{_REFUSED_ACTION}|{_REFUSAL}|{_OF_IT}(?:{'|'.join(_STATES)})){_OBJECT}{_REASON}", re.DOTALL
)
# A reply that promises a fix, or takes the phrase back, does not dismiss.
_RETRACTION = re.compile(
    r"\b(?:fixing|fixed|fix\s+coming|but|actually|breaks?|(?:will|i'll|we'll|(?<!not )going\s+to)\s+fix)\b"
)
_AROUND = " \t\r\n*_`~\"'"
_APOSTROPHES = str.maketrans({"\u2019": "'", "\u2018": "'", "\u00b4": "'", "`": "'"})


def is_dismissal(text: str) -> bool:
    """Tell whether a reply says that nothing will be done about a finding: "won't fix", "by design", "false positive".

    Only a short text that begins with such a phrase counts, so that neither a question nor a longer story does. The
    caller checks who may dismiss.
    """
    said = replace_surrogates(text).translate(_APOSTROPHES).casefold().strip(_AROUND)
    if len(said) > DISMISSAL_CHARS or "?" in said or _is_retracted(said):
        return False
    lines = (" ".join(line.replace("*", "").split()) for line in said.split("\n"))
    return _DISMISSAL.fullmatch("\n".join(lines)) is not None


def _is_retracted(said: str) -> bool:
    return _RETRACTION.search(said.replace("be fixed", "")) is not None


# Suggested edits work on bytes: whether a file is text is checked first.

_LF, _CRLF = b"\n", b"\r\n"


@dataclass(frozen=True, slots=True, order=True)
class SuggestedEdit:
    """Replace the lines `first` to `last`, counted from 1, by `text`; empty text deletes them."""

    first: int
    last: int
    text: str

    def overlaps(self, other: "SuggestedEdit") -> bool:
        """Tell whether both edits touch the same line."""
        return self.first <= other.last and other.first <= self.last


def split_lines(content: bytes) -> list[bytes]:
    """Split content into lines with their line ends; only a line feed ends a line, as for git."""
    lines = [line + _LF for line in content.split(_LF)]
    lines[-1] = lines[-1].removesuffix(_LF)
    return lines if lines[-1] else lines[:-1]


def strip_line_end(line: bytes) -> bytes:
    """Remove the line end."""
    return line.removesuffix(_LF).removesuffix(b"\r")


def file_problem(content: bytes) -> str:
    """Say why suggestions for this file cannot be checked; empty if they can."""
    if b"\0" in content:
        return "the file is not text"
    try:
        content.decode()
    except UnicodeDecodeError:
        return "the file is not in UTF-8"
    return ""


def edit_problem(content: bytes, change: SuggestedEdit) -> str:
    """Say why a click would not do what is meant, as the end of a sentence; empty if it would.

    GitLab inserts the lines of a suggestion with line feeds between them, and ends the last one like the last line that
    it replaces. A suggestion of nothing but blanks deletes the lines. So some files and suggestions do not go together.
    """
    lines = split_lines(content)
    if not 1 <= change.first <= change.last <= len(lines):
        return f"the file has {len(lines)} lines at that commit"
    replaced, wanted = lines[change.first - 1 : change.last], change.text.split("\n")
    if "\r" in change.text or any(b"\r" in strip_line_end(line) for line in replaced):
        return "there are carriage returns amidst its lines"
    if change.text and not (wanted[0].strip() and wanted[-1].strip()):
        return "it begins or ends with an empty line, which GitLab does not keep"
    if len(wanted) > 1 and replaced[-1].endswith(_CRLF):
        return "the file's lines end in CR LF, and GitLab would put several lines in with LF alone"
    if apply_edits(content, [change]) == content:
        return "it changes nothing"
    return ""


def apply_edits(content: bytes, changes: Iterable[SuggestedEdit]) -> bytes:
    """Return the content with all edits, which must not overlap."""
    lines = split_lines(content)
    for change in sorted(changes, reverse=True):
        lines[change.first - 1 : change.last] = _replacement_lines(lines, change)
    return b"".join(lines)


def build_patch(content: bytes, changes: Sequence[SuggestedEdit], name: str) -> bytes:
    """Return a patch for git with one hunk for the whole file, so that it cannot be applied elsewhere."""
    lines, at, body = split_lines(content), 0, list[bytes]()
    before, after = len(lines), len(lines)
    for change in sorted(changes):
        old, new = lines[change.first - 1 : change.last], _replacement_lines(lines, change)
        body += [b" " + line for line in lines[at : change.first - 1]]
        body += [b"-" + line for line in old] + [b"+" + line for line in new]
        after, at = after + len(new) - len(old), change.last
    body += [b" " + line for line in lines[at:]]
    head = f"--- a/{name}\n+++ b/{name}\n@@ -{_hunk_range(before)} +{_hunk_range(after)} @@\n".encode()
    return head + b"".join(line if line.endswith(_LF) else line + b"\n\\ No newline at end of file\n" for line in body)


def _hunk_range(lines: int) -> str:
    return f"1,{lines}" if lines else "0,0"


def _replacement_lines(lines: Sequence[bytes], change: SuggestedEdit) -> list[bytes]:
    if not change.text:
        return []
    last = lines[change.last - 1]
    return split_lines(change.text.encode() + last[len(strip_line_end(last)) :])
