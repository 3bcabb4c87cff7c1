"""A store whose answers get lost, and whose writes come late: what networks do to a bucket."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from enum import StrEnum

from hummingbird.core.errors import ObjectStoreUnusable
from hummingbird.core.protocols.storage import (
    ObjectInfo,
    ObjectStream,
    ObjectVersion,
    VersionedContent,
    VersionedObjectStore,
)


class Mood(StrEnum):
    """What becomes of one write."""

    FINE = "fine"
    REFUSED = "refused"  # not written, and that is told
    ANSWER_LOST = "answer lost"  # written, and an error is told
    DENIED = "denied"  # written, and told that somebody else was first: a second try met the first
    LATE = "late"  # an error is told; written when `arrive` is called, if its condition still holds
    HANGING = "hanging"  # as LATE, but nothing is told until whoever waits gives up


class UnreliableObjects:
    """VersionedObjects over others. `moods` are of the next swaps; all is fine once they are used up."""

    def __init__(self, objects: VersionedObjectStore) -> None:
        self._objects = objects
        self.moods: deque[Mood] = deque()
        self._on_their_way: list[Callable[[], Awaitable[ObjectVersion | None]]] = []
        self.away = False
        self.hangs = asyncio.Event()  # a write that nobody hears of has begun

    async def arrive(self) -> list[bool]:
        """What was on its way comes now. Whether each was written."""
        arriving, self._on_their_way = self._on_their_way, []
        return [await write() is not None for write in arriving]

    async def compare_and_swap(self, name: str, content: bytes, known: ObjectVersion | None) -> ObjectVersion | None:
        mood = self.moods.popleft() if self.moods else Mood.FINE
        self._check(away=self.away or mood is Mood.REFUSED)
        if mood in (Mood.LATE, Mood.HANGING):
            self._on_their_way.append(lambda: self._objects.compare_and_swap(name, content, known))
            self.hangs.set()
            await asyncio.sleep(3600 if mood is Mood.HANGING else 0)
            self._check(away=True)
        version = await self._objects.compare_and_swap(name, content, known)
        self._check(away=mood is Mood.ANSWER_LOST)
        return None if mood is Mood.DENIED else version

    def _check(self, *, away: bool) -> None:
        if away:
            raise ObjectStoreUnusable("The store did not answer; try again.")

    async def put(self, name: str, content: bytes) -> None:
        self._check(away=self.away)
        await self._objects.put(name, content)

    async def get(self, name: str) -> bytes | None:
        self._check(away=self.away)
        return await self._objects.get(name)

    async def list_names(self, prefix: str) -> Sequence[str]:
        self._check(away=self.away)
        return await self._objects.list_names(prefix)

    async def delete(self, name: str) -> None:
        self._check(away=self.away)
        await self._objects.delete(name)

    async def get_versioned(self, name: str, most_bytes: int | None = None) -> VersionedContent | None:
        self._check(away=self.away)
        return await self._objects.get_versioned(name, most_bytes)

    async def list_objects(self, prefix: str) -> Sequence[ObjectInfo]:
        self._check(away=self.away)
        return await self._objects.list_objects(prefix)

    async def put_stream(self, name: str, chunks: AsyncIterator[bytes]) -> int:
        self._check(away=self.away)
        return await self._objects.put_stream(name, chunks)

    async def open_stream(self, name: str) -> ObjectStream | None:
        self._check(away=self.away)
        return await self._objects.open_stream(name)
