"""Masking while the bytes come (T7): what is shown does not depend on how a text was cut into chunks.

A stream shows what cannot belong to a secret any more and holds the rest back until it is told more; of a secret it has
recognised it remembers only how it goes on. Everything here is about bytes: UTF-8 that is cut anywhere and bytes that
are no text at all pass as they are. Which texts are secret it is told by its rules, and asks nobody else.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from hummingbird.domain.limits import SECRET_SPREAD_BYTES
from hummingbird.domain.masking_views import CONTEXT_BYTES

MASK_BYTES = b"[masked]"
HEAD_BYTES = 4  # by which the beginnings of known texts are told apart
_BLOCK = 64 * 1024  # so that what is noted down about one block stays small, however long a chunk is
NEAR = 128  # whether a place is fresh decides only about beginnings that are shorter than this

_MARK_BYTES = 16  # of a value that is looked for; the automaton grows with it
_GAP = re.compile(rb"\s+")


class Rest(Protocol):
    """How a secret goes on whose beginning has been recognised."""

    def passed(self, text: bytes, at: int) -> tuple[int, bool]:
        """Up to where nothing is shown, and whether that was all of it; if not, what is behind is wanted again."""
        ...


class Found(NamedTuple):
    end: int
    shown: bytes  # in place of what was found
    rest: Rest | None = None


class Rule:
    marks: tuple[bytes, ...] = ()  # one of them begins what it finds

    def found(self, text: bytes, start: int, *, fresh: bool) -> Found | None:
        """`fresh`: what stands before `start` has been masked, or there is nothing before it."""
        raise NotImplementedError


class Rules(Protocol):
    """What is a secret, and what could become one. Rules have numbers; of two at one place the lower one counts."""

    def starts(self, text: bytes, at: int) -> Sequence[tuple[int, int, int]]:
        """Sorted: every place from `at` on where a rule may find something, the number of the rule, and where that
        ends if it has been found already, or 0."""
        ...

    def found(self, number: int, text: bytes, start: int, *, fresh: bool) -> Found | None: ...

    def begun(self, text: bytes, at: int, *, fresh: bool) -> int:
        """The first place from `at` on where something could begin that this text is too short to tell; or its end."""
        ...


class MaskedStream:
    """One text, in chunks. What comes out, joined, is the text that masking it in one piece gives."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._kept = b""  # what is held back, behind the last bytes that were not
        self._at = 0
        self._fresh = True
        self._rest: Rest | None = None

    @property
    def held(self) -> int:
        """How many bytes wait for what comes behind them."""
        return len(self._kept) - self._at

    def feed(self, chunk: bytes) -> bytes:
        return b"".join(
            self._shown(chunk[start : start + _BLOCK], last=False) for start in range(0, len(chunk), _BLOCK)
        )

    def end(self, chunk: bytes = b"") -> bytes:
        """What was held back. The last chunk may be given here; there is nothing to feed afterwards."""
        whole = len(chunk) // _BLOCK * _BLOCK
        return self.feed(chunk[:whole]) + self._shown(chunk[whole:], last=True)

    def _shown(self, block: bytes, *, last: bool) -> bytes:
        text = self._kept + block
        if self._rest is None:
            return self._walk(text, self._at, last=last)
        at, over = self._rest.passed(text, self._at)
        if not over:
            return self._keep(text, at, fresh=True)
        self._rest, self._fresh = None, True
        return self._walk(text, at, last=last)

    def _walk(self, text: bytes, at: int, *, last: bool) -> bytes:
        """From secret to secret. Where something may have begun, no decision is made before its end is known."""
        shown: list[bytes] = []
        fresh = self._fresh
        begun = len(text) if last else self._rules.begun(text, at, fresh=fresh)
        for start, number, end in self._rules.starts(text, at) if begun > at else ():
            if start >= begun:
                break
            if start < at:
                continue
            found = Found(end, MASK_BYTES) if end else None
            found = found or self._rules.found(number, text, start, fresh=fresh and start == at)
            if found is None:
                continue
            shown += (text[at:start], found.shown)
            at, over = found.rest.passed(text, found.end) if found.rest else (found.end, True)
            if not over:
                self._rest = found.rest
                return b"".join(shown) + self._keep(text, at, fresh=True)
            fresh = True
            if not last and (begun < at or len(text) - at < NEAR):
                begun = self._rules.begun(text, at, fresh=True)
        shown.append(text[at:begun])
        return b"".join(shown) + self._keep(text, begun, fresh=fresh and begun == at)

    def _keep(self, text: bytes, at: int, *, fresh: bool) -> bytes:
        self._kept, self._at, self._fresh = text[max(at - CONTEXT_BYTES, 0) :], min(at, CONTEXT_BYTES), fresh
        return b""


