"""What people type, as a question that SQLite's full-text search understands (S4). Total: any text is a question, if
only one that finds nothing. Pure; knows nothing of the file."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from hummingbird.adapters.stores.index_texts import clean, spread
from hummingbird.domain.session_limits import SEARCH_ASKED, SEARCH_CHARS, SEARCH_PREFIX, SEARCH_WORD_CHARS, SEARCH_WORDS

_PIECE = re.compile(r'"([^"]+)"|[^\s"]+')
_WORD = re.compile(r"[^\W_]+")
_HASH = re.compile(r"[0-9a-f]{6,}", re.IGNORECASE)


class Question(NamedTuple):
    """`enough`: how many hits it has to have, at least, so that the next one need not be asked."""

    match: str
    enough: int


class _Piece(NamedTuple):
    """Words that stand side by side: `a/b.py` is three. `begins`: the last of them may go on."""

    text: str
    begins: bool
    quoted: bool

    @property
    def asked(self) -> str:
        return f'"{self.text}"*' if self.begins else f'"{self.text}"'


def questions(query: str, limit: int, place: str = "") -> Iterator[Question]:
    """The strictest first. `place` is a word of the column of that name."""
    pieces, last = _pieces(query)
    exact = [piece.asked for piece in _chosen(pieces)]
    begun = [piece.asked for piece in _chosen([*pieces[:-1], last])] if last else exact
    where = f' AND (place : "{place}")' if place else ""
    if begun != exact:  # to gather all words that begin alike takes long, and where there are many hits none is missing
        yield Question(f"(text : ({' AND '.join(exact)})){where}", limit)
    if begun:
        yield Question(f"(text : ({' AND '.join(begun)})){where}", 1)
    if len(begun) > 1:
        yield Question(f"(text : ({' OR '.join(begun)})){where}", 1)


def _pieces(query: str) -> tuple[list[_Piece], _Piece | None]:
    """And the last of them, if people may not have written it to its end. Quotes are gone from all, so that each can be
    put into some."""
    found: dict[str, _Piece] = {}
    for match in _PIECE.finditer(clean(query[:SEARCH_CHARS])):
        piece = _piece(match[1] or match[0], quoted=match[1] is not None)
        if _WORD.search(piece.text):
            found.pop(piece.text, None)
            found[piece.text] = piece
        if len(found) == SEARCH_WORDS:
            break
    pieces = list(found.values())
    goes_on = pieces and not pieces[-1].quoted and len(_WORD.findall(pieces[-1].text)[-1]) >= SEARCH_PREFIX
    return pieces, pieces[-1]._replace(begins=True) if goes_on else None


def _piece(text: str, *, quoted: bool) -> _Piece:
    goes_on = not quoted and (len(text) > SEARCH_WORD_CHARS or _is_hash(text))
    return _Piece(spread(text[:SEARCH_WORD_CHARS]), goes_on, quoted)


def _is_hash(text: str) -> bool:
    """People write the beginning of it."""
    return _HASH.fullmatch(text) is not None and any(sign.isdigit() for sign in text)


def _chosen(pieces: list[_Piece]) -> list[_Piece]:
    """Each word costs time by how many texts have it; long ones are rare and say most."""
    return sorted(pieces, key=lambda piece: (not piece.quoted, -len(piece.text)))[:SEARCH_ASKED]
