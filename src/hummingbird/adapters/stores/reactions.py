"""Notes and the votes on them, in a SQLite file that all processes of a machine share."""

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from hummingbird.adapters.stores.known_words import cut, named
from hummingbird.adapters.stores.ledger_file import LedgerFile
from hummingbird.domain.vote_limits import VOTE_WORD_CHARS, VOTES_KEPT, VOTES_KEPT_S
from hummingbird.domain.votes import NEVER, Votes, first_look, next_look
from hummingbird.ports.reactions import NotePosted, Rated

_MARK = 0x48425654  # "HBVT"
_FIRST_VERSION = (
    """CREATE TABLE notes (
        project TEXT NOT NULL, note_id INTEGER NOT NULL, iid INTEGER NOT NULL, workflow TEXT NOT NULL,
        model TEXT NOT NULL, session_id TEXT NOT NULL, posted_at REAL NOT NULL, up INTEGER NOT NULL,
        down INTEGER NOT NULL, looked_at REAL NOT NULL, due_at REAL NOT NULL,
        PRIMARY KEY (project, note_id)) WITHOUT ROWID""",
    "CREATE INDEX notes_by_time ON notes (posted_at)",
    "CREATE INDEX notes_by_turn ON notes (due_at)",
)
_POSTED = "INSERT OR IGNORE INTO notes VALUES (?, ?, ?, ?, ?, ?, ?, 0, 0, 0, ?)"
_TOO_OLD = "DELETE FROM notes WHERE posted_at < ?"
_TOO_MANY = "DELETE FROM notes WHERE posted_at < (SELECT posted_at FROM notes ORDER BY posted_at DESC LIMIT 1 OFFSET ?)"
_DUE = "SELECT * FROM notes WHERE due_at <> ? AND due_at <= ? ORDER BY due_at LIMIT ?"
_TURN = "UPDATE notes SET due_at = ? WHERE project = ? AND note_id = ?"
_COUNTED = "UPDATE notes SET up = ?, down = ?, looked_at = ? WHERE project = ? AND note_id = ? AND looked_at <= ?"
_WANTED = "UPDATE notes SET due_at = ? WHERE project = ? AND note_id = ? AND (due_at = ? OR due_at > ?)"
_KNOWN = "SELECT * FROM notes WHERE project = ? AND note_id = ?"
_RECENT = "SELECT * FROM notes WHERE posted_at >= ? ORDER BY posted_at DESC, note_id DESC LIMIT ?"


class SqliteReactions:
    """Fulfils ports.reactions.Reactions."""

    def __init__(self, path: Path) -> None:
        self._file = LedgerFile(path, "the record of votes on notes", _MARK, (_FIRST_VERSION,))

    async def posted(self, note: NotePosted) -> None:
        await asyncio.to_thread(self._posted, note)

    async def due(self, now: float, limit: int) -> Sequence[NotePosted]:
        return await asyncio.to_thread(self._due, now, limit)

    async def counted(self, note: NotePosted, votes: Votes, at: float) -> None:
        await asyncio.to_thread(self._counted, note, votes, at)

    async def wanted(self, note: NotePosted, at: float) -> None:
        await asyncio.to_thread(self._wanted, note, at)

    async def known(self, project: str, note_id: int) -> Rated | None:
        return await asyncio.to_thread(self._known, project, note_id)

    async def recent(self, since: float, limit: int) -> Sequence[Rated]:
        return await asyncio.to_thread(self._recent, since, limit)

    def _posted(self, note: NotePosted) -> None:
        texts = [cut(text, VOTE_WORD_CHARS) for text in (note.workflow, note.model, note.session_id)]
        row = (named(note.project), note.note_id, note.iid, *texts, note.posted_at, first_look(note.posted_at))
        with self._file.writing() as file:
            file.execute(_POSTED, row)
            file.execute(_TOO_OLD, (note.posted_at - VOTES_KEPT_S,))
            file.execute(_TOO_MANY, (VOTES_KEPT - 1,))

    def _due(self, now: float, limit: int) -> list[NotePosted]:
        with self._file.writing() as file:
            notes = [_note(row) for row in file.execute(_DUE, (NEVER, now, max(0, limit)))]
            turns = [(next_look(note.posted_at, now), note.project, note.note_id) for note in notes]
            file.executemany(_TURN, turns)
        return notes

    def _counted(self, note: NotePosted, votes: Votes, at: float) -> None:
        with self._file.writing() as file:
            file.execute(_COUNTED, (votes.up, votes.down, at, named(note.project), note.note_id, at))

    def _wanted(self, note: NotePosted, at: float) -> None:
        with self._file.writing() as file:
            file.execute(_WANTED, (at, named(note.project), note.note_id, NEVER, at))

    def _known(self, project: str, note_id: int) -> Rated | None:
        with self._file.reading() as file:
            row = file.execute(_KNOWN, (named(project), note_id)).fetchone()
        return _rated(row) if row else None

    def _recent(self, since: float, limit: int) -> list[Rated]:
        with self._file.reading() as file:
            return [_rated(row) for row in file.execute(_RECENT, (since, max(0, min(limit, VOTES_KEPT))))]


def _note(row: sqlite3.Row) -> NotePosted:
    return NotePosted(
        project=row["project"],
        iid=row["iid"],
        note_id=row["note_id"],
        workflow=row["workflow"],
        model=row["model"],
        session_id=row["session_id"],
        posted_at=row["posted_at"],
    )


def _rated(row: sqlite3.Row) -> Rated:
    return Rated(note=_note(row), votes=Votes(row["up"], row["down"]), looked_at=row["looked_at"])
