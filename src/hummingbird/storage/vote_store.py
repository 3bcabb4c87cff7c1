"""Store posted notes and the votes on them: in a SQLite file of one machine, or in a bucket that hosts share.

In a bucket the notes are spread over votes/N.json, which are updated with conditional writes.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from secrets import token_hex
from typing import TypeAlias

import msgspec

from hummingbird.core.errors import JournalDamaged, SessionUnreadable
from hummingbird.core.protocols.storage import RatedNote, VersionedObjectStore, VotableNote
from hummingbird.core.sessions import SEGMENTS_AT_ONCE
from hummingbird.core.votes import (
    NEVER,
    VOTE_SHARD_BYTES,
    VOTE_SHARD_NOTES,
    VOTE_SHARDS,
    VOTE_WORD_CHARS,
    VOTES_KEPT,
    VOTES_KEPT_S,
    VoteCount,
    first_look_at,
    next_look_at,
)
from hummingbird.storage.compare_and_swap import BucketCircuitBreaker, update_object
from hummingbird.storage.ledger_fields import VersionedDecoder, check_ledger_name, text_digest, truncate
from hummingbird.storage.sqlite_ledger import LedgerFile

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


class SqliteVoteStore:
    """A `VoteStore` in a SQLite file that all processes of a machine share."""

    def __init__(self, path: Path) -> None:
        self._file = LedgerFile(path, "the record of votes on notes", _MARK, (_FIRST_VERSION,))

    async def record_note(self, note: VotableNote) -> None:
        await asyncio.to_thread(self._insert_note, note)

    async def claim_due_notes(self, now: float, limit: int) -> Sequence[VotableNote]:
        return await asyncio.to_thread(self._take_due, now, limit)

    async def record_votes(self, note: VotableNote, votes: VoteCount, at: float) -> None:
        await asyncio.to_thread(self._update_votes, note, votes, at)

    async def schedule_count(self, note: VotableNote, at: float) -> None:
        await asyncio.to_thread(self._schedule_look, note, at)

    async def find_note(self, project: str, note_id: int) -> RatedNote | None:
        return await asyncio.to_thread(self._find_note, project, note_id)

    async def list_recent(self, since: float, limit: int) -> Sequence[RatedNote]:
        return await asyncio.to_thread(self._list_recent, since, limit)

    def _insert_note(self, note: VotableNote) -> None:
        texts = [truncate(text, VOTE_WORD_CHARS) for text in (note.workflow, note.model, note.session_id)]
        row = (
            check_ledger_name(note.project),
            note.note_id,
            note.iid,
            *texts,
            note.posted_at,
            first_look_at(note.posted_at),
        )
        with self._file.write_transaction() as file:
            file.execute(_POSTED, row)
            file.execute(_TOO_OLD, (note.posted_at - VOTES_KEPT_S,))
            file.execute(_TOO_MANY, (VOTES_KEPT - 1,))

    def _take_due(self, now: float, limit: int) -> list[VotableNote]:
        with self._file.write_transaction() as file:
            notes = [_note_from_row(row) for row in file.execute(_DUE, (NEVER, now, max(0, limit)))]
            turns = [(next_look_at(note.posted_at, now), note.project, note.note_id) for note in notes]
            file.executemany(_TURN, turns)
        return notes

    def _update_votes(self, note: VotableNote, votes: VoteCount, at: float) -> None:
        with self._file.write_transaction() as file:
            file.execute(_COUNTED, (votes.up, votes.down, at, check_ledger_name(note.project), note.note_id, at))

    def _schedule_look(self, note: VotableNote, at: float) -> None:
        with self._file.write_transaction() as file:
            file.execute(_WANTED, (at, check_ledger_name(note.project), note.note_id, NEVER, at))

    def _find_note(self, project: str, note_id: int) -> RatedNote | None:
        with self._file.read_transaction() as file:
            row = file.execute(_KNOWN, (check_ledger_name(project), note_id)).fetchone()
        return _rating_from_row(row) if row else None

    def _list_recent(self, since: float, limit: int) -> list[RatedNote]:
        with self._file.read_transaction() as file:
            return [_rating_from_row(row) for row in file.execute(_RECENT, (since, max(0, min(limit, VOTES_KEPT))))]


def _note_from_row(row: sqlite3.Row) -> VotableNote:
    return VotableNote(
        project=row["project"],
        iid=row["iid"],
        note_id=row["note_id"],
        workflow=row["workflow"],
        model=row["model"],
        session_id=row["session_id"],
        posted_at=row["posted_at"],
    )


def _rating_from_row(row: sqlite3.Row) -> RatedNote:
    return RatedNote(note=_note_from_row(row), votes=VoteCount(row["up"], row["down"]), looked_at=row["looked_at"])


FORMAT = 1
VoteRecords: TypeAlias = dict[str, "VoteRecord"]


class VoteRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A `RatedNote` as it is stored.

    `due` is when its votes are counted next; NEVER once they were counted often enough.
    """

    project: str
    iid: int
    note: int
    workflow: str = ""
    model: str = ""
    session: str = ""
    posted: float = 0.0
    up: int = 0
    down: int = 0
    looked: float = 0.0
    due: float = NEVER


