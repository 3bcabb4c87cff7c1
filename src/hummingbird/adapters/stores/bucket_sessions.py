"""Sessions in a bucket that hosts share (S1): S3, Google or Azure. Below sessions/ID/ a journal (bucket_journal) and
the files beside it. Whoever writes there confirms first that the session is still its own.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from secrets import token_hex

import msgspec

from hummingbird.adapters.stores.archives import bounded
from hummingbird.adapters.stores.bucket_journal import BucketJournal, claimed, looked, read, swapped, taken
from hummingbird.adapters.stores.opening import Openings
from hummingbird.adapters.stores.tail import HEAD_BYTES, NAME, Head, Tail, parsed, written
from hummingbird.domain.envelope import migrated
from hummingbird.domain.errors import (
    ArchiveUnusable,
    JournalBehind,
    JournalDamaged,
    JournalUnwritable,
    ObjectsUnusable,
    SessionUnreadable,
)
from hummingbird.domain.journal import Entry, dump
from hummingbird.domain.limits import ARCHIVE_BYTES
from hummingbird.domain.session_limits import CONTEXT_BYTES, LEASE_S, SEGMENTS_AT_ONCE
from hummingbird.domain.sessions import ARCHIVE, CONTEXT, check_session_id, is_session_id
from hummingbird.ports.archives import Archive
from hummingbird.ports.objects import Listed, Looked, Version, VersionedObjects
from hummingbird.ports.sessions import Kept

ROOM = "sessions"


class BucketSession:
    """Fulfils ports.sessions.Session."""

    def __init__(self, session_id: str, objects: VersionedObjects, journal: BucketJournal) -> None:
        self._id = session_id
        self._objects = objects
        self.journal = journal
        self.archives = BucketArchives(objects, journal)

    @property
    def id(self) -> str:
        return self._id

    async def keep(self, files: Mapping[str, bytes]) -> None:
        try:
            await self.journal.confirm()
        except JournalBehind as error:
            raise ObjectsUnusable(str(error)) from error
        for name, content in files.items():
            await self._objects.put(f"{_place(self._id)}/{name}", content)

    async def catch_up(self) -> None:
        await self.journal.catch_up()

    async def release(self) -> None:
        await self.journal.release()


class BucketArchives:
    """Fulfils ports.archives.Archives, for the session that is held."""

    def __init__(self, objects: VersionedObjects, journal: BucketJournal, most_bytes: int = ARCHIVE_BYTES) -> None:
        self._objects, self._journal, self._most = objects, journal, most_bytes

    async def put(self, session_id: str, chunks: AsyncIterator[bytes]) -> int:
        try:
            return await self._objects.put_flow(f"{_place(session_id)}/{ARCHIVE}", self._ours(chunks))
        except (ObjectsUnusable, JournalUnwritable, JournalDamaged) as error:
            raise _not_saved(error) from error

    async def get(self, session_id: str) -> Archive | None:
        return await _archive(self._objects, session_id)

    async def _ours(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """A process that hung must not put its old files in the place of newer ones: asked when all is there."""
        async for chunk in bounded(chunks, self._most):
            yield chunk
        await self._journal.confirm()


class BucketSessions:
    """Fulfils ports.sessions.Sessions. `now`: what leases are reckoned by."""

    def __init__(self, objects: VersionedObjects, address: str, now: Callable[[], float]) -> None:
        self._objects, self._address, self._now = objects, address.rstrip("/"), now
        self._openings = Openings[BucketSession]()

    @property
    def address(self) -> str:
        return self._address

    async def open(self, session_id: str) -> BucketSession:
        return await self._openings.opened(session_id, self._opened(session_id))

    async def _opened(self, session_id: str) -> BucketSession:
        place = _place(session_id)
        found = await looked(self._objects, place)
        if found is not None and await self._removed(place, found):
            found = None
        first = () if found else await self._older(session_id)
        lines = [dump(msgspec.structs.replace(entry, at=self._now())) for entry in first]
        journal = await claimed(self._objects, place, self._now, holder=token_hex(16), found=found, first_lines=lines)
        return BucketSession(session_id, self._objects, journal)

    async def entries(self, session_id: str) -> Sequence[Entry]:
        found = await read(self._objects, _place(session_id))
        return await self._older(session_id) if found is None else found

    async def file(self, session_id: str, name: str) -> bytes | None:
        return await self._objects.get(f"{_place(session_id)}/{name}")

    async def archive(self, session_id: str) -> Archive | None:
        return await _archive(self._objects, session_id)

    async def listed(self) -> Sequence[Kept]:
        found: dict[str, list[Listed]] = {}
        for one in await self._objects.listed(ROOM):
            _, session_id, *_ = one.name.split("/")
            if is_session_id(session_id):
                found.setdefault(session_id, []).append(one)
        there = [(session_id, some) for session_id, some in found.items() if not await self._leaving(some)]
        kept = [told for session_id, some in there if (told := _kept(session_id, some))]
        return sorted(kept, key=lambda one: (-one.changed_at, one.session_id))

    async def remove(self, session_id: str, stamp: str = "") -> bool:
        """First marked as removed, so that what is left of it never looks like a session; its tail goes last."""
        place = _place(session_id)
        found = await looked(self._objects, place)
        listed = await self._objects.listed(place)
        kept = _kept(session_id, listed) if stamp else None
        if not listed or (stamp and (kept is None or kept.stamp != stamp)):
            return False
        head = _head(found.content) if found else Head()
        if head.holder and self._now() < head.until:
            raise taken(place)
        gone = Head(serial=head.serial, holder=token_hex(16), removed=True)
        await self._emptied(place, gone, found.version if found else None)
        return True

    async def _leaving(self, some: Sequence[Listed]) -> bool:
        """Whether it is being removed. Only a tail without entries may say so, and few are."""
        for one in some:
            if one.name.endswith(NAME) and one.size < HEAD_BYTES:
                found = await self._objects.look(one.name)
                return found is None or _head(found.content).removed
        return False

    async def _removed(self, place: str, found: Looked) -> bool:
        """Whether somebody died while removing it; then it is gone now."""
        head = _head(found.content)
        if not head.removed or self._now() < head.until:
            return False
        ours = msgspec.structs.replace(head, holder=token_hex(16))
        await self._emptied(place, ours, found.version)
        return True

    async def _emptied(self, place: str, head: Head, known: Version | None) -> None:
        """In steps, before each of which we make sure that it is still ours to remove: whoever was stopped in between
        for too long finds that somebody else has begun it anew, and leaves that alone."""
        last = f"{place}/{NAME}"
        head, known = await self._marked(place, head, known)
        others = [one.name for one in await self._objects.listed(place) if one.name != last]
        for begin in range(0, len(others), SEGMENTS_AT_ONCE):
            head, known = await self._marked(place, head, known)
            await asyncio.gather(*(self._objects.delete(name) for name in others[begin : begin + SEGMENTS_AT_ONCE]))
        await self._marked(place, head, known)
        await self._objects.delete(last)

    async def _marked(self, place: str, head: Head, known: Version | None) -> tuple[Head, Version]:
        ours = msgspec.structs.replace(head, serial=head.serial + 1, until=self._now() + LEASE_S)
        version = await swapped(self._objects, f"{place}/{NAME}", written(Tail(ours)), known)
        # What is deleted next is deleted without a condition: not by somebody who hung while the mark was written.
        if version is None or self._now() >= ours.until:
            raise taken(place)
        return ours, version

    async def _older(self, session_id: str) -> tuple[Entry, ...]:
        """One that has no journal, of a format before there were any."""
        found = await self._objects.look(f"{_place(session_id)}/{CONTEXT}", CONTEXT_BYTES)
        return migrated(found.content, session_id) if found else ()


def _place(session_id: str) -> str:
    return f"{ROOM}/{check_session_id(session_id)}"


def _head(content: bytes) -> Head:
    """Of a tail that may be damaged or of a newer version: those can be removed too."""
    with suppress(JournalDamaged, SessionUnreadable):
        return parsed(content).head
    return Head()


def _kept(session_id: str, some: Sequence[Listed]) -> Kept | None:
    named = {one.name.removeprefix(f"{ROOM}/{session_id}/"): one for one in some}
    told = named.get(NAME) or named.get(CONTEXT)
    if told is None:
        return None
    journal = sum(one.size for name, one in named.items() if name.startswith("journal/"))
    return Kept(session_id, f"{journal}-{told.changed_at}", sum(one.size for one in some), told.changed_at)


async def _archive(objects: VersionedObjects, session_id: str) -> Archive | None:
    try:
        flow = await objects.flow(f"{_place(session_id)}/{ARCHIVE}")
    except ObjectsUnusable as error:
        raise _not_saved(error) from error
    return None if flow is None else Archive(_translated(flow.chunks), flow.changed_at)


async def _translated(chunks: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    try:
        async with aclosing(chunks):
            async for chunk in chunks:
                yield chunk
    except ObjectsUnusable as error:
        raise _not_saved(error) from error


def _not_saved(error: Exception) -> ArchiveUnusable:
    return ArchiveUnusable(f"The checkpoints in the store cannot be used. {error}")
