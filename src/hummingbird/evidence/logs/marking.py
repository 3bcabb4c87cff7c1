"""Which sorts of line each line is: a set of bits per line, from the table of cues.

All literals are looked for at once in all lines; patterns are tried only where their literal stands. Knows no weights.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate

from ahocorasick_rs import BytesAhoCorasick, Implementation

from hummingbird.evidence.logs.bits import bit
from hummingbird.evidence.logs.cues import CUES, Cue, Sort
from hummingbird.evidence.logs.shapes import LOUD, by_shape

MARKED_CHARS = 200  # of a line; what stands behind is rarely what it is about
_LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789_")


class _Book:
    """The automaton, and the cues that each of its literals stands for."""

    def __init__(self, cues: Sequence[Cue]) -> None:
        entries: dict[bytes, list[tuple[int, Callable[[str], object] | None, bool]]] = {}
        for cue in cues:
            test = None if cue.pattern is None else cue.pattern.match if cue.begins else cue.pattern.search
            entries.setdefault(cue.literal.encode(), []).append((1 << cue.sort, test, cue.word))
        self.entries = list(entries.values())
        self.automaton = BytesAhoCorasick(list(entries), implementation=Implementation.DFA)


@cache
def _book() -> _Book:
    return _Book(CUES)


def marks(texts: Sequence[str], raws: Sequence[bytes]) -> list[int]:
    """For each line its bits."""
    beginnings = [text[:MARKED_CHARS] for text in texts]
    found = [by_shape(text, raw) for text, raw in zip(beginnings, raws, strict=True)]
    lowered = [text.lower().encode("utf-8", "replace") for text in beginnings]
    ends = list(accumulate(len(line) + 1 for line in lowered))
    whole = b"\n".join(lowered)
    book = _book()
    at, end = 0, ends[0] if ends else 0
    for which, start, stop in book.automaton.find_matches_as_indexes(whole, overlapping=True):
        while stop > end:
            at += 1
            end = ends[at]
        mark = found[at]
        for sort, test, word in book.entries[which]:
            if mark & sort or (word and not _alone(whole, start, stop)):
                continue
            if test is None or test(beginnings[at]):
                mark |= sort
        found[at] = mark
    return [_settled(mark, text) if mark & _UNSETTLED else mark for mark, text in zip(found, beginnings, strict=True)]


_CALM = bit(Sort.SKIPPED, Sort.ZERO, Sort.PASSED, Sort.WARNING)
_WORDS = bit(Sort.ERROR, Sort.FAIL, Sort.ABORT)
_UNSETTLED = _CALM | _WORDS
_SIGNS = bit(
    Sort.HEAD, Sort.COMPILER, Sort.LINT, Sort.SETTING, Sort.THROWN, Sort.ERROR, Sort.FAIL, Sort.NEGATION, Sort.ABORT,
    Sort.LOUD, Sort.DETAIL, Sort.SUMMARY, Sort.TIMEOUT, Sort.NETWORK, Sort.MEMORY,
)  # fmt: skip
_WARNED = bit(Sort.COMPILER, Sort.THROWN, Sort.NEGATION, Sort.HEAD)
_LOUD = bit(Sort.RED, Sort.LOUD, Sort.ERROR, Sort.FAIL)
_SHAPES = bit(Sort.HEAD, Sort.COMPILER, Sort.LINT, Sort.SETTING, Sort.THROWN, Sort.NETWORK, Sort.MEMORY, Sort.TIMEOUT)
_RESULTS = bit(Sort.SKIPPED, Sort.PASSED)
_RESULT = re.compile(
    r"^\s*(?:ok\b|PASS(?:ED)?\b|SKIP(?:PED)?\b|XFAIL\b|[✓✔√])|\.\.\. ?(?:ok|OK|done|passed|skipped|ignored)\b"
    r"|(?<!['\"`])\b(?:SKIPPED|PASSED|XFAIL|OK)\b(?!['\"`])|: (?:ok|yes|passed|skipped)$"
)
_SOME = re.compile(r"(?i)\b[1-9]\d* (?:\w+ )?(?:fail|error|broken)|(?:failures?|errors?|failed|failing)[:=] ?[1-9]")


def _settled(mark: int, text: str) -> int:
    if mark & _WORDS and LOUD.search(text):
        mark |= bit(Sort.LOUD)
    return _calmed(mark, text) if mark & _CALM else mark


def _calmed(mark: int, text: str) -> int:
    """A test that was skipped or expected to fail is no failure, whatever it is called; nor are "0 errors". Elsewhere
    than where results stand, "done" and "skip" are words like others, and an error that has them is an error."""
    if mark & bit(Sort.SUMMARY) and (not mark & bit(Sort.ZERO) or _SOME.search(text)):
        return mark
    if mark & bit(Sort.ZERO) or (mark & _RESULTS and _RESULT.search(text)):
        return mark & ~_SIGNS
    if mark & _RESULTS:
        mark = mark & ~_RESULTS if mark & (_SHAPES | _LOUD) else mark & ~_SIGNS
    if mark & bit(Sort.WARNING) and not mark & _LOUD:
        return mark & ~_WARNED
    return mark


def _alone(whole: bytes, start: int, stop: int) -> bool:
    return (start == 0 or whole[start - 1] not in _LETTERS) and (stop == len(whole) or whole[stop] not in _LETTERS)
