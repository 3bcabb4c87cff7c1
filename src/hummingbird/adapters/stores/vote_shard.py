"""Some of the notes that were posted, with the votes on them, as one object that hosts share (O3). Knows how it looks
as bytes, and nothing of stores. All here is pure."""

from collections.abc import Iterable, Sequence
from secrets import token_hex
from typing import TypeAlias

import msgspec

from hummingbird.adapters.stores.known_words import cut, digest_of, named
from hummingbird.domain.errors import JournalDamaged, SessionUnreadable
from hummingbird.domain.vote_limits import VOTE_SHARD_NOTES, VOTE_SHARDS, VOTE_WORD_CHARS, VOTES_KEPT_S
from hummingbird.domain.votes import NEVER, Votes, first_look, next_look
from hummingbird.ports.reactions import NotePosted, Rated

FORMAT = 1
Lines: TypeAlias = dict[str, "Line"]


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A note: the fields of NotePosted and Rated. `due`: when it is its turn, NEVER once it was looked at
    often enough."""

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


class Shard(msgspec.Struct, frozen=True, kw_only=True):
    """`nonce`: another one each time it is written, for stores tell versions apart by content."""

    votes: int = FORMAT
    nonce: str = ""
    notes: Lines = {}


class _Peek(msgspec.Struct):
    votes: int


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Shard)
_peek = msgspec.json.Decoder(_Peek)


def key_of(project: str, note_id: int) -> str:
    """Raises UsageFault."""
    return digest_of(f"{named(project)}\0{note_id}").hex()


def shard_of(key: str) -> int:
    return int(key[:2], 16) % VOTE_SHARDS


def with_note(shard: Shard, note: NotePosted) -> Shard | None:
    """None if it is there. The oldest make room."""
    key = key_of(note.project, note.note_id)
    if key in shard.notes:
        return None
    line = Line(
        project=note.project,
        iid=note.iid,
        note=note.note_id,
        workflow=cut(note.workflow, VOTE_WORD_CHARS),
        model=cut(note.model, VOTE_WORD_CHARS),
        session=cut(note.session_id, VOTE_WORD_CHARS),
        posted=note.posted_at,
        due=first_look(note.posted_at),
    )
    return _with(shard, _newest({**shard.notes, key: line}, note.posted_at - VOTES_KEPT_S))


def _newest(notes: Lines, since: float) -> Lines:
    kept = sorted((key for key, line in notes.items() if line.posted >= since), key=lambda key: -notes[key].posted)
    return {key: notes[key] for key in kept[:VOTE_SHARD_NOTES]}


def with_turns(shard: Shard, now: float, limit: int) -> tuple[Shard | None, list[NotePosted]]:
    """The notes whose turn it is, and the shard in which that is over; None if there is none."""
    waiting = [key for key, line in shard.notes.items() if NEVER != line.due <= now]
    taken = sorted(waiting, key=lambda key: shard.notes[key].due)[: max(0, limit)]
    if not taken:
        return None, []
    later = {key: _replaced(line, due=next_look(line.posted, now)) for key, line in _picked(shard, taken)}
    return _with(shard, {**shard.notes, **later}), [note_of(line) for _, line in _picked(shard, taken)]


def _picked(shard: Shard, keys: Iterable[str]) -> list[tuple[str, Line]]:
    return [(key, shard.notes[key]) for key in keys]


def with_wish(shard: Shard, key: str, at: float) -> Shard | None:
    """The shard in which it is a note's turn at that time; None if it is not later than that now."""
    line = shard.notes.get(key)
    if line is None or NEVER != line.due <= at:
        return None
    return _with(shard, {**shard.notes, key: _replaced(line, due=at)})


def with_votes(shard: Shard, key: str, votes: Votes, at: float) -> Shard | None:
    """None if there is nothing to change."""
    line = shard.notes.get(key)
    if line is None or line.looked > at:
        return None
    more = _replaced(line, up=votes.up, down=votes.down, looked=at)
    return None if more == line else _with(shard, {**shard.notes, key: more})


def _replaced(line: Line, **changes: float) -> Line:
    return msgspec.structs.replace(line, **changes)


def _with(shard: Shard, notes: Lines) -> Shard:
    return msgspec.structs.replace(shard, notes=notes)


def note_of(line: Line) -> NotePosted:
    return NotePosted(
        project=line.project,
        iid=line.iid,
        note_id=line.note,
        workflow=line.workflow,
        model=line.model,
        session_id=line.session,
        posted_at=line.posted,
    )


def rated_of(line: Line) -> Rated:
    return Rated(note=note_of(line), votes=Votes(line.up, line.down), looked_at=line.looked)


def newest_of(shards: Iterable[Shard], since: float, limit: int) -> Sequence[Rated]:
    found = [line for shard in shards for line in shard.notes.values() if line.posted >= since]
    return [rated_of(line) for line in sorted(found, key=lambda one: (-one.posted, -one.note))[: max(0, limit)]]


def written(shard: Shard) -> bytes:
    return _encoder.encode(msgspec.structs.replace(shard, nonce=token_hex(8)))


def parsed(content: bytes | None, where: str) -> Shard:
    """`where`: its name in sentences. Raises JournalDamaged, and SessionUnreadable for a newer version's."""
    if content is None:
        return Shard()
    try:
        if _peek.decode(content).votes > FORMAT:
            raise SessionUnreadable(
                f"{where} was written by a newer version; update this one to use the record of votes on notes."
            )
        return _decoder.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise JournalDamaged(
            f"{where} is damaged and cannot be used as part of the record of votes on notes; move it away."
        ) from error