class VoteShard(msgspec.Struct, frozen=True, kw_only=True):
    """Some of the notes. `nonce` is new in each write, because stores distinguish versions by content."""

    votes: int = FORMAT
    nonce: str = ""
    notes: VoteRecords = {}


_encoder = msgspec.json.Encoder()
_decoder = VersionedDecoder(VoteShard, "votes", FORMAT)


def vote_key(project: str, note_id: int) -> str:
    """Return the key of a note in its shard. Raises UsageError for an invalid project name."""
    return text_digest(f"{check_ledger_name(project)}\0{note_id}").hex()


def vote_shard_number(key: str) -> int:
    """Return the shard that holds the note."""
    return int(key[:2], 16) % VOTE_SHARDS


def add_note(shard: VoteShard, note: VotableNote) -> VoteShard | None:
    """Return the shard with the note added, without the oldest if it is full; None if the note is there already."""
    key = vote_key(note.project, note.note_id)
    if key in shard.notes:
        return None
    line = VoteRecord(
        project=note.project,
        iid=note.iid,
        note=note.note_id,
        workflow=truncate(note.workflow, VOTE_WORD_CHARS),
        model=truncate(note.model, VOTE_WORD_CHARS),
        session=truncate(note.session_id, VOTE_WORD_CHARS),
        posted=note.posted_at,
        due=first_look_at(note.posted_at),
    )
    return _replace_notes(shard, _newest_records({**shard.notes, key: line}, note.posted_at - VOTES_KEPT_S))


def _newest_records(notes: VoteRecords, since: float) -> VoteRecords:
    kept = sorted((key for key, line in notes.items() if line.posted >= since), key=lambda key: -notes[key].posted)
    return {key: notes[key] for key in kept[:VOTE_SHARD_NOTES]}


def take_due_notes(shard: VoteShard, now: float, limit: int) -> tuple[VoteShard | None, list[VotableNote]]:
    """Return the notes that are due and the shard in which they are rescheduled; None if none is due."""
    waiting = [key for key, line in shard.notes.items() if NEVER != line.due <= now]
    taken = sorted(waiting, key=lambda key: shard.notes[key].due)[: max(0, limit)]
    if not taken:
        return None, []
    later = {
        key: _replace_fields(line, due=next_look_at(line.posted, now)) for key, line in _select_records(shard, taken)
    }
    return _replace_notes(shard, {**shard.notes, **later}), [
        to_note_posted(line) for _, line in _select_records(shard, taken)
    ]


def _select_records(shard: VoteShard, keys: Iterable[str]) -> list[tuple[str, VoteRecord]]:
    return [(key, shard.notes[key]) for key in keys]


def schedule_note(shard: VoteShard, key: str, at: float) -> VoteShard | None:
    """Return the shard with the note due at that time; None if it is unknown or due earlier."""
    line = shard.notes.get(key)
    if line is None or NEVER != line.due <= at:
        return None
    return _replace_notes(shard, {**shard.notes, key: _replace_fields(line, due=at)})


def set_votes(shard: VoteShard, key: str, votes: VoteCount, at: float) -> VoteShard | None:
    """Return the shard with the note's votes; None if there is nothing to change."""
    line = shard.notes.get(key)
    if line is None or line.looked > at:
        return None
    more = _replace_fields(line, up=votes.up, down=votes.down, looked=at)
    return None if more == line else _replace_notes(shard, {**shard.notes, key: more})


def _replace_fields(line: VoteRecord, **changes: float) -> VoteRecord:
    return msgspec.structs.replace(line, **changes)


def _replace_notes(shard: VoteShard, notes: VoteRecords) -> VoteShard:
    return msgspec.structs.replace(shard, notes=notes)


def to_note_posted(line: VoteRecord) -> VotableNote:
    """Convert a stored record to the note without its votes."""
    return VotableNote(
        project=line.project,
        iid=line.iid,
        note_id=line.note,
        workflow=line.workflow,
        model=line.model,
        session_id=line.session,
        posted_at=line.posted,
    )


def to_rated(line: VoteRecord) -> RatedNote:
    """Convert a stored record to the note with its votes."""
    return RatedNote(note=to_note_posted(line), votes=VoteCount(line.up, line.down), looked_at=line.looked)


