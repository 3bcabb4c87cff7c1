"""A short name for a failure that its next run has too (V6).

Of a region's lines those are kept that say what went wrong, as a set of normalised lines: a line more or less at the
edge, or another order, changes nothing. Knows nothing of how regions are found, nor of who remembers fingerprints.
"""

import re
from collections.abc import Iterator, Sequence
from enum import Enum, auto
from hashlib import blake2b

from hummingbird.domain.limits import FINGERPRINT_LINES
from hummingbird.evidence.words import cleaned, words

_RULES = b"words 1"  # part of every fingerprint: other rules make other fingerprints, never wrong matches
_ENOUGH = 3  # telling words; fewer, and the lines around are needed to tell failures apart

# In small letters and each with a first letter of its own: so `re` skips to where one may begin, 5 times as fast.
_WRONG = re.compile(
    r"error|exception|expect|fail|fatal|panic|abort|assert|cannot|can't|could ?n[o']t|conflict|unable|undefined"
    r"|unresolved|unknown|unsupported|not found|not ok|not installed|no such|missing|mismatch|denied|refused|required"
    r"|timed? ?out|throw|killed|no [a-z.-]+ found|not available|unavailable|segmentation|violation|invalid|crash"
    r"|duplicate|✖|✗|\[[45][0-9][0-9]\]"
)
_HEADING = re.compile(r"\s*[0-9]+\) |[\w./-]+\.\w+[:(][0-9]")  # `1) name of a test`, `file.c:12: message`
_FRAME = re.compile(
    r"\s*(?:at\s+\S|File \"|#\s*\d+[\s:]|\d+:\s+0x|from \S+:\d+:in|# \.?/|\.\.\. \d+ more|goroutine \d|\S+:\d+ \+0x"
    r"|\[C\]: in |\[string |\S+:\d+:in [`'])"
)
# What tools add once something has failed, whatever it was: another run of the same failure may end a line earlier.
_AFTERMATH = re.compile(
    r"travis_(?:time|fold):|\] error [0-9]|recipe for target |-> \[help|see (?:the )?full |full log|complete log"
    r"|exited with|command failed|failed with (?:exit|status)|completed with exit|job failed|build failed|aborted!"
    r"|re-run maven|^> task \S+ failed|execution failed for task|build failed with an exception|build failure$"
    r"|✖ [0-9]+ problems?\b"
    r"|there (?:are|were) (?:test failures|failing tests)|please refer to \S+ for the individual|^\W*what went wrong:"
)
_CHATTER = re.compile(r"\W*(?:info|debug|trace|notice)\b")
_ITEM = re.compile(r"\s+\S|[-*•] ")
_COMMONPLACE_WORDS = (
    "a above all an and are as at be but by can code command completed debug details did do does elapsed err error "
    "errors exit exited expected fail failed failing failure failures false fatal for found from got has have if in "
    "info is it java job lang line log make more no not npm null of on or process returned run see skipped status step "
    "test tests that the there this time to true was warning warnings were with"
)
_COMMONPLACE = frozenset(_COMMONPLACE_WORDS.split())


class _Weight(Enum):
    WRONG = auto()  # says what went wrong
    PLAIN = auto()
    IDLE = auto()  # commonplace, or what any failure drags along


def fingerprint(lines: Sequence[str]) -> str:
    """Sixteen hexadecimal digits, or nothing at all when not one line has a word to be recognised by."""
    chosen = _identifying(lines[:FINGERPRINT_LINES])
    if not chosen:
        return ""
    return blake2b("\n".join(sorted(chosen)).encode("utf-8", "replace"), digest_size=8, person=_RULES).hexdigest()


def tells(lines: Sequence[str]) -> bool:
    """Whether they say what failed, and not only that something did: by that alone two merge requests would be taken
    for one, though each broke another test."""
    return any(weight is not _Weight.IDLE for weight, _ in _weighed(lines[:FINGERPRINT_LINES]))


def normalised(line: str) -> str:
    """The words of a line that its next run has too, with a space between them."""
    return " ".join(words(cleaned(line)))


def _identifying(lines: Sequence[str]) -> set[str]:
    """The lines that say what went wrong; if those say too little, all that say something."""
    found: dict[_Weight, set[str]] = {weight: set() for weight in _Weight}
    told: set[str] = set()
    for weight, said in _weighed(lines):
        found[weight].add(" ".join(said))
        if weight is _Weight.WRONG and len(told) < _ENOUGH:
            told.update(filter(_tells, said))
    if len(told) >= _ENOUGH:
        return found[_Weight.WRONG]
    return found[_Weight.WRONG] | found[_Weight.PLAIN] or found[_Weight.IDLE]


def _weighed(lines: Sequence[str]) -> Iterator[tuple[_Weight, list[str]]]:
    listing = False  # an error ended with a colon: what is indented below belongs to it
    for line in map(cleaned, lines):
        if not (said := words(line)):
            continue
        weight = _weight(line, said)
        if weight is _Weight.PLAIN and listing and _ITEM.match(line):
            weight = _Weight.WRONG
        else:
            listing = weight is _Weight.WRONG and line.rstrip().endswith(":")
        yield weight, said


def _weight(line: str, said: list[str]) -> _Weight:
    if not any(map(_tells, said)):
        return _Weight.IDLE
    low = line.lower()
    if _AFTERMATH.search(low):
        return _Weight.IDLE
    if (_WRONG.search(low) or _HEADING.match(line)) and not _FRAME.match(line):
        return _Weight.WRONG
    return _Weight.IDLE if _CHATTER.match(low) else _Weight.PLAIN


def _tells(word: str) -> bool:
    """The type of an error alone does not say which failure it is."""
    return word.lower() not in _COMMONPLACE and not word.endswith(("Error", "Exception"))
