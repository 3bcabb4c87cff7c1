"""How a session enters the index (S4): what of it is new, and that it stands there once. Its tables are those of
`index`, which knows how they are read."""

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from typing import NamedTuple

from hummingbird.adapters.stores.index_texts import Mask, indexed
from hummingbird.domain.journal import Entry, dump
from hummingbird.domain.session_words import words_of
from hummingbird.domain.sessions import Summary, dump_summary

_KNOWN = "SELECT id, place, entries, first, last FROM sessions WHERE session = ?"
_BEGIN = "INSERT INTO sessions VALUES (NULL, ?, '', '', 0, 0, x'', x'', '', x'')"
_RENEW = """UPDATE sessions SET stamp = ?, place = ?, changed_at = ?, entries = ?, first = ?, last = ?, told = ?,
    summary = ? WHERE id = ?"""
_LAST = "SELECT max(id) FROM texts WHERE id >= ? AND id < ?"
_ADD = "INSERT INTO texts VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_ADD_WORDS = "INSERT INTO words (rowid, text, place) SELECT id, text, place FROM texts WHERE session = ? AND number > ?"
# before its texts go, for it finds its words through them
_DROP_WORDS = """INSERT INTO words (words, rowid, text, place)
    SELECT 'delete', id, text, place FROM texts WHERE session = ?"""
_TEXTS_BITS = 20  # of a text's id, for its place within its session; the index grows with them


class Known(NamedTuple):
    """What is there of a session. `first` and `last` tell the entries that it begins and ends with from others."""

    id: int = 0
    place: str = ""
    entries: int = 0
    first: bytes = b""
    last: bytes = b""


class _Row(NamedTuple):
    number: int
    part: int
    at: float
    who: str
    place: str
    text: str


def known(index: sqlite3.Connection, session_id: str) -> Known:
    row = index.execute(_KNOWN, (session_id,)).fetchone()
    return Known(*row) if row else Known()


def first_text(session: int) -> int:
    """The texts of a session have ids side by side, so that a search can pass over those of a very long one."""
    return session << _TEXTS_BITS


def session_of(text: int) -> int:
    return text >> _TEXTS_BITS


def forget(index: sqlite3.Connection, session_id: str) -> None:
    session = known(index, session_id).id
    _drop_texts(index, session)
    index.execute("DELETE FROM sessions WHERE id = ?", (session,))


def clear(index: sqlite3.Connection) -> None:
    index.execute("INSERT INTO words (words) VALUES ('delete-all')")
    index.execute("DELETE FROM texts")
    index.execute("DELETE FROM sessions")


@dataclass(frozen=True, slots=True)
class Seen:
    """A session as somebody saw it. `place` is a word for its project."""

    session_id: str
    stamp: str
    summary: Summary
    place: str
    entries: Sequence[Entry]
    first: bytes
    last: bytes

    @classmethod
    def of(cls, session_id: str, stamp: str, summary: Summary, place: str, entries: Sequence[Entry]) -> "Seen":
        ends = (_digest(entries[0]), _digest(entries[-1])) if entries else (b"", b"")
        return cls(session_id, stamp, summary, place, entries, *ends)

    def change(self, there: Known, mask: Mask) -> "Change | None":
        """From what is there to this; None if what is there was seen later."""
        start = self._told_before(there)
        return None if start is None else Change(self, there, start, tuple(self._rows(start, mask)))

    def _told_before(self, there: Known) -> int | None:
        """How many entries need not be read again: all that are there, or none if they are others."""
        if not there.entries or there.first != self.first:
            return 0
        if len(self.entries) < there.entries:
            return None
        same = there.place == self.place and _digest(self.entries[there.entries - 1]) == there.last
        return there.entries if same else 0

    def _rows(self, start: int, mask: Mask) -> Iterator[_Row]:
        for number, entry in enumerate(islice(self.entries, start, None), start + 1):
            for part, words in enumerate(words_of(entry)):
                yield _Row(number, part, entry.at, words.who.value, self.place, indexed(words.text, mask))


@dataclass(frozen=True, slots=True)
class Change:
    """`rows` of all entries after the first `start`, which stay; without any, what was there goes."""

    seen: Seen
    there: Known
    start: int
    rows: tuple[_Row, ...]

    def written(self, index: sqlite3.Connection) -> bool:
        """False, and nothing done, if something else is there by now."""
        seen, there = self.seen, self.there
        if known(index, seen.session_id) != there:
            return False
        session = there.id or _begun(index, seen.session_id)
        if not self.start:
            _drop_texts(index, session)
        last = index.execute(_LAST, (first_text(session), first_text(session + 1))).fetchone()[0]
        free = range(first_text(session) if last is None else last + 1, first_text(session + 1))
        numbered = zip(free, self.rows, strict=False)  # a million texts of a session are enough
        index.executemany(_ADD, ((number, session, *row) for number, row in numbered))
        index.execute(_ADD_WORDS, (session, self.start))
        made, content = seen.summary, dump_summary(seen.summary)
        told = " ".join((seen.session_id, made.title, made.about.project, made.model)).casefold()
        ends = (len(seen.entries), seen.first, seen.last)
        index.execute(_RENEW, (seen.stamp, seen.place, made.changed_at, *ends, told, content, session))
        return True


def _begun(index: sqlite3.Connection, session_id: str) -> int:
    session = index.execute(_BEGIN, (session_id,)).lastrowid
    assert session is not None
    return session


def _drop_texts(index: sqlite3.Connection, session: int) -> None:
    index.execute(_DROP_WORDS, (session,))
    index.execute("DELETE FROM texts WHERE session = ?", (session,))


def _digest(entry: Entry) -> bytes:
    return blake2b(dump(entry), digest_size=16).digest()
