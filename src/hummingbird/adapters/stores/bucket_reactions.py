"""Notes and the votes on them, in a bucket that hosts share (O3): votes/N.json, swapped on condition. What they say is
`vote_shard`'s business.

That it is a note's turn is written before anybody looks at it, on the same condition: of many hosts one asks GitLab. An
answer of the bucket that gets lost may cost notes one turn, and never gives a turn twice.
"""

import asyncio
from collections.abc import Callable, Sequence

from hummingbird.adapters.stores.exchanging import Patience, exchanged
from hummingbird.adapters.stores.vote_shard import (
    Shard,
    key_of,
    newest_of,
    parsed,
    rated_of,
    shard_of,
    with_note,
    with_turns,
    with_votes,
    with_wish,
    written,
)
from hummingbird.domain.errors import JournalDamaged, SessionUnreadable
from hummingbird.domain.session_limits import SEGMENTS_AT_ONCE
from hummingbird.domain.vote_limits import VOTE_SHARD_BYTES, VOTE_SHARDS
from hummingbird.domain.votes import Votes
from hummingbird.ports.objects import VersionedObjects
from hummingbird.ports.reactions import NotePosted, Rated

ROOM = "votes"


class BucketReactions:
    """Fulfils ports.reactions.Reactions. Belongs to one event loop."""

    def __init__(self, objects: VersionedObjects, address: str, patience: Patience | None = None) -> None:
        self._objects, self._address = objects, address.rstrip("/")
        self._patience = patience or Patience()
        self._what = f"The record of votes on notes in {self._address}"
        self._slots = asyncio.Semaphore(SEGMENTS_AT_ONCE)

    async def posted(self, note: NotePosted) -> None:
        await self._changed(shard_of(key_of(note.project, note.note_id)), lambda shard: with_note(shard, note))

    async def due(self, now: float, limit: int) -> Sequence[NotePosted]:
        """A shard that cannot be read keeps nobody from the others."""
        found: list[NotePosted] = []
        failure: Exception | None = None
        for number in range(VOTE_SHARDS):
            if len(found) >= limit:
                break
            try:
                found += await self._taken(number, now, limit - len(found))
            except (JournalDamaged, SessionUnreadable) as error:
                failure = error
        if failure is not None and not found:
            raise failure
        return found

    async def _taken(self, number: int, now: float, limit: int) -> Sequence[NotePosted]:
        taken: list[NotePosted] = []

        def turns(shard: Shard) -> Shard | None:
            nonlocal taken
            more, taken = with_turns(shard, now, limit)
            return more

        await self._changed(number, turns)
        return taken

    async def counted(self, note: NotePosted, votes: Votes, at: float) -> None:
        key = key_of(note.project, note.note_id)
        await self._changed(shard_of(key), lambda shard: with_votes(shard, key, votes, at))

    async def wanted(self, note: NotePosted, at: float) -> None:
        key = key_of(note.project, note.note_id)
        await self._changed(shard_of(key), lambda shard: with_wish(shard, key, at))

    async def known(self, project: str, note_id: int) -> Rated | None:
        key = key_of(project, note_id)
        async with self._patience.in_time(self._what):
            line = (await self._shard(shard_of(key))).notes.get(key)
        return None if line is None else rated_of(line)

    async def recent(self, since: float, limit: int) -> Sequence[Rated]:
        async with self._patience.in_time(self._what):
            shards = await asyncio.gather(*map(self._shard, range(VOTE_SHARDS)))
        return newest_of(shards, since, limit)

    async def _shard(self, number: int) -> Shard:
        async with self._slots:
            found = await self._objects.look(_name(number), VOTE_SHARD_BYTES)
        return await asyncio.to_thread(parsed, found.content if found else None, self._where(number))

    async def _changed(self, number: int, change: Callable[[Shard], Shard | None]) -> None:
        def after(content: bytes | None) -> bytes | None:
            more = change(parsed(content, self._where(number)))
            return None if more is None else written(more)

        async def made(content: bytes | None) -> bytes | None:
            return await asyncio.to_thread(after, content)

        async with self._patience.in_time(self._what):
            await exchanged(self._objects, _name(number), made, most_bytes=VOTE_SHARD_BYTES)

    def _where(self, number: int) -> str:
        return f"{self._address}/{_name(number)}"


def _name(number: int) -> str:
    return f"{ROOM}/{number}.json"