def newest_rated(shards: Iterable[VoteShard], since: float, limit: int) -> Sequence[RatedNote]:
    """Return the notes posted since then, newest first."""
    found = [line for shard in shards for line in shard.notes.values() if line.posted >= since]
    return [to_rated(line) for line in sorted(found, key=lambda one: (-one.posted, -one.note))[: max(0, limit)]]


def encode_shard(shard: VoteShard) -> bytes:
    """Encode the shard with a new nonce."""
    return _encoder.encode(msgspec.structs.replace(shard, nonce=token_hex(8)))


def decode_shard(content: bytes | None, where: str) -> VoteShard:
    """Decode a shard; an empty one for no content. `where` names it in error sentences.

    Raises JournalDamaged, and SessionUnreadable for a shard of a newer version.
    """
    if content is None:
        return VoteShard()
    return _decoder.decode(
        content,
        newer=SessionUnreadable(
            f"{where} was written by a newer version; update this one to use the record of votes on notes."
        ),
        damaged=JournalDamaged(
            f"{where} is damaged and cannot be used as part of the record of votes on notes; move it away."
        ),
    )


VOTES_PREFIX = "votes"


class BucketVoteStore:
    """A `VoteStore` in a bucket. Belongs to one event loop.

    A due note is rescheduled with a conditional write before it is handed out, so only one of many hosts asks GitLab.
    If the bucket's response gets lost, notes may miss one count, but are never handed out twice.
    """

    def __init__(
        self, objects: VersionedObjectStore, address: str, circuit_breaker: BucketCircuitBreaker | None = None
    ) -> None:
        self._objects, self._address = objects, address.rstrip("/")
        self._circuit_breaker = circuit_breaker or BucketCircuitBreaker()
        self._what = f"The record of votes on notes in {self._address}"
        self._slots = asyncio.Semaphore(SEGMENTS_AT_ONCE)

    async def record_note(self, note: VotableNote) -> None:
        await self._update_shard(
            vote_shard_number(vote_key(note.project, note.note_id)), lambda shard: add_note(shard, note)
        )

    async def claim_due_notes(self, now: float, limit: int) -> Sequence[VotableNote]:
        """Return due notes of all shards; an unreadable shard is reported only if the others have none."""
        found: list[VotableNote] = []
        failure: Exception | None = None
        for number in range(VOTE_SHARDS):
            if len(found) >= limit:
                break
            try:
                found += await self._take_due(number, now, limit - len(found))
            except (JournalDamaged, SessionUnreadable) as error:
                failure = error
        if failure is not None and not found:
            raise failure
        return found

    async def _take_due(self, number: int, now: float, limit: int) -> Sequence[VotableNote]:
        taken: list[VotableNote] = []

        def turns(shard: VoteShard) -> VoteShard | None:
            nonlocal taken
            more, taken = take_due_notes(shard, now, limit)
            return more

        await self._update_shard(number, turns)
        return taken

    async def record_votes(self, note: VotableNote, votes: VoteCount, at: float) -> None:
        key = vote_key(note.project, note.note_id)
        await self._update_shard(vote_shard_number(key), lambda shard: set_votes(shard, key, votes, at))

    async def schedule_count(self, note: VotableNote, at: float) -> None:
        key = vote_key(note.project, note.note_id)
        await self._update_shard(vote_shard_number(key), lambda shard: schedule_note(shard, key, at))

    async def find_note(self, project: str, note_id: int) -> RatedNote | None:
        key = vote_key(project, note_id)
        async with self._circuit_breaker.guard(self._what):
            line = (await self._read_shard(vote_shard_number(key))).notes.get(key)
        return None if line is None else to_rated(line)

    async def list_recent(self, since: float, limit: int) -> Sequence[RatedNote]:
        async with self._circuit_breaker.guard(self._what):
            shards = await asyncio.gather(*map(self._read_shard, range(VOTE_SHARDS)))
        return newest_rated(shards, since, limit)

    async def _read_shard(self, number: int) -> VoteShard:
        async with self._slots:
            found = await self._objects.get_versioned(_shard_name(number), VOTE_SHARD_BYTES)
        return await asyncio.to_thread(decode_shard, found.content if found else None, self._shard_address(number))

    async def _update_shard(self, number: int, change: Callable[[VoteShard], VoteShard | None]) -> None:
        def after(content: bytes | None) -> bytes | None:
            more = change(decode_shard(content, self._shard_address(number)))
            return None if more is None else encode_shard(more)

        async def change_in_thread(content: bytes | None) -> bytes | None:
            return await asyncio.to_thread(after, content)

        async with self._circuit_breaker.guard(self._what):
            await update_object(self._objects, _shard_name(number), change_in_thread, most_bytes=VOTE_SHARD_BYTES)

    def _shard_address(self, number: int) -> str:
        return f"{self._address}/{_shard_name(number)}"


def _shard_name(number: int) -> str:
    return f"{VOTES_PREFIX}/{number}.json"
