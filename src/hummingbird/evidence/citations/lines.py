"""A quoted line, and what makes two lines the same: everything but what machines put around it.

Terminals' sequences, characters that nobody sees and how much white space there is do not count. Everything else does.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from hummingbird.domain.citation_limits import CITED_LINE_CHARS, CUT_CHARS, TAIL_CHARS
from hummingbird.evidence.logs.cleaning import cleaned

_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?:]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()*+][A-Za-z0-9]|[=>78cDEHMNOZ])")
HIDDEN = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
_NUMBERED = re.compile(r"\s*(\d{1,9})(?:: ?|\t)(.*)", re.DOTALL)
_MARK = r"(?:[Ll]|[Ll]ine )?(\d{1,9})"
_TOLD = re.compile(rf"\s*(?:{_MARK}(?:: ?|\t| ?\| ?)|\*\*{_MARK}(?::\*\*|\*\*:) ?)(.*)", re.DOTALL)
ITEM = r"(?:[-+*]|\d{1,9}[.)])"  # the sign before one, in Markdown
_LISTED = re.compile(rf"{ITEM}[ \t]+(?=\S)")
_PAIRS = frozenset({"``", '""', "''", "“”", "‘’", "«»"})
_ELLIPSIS = re.compile(r"…|\.{3,}|\[(?:…|\.\.\.)\]")
_LEFT_OUT = re.compile(r"[\s\[\](){}<>#*/|:-]*(?:…|\.{2,}|--)?[\s\[\](){}<>#*/|:-]*")


def bare(line: str) -> str:
    """By which lines are compared."""
    if not line.isprintable():
        line = HIDDEN.sub("", _ESCAPES.sub("", line))
    return " ".join(line.split())


def spellings(line: str) -> Iterator[str]:
    """One line of an output in every way that a reader may see it, each `bare`: whole, what was written over it, and
    without what a runner puts before it."""
    seen = set[str]()
    pieces = (line, *line.split("\r")) if "\r" in line else (line,)
    for piece in (*pieces, *_without_prefix(line)):
        if (key := bare(piece)) and key not in seen:
            seen.add(key)
            yield key


def _without_prefix(line: str) -> list[str]:
    if len(line) > CITED_LINE_CHARS:
        return []
    return cleaned(line.encode("utf-8", "replace")).split("\n")


def numbered(line: str) -> tuple[int, str] | None:
    """The number before a line and what stands behind it."""
    found = _NUMBERED.fullmatch(line)
    return (int(found[1]), found[2]) if found else None


def told(line: str) -> tuple[int, str] | None:
    """The same for what a model writes: `L5: `, `5 | ` and `**5:** ` too."""
    found = _TOLD.fullmatch(line)
    return (int(found[1] or found[2]), found[3]) if found else None


def peeled(line: str, *, listed: bool = False) -> str:
    """Without the pair of marks around it, or around what stands behind its number; empty if there is none. `listed`:
    and without the sign of an item before that, for where Markdown shows a list."""
    text = line.strip()
    item = _LISTED.match(text) if listed else None
    text = text[item.end() :] if item else text
    if inner := _inside(text):
        return inner
    found = told(text)
    if found and (inner := _inside(found[1].strip())):
        return f"{found[0]}: {inner}"
    return text if item else ""


def peeled_apart(first: str, last: str) -> tuple[str, str] | None:
    """Two lines without the pair of marks that opens in the one and closes in the other."""
    opening, closing = first.lstrip(), last.rstrip()
    return (opening[1:], closing[:-1]) if opening[:1] + closing[-1:] in _PAIRS else None


def _inside(text: str) -> str:
    return text[1:-1] if len(text) > 2 and text[0] + text[-1] in _PAIRS else ""


def ending(line: str) -> str:
    """By which a bare line, or the tail of one, can be looked up; empty for one that is too short."""
    return line[-TAIL_CHARS:] if len(line) >= TAIL_CHARS else ""


def ends_with(whole: str, tail: str) -> bool:
    """Both bare. What is left out may be a place, a time or a level with its sign, but no word: that might be `not`."""
    before = whole[: -len(tail)]
    return whole.endswith(tail) and before.endswith(" ") and not before[:-1][-1:].isalpha()


def says_nothing(line: str) -> bool:
    """Blank, or a sign that something is left out."""
    return _LEFT_OUT.fullmatch(line) is not None


@dataclass(frozen=True, slots=True)
class Cut:
    """A line that shows where it was cut: what stands before, between and behind the dots."""

    pieces: tuple[str, ...]

    @property
    def head(self) -> str:
        return self.pieces[0]

    @property
    def tail(self) -> str:
        return self.pieces[-1]

    def fits(self, whole: str) -> bool:
        """`whole` is bare."""
        if not whole.startswith(self.head) or not whole.endswith(self.tail):
            return False
        at = len(self.head)
        for piece in self.pieces[1:-1]:
            at = whole.find(piece, at)
            if at < 0:
                return False
            at += len(piece)
        return at + len(self.tail) <= len(whole)


def cut_of(line: str) -> Cut | None:
    """None for a line that shows no cut, or too little besides it to be told from others."""
    ends = [(0, 0), *(found.span() for found in _ELLIPSIS.finditer(line)), (len(line), len(line))]
    if len(ends) < 3 or len(ends) > 8:
        return None
    pieces = tuple(bare(line[one[1] : other[0]]) for one, other in pairwise(ends))
    if len(pieces[0]) + len(pieces[-1]) < CUT_CHARS:
        return None
    return Cut(pieces)
