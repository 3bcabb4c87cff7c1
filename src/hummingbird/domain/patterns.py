r"""Globs over text that may want to slip past them: one wildcard, no regular expressions, time that grows with the
text alone.

A pattern fits the whole text, not a part of it. `*` stands for any text, also for none and for line breaks; `\*` and
`\\` are a star and a backslash. A pattern is read in two ways. `fits` is for what permits: to the letter, and a star
does not stand for what could turn one command into two, or lead out of a folder. `touches` is for what restricts: it
looks past case, Unicode forms, invisible characters and white space; `may_touch` likewise, for a text with parts that
are not known. Knows nothing of tools.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property

from hummingbird.domain.errors import UsageFault
from hummingbird.domain.limits import PATTERN_CHARS
from hummingbird.domain.text import shortened

# Shell operators, substitutions and escapes; in JSON the backslash stands before every control character.
_TURNING = frozenset(";&|<>()`$\\\x7f") | {chr(code) for code in range(32)}
_TOKEN = re.compile(r"\\(.?)|(\*)|([^\\*]+)", re.DOTALL)


@dataclass(frozen=True)
class Pattern:
    """Raises UsageFault for one that means nothing, saying what to write instead."""

    source: str

    def __post_init__(self) -> None:
        if not self.source or len(self.source) > PATTERN_CHARS:
            raise UsageFault(f"a pattern has 1 to {PATTERN_CHARS} characters, this one has {len(self.source)}")
        _ = self._pieces  # says now what is wrong with it

    @cached_property
    def _pieces(self) -> tuple[str, ...]:
        """What stands between the stars."""
        pieces = [""]
        for escaped, star, letters in _TOKEN.findall(self.source):
            if star:
                pieces.append("")
            elif letters or escaped in ("*", "\\"):
                pieces[-1] += letters or escaped
            else:
                raise UsageFault(
                    rf"in {shortened(self.source, 80)!r} a backslash stands before {escaped!r}; it goes before * and \ "
                    "alone, and regular expressions are not known here"
                )
        return tuple(pieces)

    @cached_property
    def _folded_pieces(self) -> tuple[str, ...]:
        """A piece that has nothing left when it is folded is looked for as it is written."""
        first, *others = self._pieces
        folded = [_folded(first).lstrip() or first, *(_folded(piece) or piece for piece in others)]
        folded[-1] = folded[-1].rstrip() or folded[-1]
        return tuple(folded)

    @property
    def is_exact(self) -> bool:
        """Whether it fits one text alone."""
        return len(self._pieces) == 1

    def fits(self, text: str, also_turning: str = "") -> bool:
        """To the letter. Every turning character of the text must stand in the pattern itself."""
        if not _glob(self._pieces, text):
            return False
        turning = _TURNING.union(also_turning) if also_turning else _TURNING
        literal = "*".join(self._pieces)
        same = [c for c in text if c in turning] == [c for c in literal if c in turning]
        return same and text.count("..") == literal.count("..")

    def touches(self, text: "Disguised") -> bool:
        """Generously: as it is written, or as it looks without its disguise."""
        return _glob(self._pieces, text.written) or _glob(self._folded_pieces, text.folded)

    def may_touch(self, text: str, unknown: str, file_name: str) -> bool:
        """Say whether it could touch the text, depending on what stands in the place of two marks.

        `unknown` may be any text, `file_name` any that does not begin like an option. The first literal part of the
        pattern has to be there up to its first space; all else may be hidden. Without this condition every pattern
        would touch every text with a mark in it.
        """
        number = next((at for at, piece in enumerate(self._folded_pieces) if piece.strip()), None)
        if number is None:
            return False
        lead, following = self._folded_pieces[number], next(filter(None, self._folded_pieces[number + 1 :]), "")
        head = lead[: (lead.find(" ", len(lead) - len(lead.lstrip())) + 1) or len(lead)]
        is_seen = False
        parts = re.split(f"([{unknown}{file_name}])", text)
        for at, (run, mark) in enumerate(zip(parts[::2], parts[1::2], strict=False)):
            known = _folded(run)
            if number == 0:  # nothing may stand before it
                starts = [0] if at == 0 else []
                is_seen = is_seen or (at == 0 and known.startswith(lead))
            else:
                starts = _find_all(head, known, max(len(known) - len(lead) + 1, 0))
                is_seen = is_seen or lead in known
            hidden = [lead[len(known) - start :] for start in starts if _is_beginning(known[start:], head, lead)]
            hidden += [following] if is_seen else []
            if any(mark == unknown or not rest.startswith("-") for rest in hidden):
                return True
        return False


@dataclass(frozen=True)
class Disguised:
    """A text and, once somebody wants to know, what it looks like."""

    written: str

    @cached_property
    def folded(self) -> str:
        return _folded(self.written).strip()


def _glob(pieces: tuple[str, ...], text: str) -> bool:
    if len(pieces) == 1:
        return text == pieces[0]
    first, *between, last = pieces
    at, end = len(first), len(text) - len(last)
    if at > end or not text.startswith(first) or not text.endswith(last):
        return False
    for piece in between:
        found = text.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True


def _find_all(what: str, text: str, at: int) -> list[int]:
    found: list[int] = []
    while (at := text.find(what, at)) >= 0:
        found.append(at)
        at += 1
    return found


def _is_beginning(text: str, head: str, whole: str) -> bool:
    return len(head) <= len(text) < len(whole) and whole.startswith(text)


def _folded(text: str) -> str:
    joined = text.replace("\\\n", "")  # a shell reads the two lines as one
    return re.sub(r"\s+", " ", joined.translate(_FOLDING))


class _Folding(dict[int, str]):
    """Character by character, without putting combining marks in order: CPython takes the square of their number for
    that. They are left out instead, and with them everything that leaves no trace on paper."""

    def __missing__(self, code: int) -> str:
        letters = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", chr(code)).casefold())
        self[code] = "".join(c for c in letters.casefold() if c.isspace() or unicodedata.category(c)[0] not in "MC")
        return self[code]


_FOLDING = _Folding()  # grows to as many characters as it has met: a search has thousands of names judged