class KnownText(Rule):
    """White space inside may have changed: sentences fold it in what they quote, others indent it."""

    def __init__(self, known: bytes) -> None:
        self._words = known.split()
        self.marks = (self._words[0][:_MARK_BYTES],)
        self._squeezed = b" ".join(self._words)
        opening = known[known.rfind(b"[") :]  # of a mask, into which it must not reach
        self._unless = MASK_BYTES[len(opening) :] if MASK_BYTES.startswith(opening) else b""
        self.reach = len(known) + (SECRET_SPREAD_BYTES if len(self._words) > 1 else 0)

    def found(self, text: bytes, start: int, *, fresh: bool) -> Found | None:
        end, whole = self._followed(text, start)
        if end <= start + self.reach:
            whole = whole and not (self._unless and text.startswith(self._unless, end))
            return Found(end, MASK_BYTES) if whole else None
        beginning = text[start : start + self.reach + 1]
        missing = self._missing(beginning, self._squeezed) if len(beginning) > self.reach else b""
        return Found(start + len(beginning), MASK_BYTES, _Torn(missing)) if missing else None

    def begun(self, text: bytes, start: int) -> bool:
        beginning = text[start:]
        at_most = self.reach + len(self._unless)
        return len(beginning) <= at_most and self._missing(beginning, self._squeezed + self._unless) != b""

    def first_begun(self, text: bytes, at: int) -> int:
        at = max(at, len(text) - self.reach - len(self._unless))
        head = self.marks[0][:HEAD_BYTES]
        place = text.find(head, at)
        while place >= 0 and not self.begun(text, place):
            place = text.find(head, place + 1)
        if place >= 0:
            return place
        cut = (len(text) - length for length in range(len(head) - 1, 0, -1) if text.endswith(head[:length]))
        return next((place for place in cut if place >= at), len(text))

    def _followed(self, text: bytes, at: int) -> tuple[int, bool]:
        """Where it ends, and True; or a place before which text and words differ, and False."""
        for number, word in enumerate(self._words):
            gap = _GAP.match(text, at) if number else None
            if number and not gap:
                return at + 1, False
            at = (gap.end() if gap else at) + len(word)
            if not text.startswith(word, at - len(word)):
                return at, False
        return at, True

    def _missing(self, beginning: bytes, squeezed: bytes) -> bytes:
        """What is to follow, if this is how it begins."""
        if not squeezed.startswith(_GAP.sub(b" ", beginning[:NEAR])):
            return b""
        beginning = _GAP.sub(b" ", beginning)
        return squeezed[len(beginning) :] if squeezed.startswith(beginning) else b""


class _Torn:
    """What is left of a value that is spread too far to be held: its other words, and the white space before them."""

    def __init__(self, missing: bytes) -> None:
        self._words = missing.split()

    def passed(self, text: bytes, at: int) -> tuple[int, bool]:
        while self._words:
            gap = _GAP.match(text, at)
            at = gap.end() if gap else at
            word = self._words[0]
            if len(text) - at < len(word) and word.startswith(text[at:]):
                return at, False
            if not text.startswith(word, at):
                break
            at += len(self._words.pop(0))
        return at, True


class Mark(NamedTuple):
    """Some letters that cannot be missing, and the number of the rule."""

    letters: bytes
    number: int


class Lookout:
    """Finds the places where marks stand, all of them in one pass."""

    def __init__(self, marks: Iterable[Mark]) -> None:
        from ahocorasick_rs import BytesAhoCorasick  # noqa: PLC0415 - a compiled library, loaded with the first secrets

        self._numbers: dict[bytes, list[int]] = {}
        for mark in marks:
            self._numbers.setdefault(mark.letters, []).append(mark.number)
        self._letters = list(self._numbers)
        self._automaton = BytesAhoCorasick(self._letters)

    def places(self, text: bytes, at: int) -> Iterator[tuple[int, int]]:
        """From `at` on, in the order in which they end: where a mark stands, and its number."""
        found = self._automaton.find_matches_as_indexes(memoryview(text)[at:], overlapping=True)
        for which, start, _ in found:
            for number in self._numbers[self._letters[which]]:
                yield at + start, number
