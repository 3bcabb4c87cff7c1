"""Store sessions in a bucket (S3, Google or Azure) that several hosts share.

Each session has a journal (see `bucket_journal`) and further files below sessions/ID/. A process that writes a file
first confirms that it still holds the session.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from secrets import token_hex

import msgspec

from hummingbird.core.context_json import migrate_context_json
from hummingbird.core.errors import (
    ArchiveUnusable,
    JournalDamaged,
    JournalUnwritable,
    JournalWriteDelayed,
    ObjectStoreUnusable,
    SessionUnreadable,
)
from hummingbird.core.journal import JournalEntry, dump_entry
from hummingbird.core.limits import ARCHIVE_BYTES
from hummingbird.core.protocols.sandbox import SandboxArchive
from hummingbird.core.protocols.sessions import StoredSession
from hummingbird.core.protocols.storage import ObjectInfo, ObjectVersion, VersionedContent, VersionedObjectStore
from hummingbird.core.sessions import (
    ARCHIVE,
    CONTEXT,
    CONTEXT_BYTES,
    LEASE_S,
    SEGMENTS_AT_ONCE,
    check_session_id,
    is_session_id,
)
from hummingbird.storage.bucket_journal import (
    HEAD_BYTES,
    TAIL_NAME,
    BucketJournal,
    JournalTail,
    TailHead,
    claim_journal,
    encode_tail,
    look_up_tail,
    parse_tail,
    read_bucket_journal,
    session_taken_error,
    swap_and_verify,
)
from hummingbird.storage.folder_sessions import SessionOpener, limit_archive_size

SESSIONS_PREFIX = "sessions"


class BucketSession:
    """A `Session` in a bucket, held by this process."""

    def __init__(self, session_id: str, objects: VersionedObjectStore, journal: BucketJournal) -> None:
        self._id = session_id
        self._objects = objects
        self.journal = journal
        self.archives = BucketArchiveStore(objects, journal)

    @property
    def id(self) -> str:
        return self._id

    async def write_files(self, files: Mapping[str, bytes]) -> None:
        try:
            await self.journal.confirm_lease()
        except JournalWriteDelayed as error:
            raise ObjectStoreUnusable(str(error)) from error
        for name, content in files.items():
            await self._objects.put(f"{_session_prefix(self._id)}/{name}", content)

    async def catch_up(self) -> None:
        await self.journal.catch_up()

    async def release(self) -> None:
        await self.journal.release()


class BucketArchiveStore:
    """An `ArchiveStore` in a bucket, for the session that this process holds."""

    def __init__(self, objects: VersionedObjectStore, journal: BucketJournal, most_bytes: int = ARCHIVE_BYTES) -> None:
        self._objects, self._journal, self._most = objects, journal, most_bytes

    async def put(self, session_id: str, chunks: AsyncIterator[bytes]) -> int:
        try:
            return await self._objects.put_stream(
                f"{_session_prefix(session_id)}/{ARCHIVE}", self._chunks_with_lease(chunks)
            )
        except (ObjectStoreUnusable, JournalUnwritable, JournalDamaged) as error:
            raise _archive_error(error) from error

    async def get(self, session_id: str) -> SandboxArchive | None:
        return await _read_archive(self._objects, session_id)

    async def _chunks_with_lease(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the chunks and confirm the lease at the end, before the upload takes effect.

        A process that hung must not replace newer files by its old ones.
        """
        async for chunk in limit_archive_size(chunks, self._most):
            yield chunk
        await self._journal.confirm_lease()


class BucketSessionStore:
    """A `SessionStore` in a bucket. Leases are measured by `now`."""

    def __init__(self, objects: VersionedObjectStore, address: str, now: Callable[[], float]) -> None:
        self._objects, self._address, self._now = objects, address.rstrip("/"), now
        self._opener = SessionOpener[BucketSession]()

    @property
    def address(self) -> str:
        return self._address

    async def open(self, session_id: str) -> BucketSession:
        return await self._opener.open(session_id, self._open_session(session_id))

    async def _open_session(self, session_id: str) -> BucketSession:
        place = _session_prefix(session_id)
        found = await look_up_tail(self._objects, place)
        if found is not None and await self._finish_removal(place, found):
            found = None
        first = () if found else await self._read_old_format(session_id)
        lines = [dump_entry(msgspec.structs.replace(entry, at=self._now())) for entry in first]
        journal = await claim_journal(
            self._objects, place, self._now, holder=token_hex(16), found=found, first_lines=lines
        )
        return BucketSession(session_id, self._objects, journal)

    async def load_entries(self, session_id: str) -> Sequence[JournalEntry]:
        found = await read_bucket_journal(self._objects, _session_prefix(session_id))
        return await self._read_old_format(session_id) if found is None else found

    async def read_file(self, session_id: str, name: str) -> bytes | None:
        return await self._objects.get(f"{_session_prefix(session_id)}/{name}")

    async def load_archive(self, session_id: str) -> SandboxArchive | None:
        return await _read_archive(self._objects, session_id)

    async def list_sessions(self) -> Sequence[StoredSession]:
        found: dict[str, list[ObjectInfo]] = {}
        for one in await self._objects.list_objects(SESSIONS_PREFIX):
            _, session_id, *_ = one.name.split("/")
            if is_session_id(session_id):
                found.setdefault(session_id, []).append(one)
        there = [(session_id, some) for session_id, some in found.items() if not await self._is_being_removed(some)]
        kept = [described for session_id, some in there if (described := _describe_session(session_id, some))]
        return sorted(kept, key=lambda one: (-one.changed_at, one.session_id))

    async def remove(self, session_id: str, stamp: str = "") -> bool:
        """Remove a session: mark it first, so that its remains never look like a session, and delete its tail last."""
        place = _session_prefix(session_id)
        found = await look_up_tail(self._objects, place)
        listed = await self._objects.list_objects(place)
        kept = _describe_session(session_id, listed) if stamp else None
        if not listed or (stamp and (kept is None or kept.stamp != stamp)):
            return False
        head = _parse_head(found.content) if found else TailHead()
        if head.holder and self._now() < head.until:
            raise session_taken_error(place)
        gone = TailHead(serial=head.serial, holder=token_hex(16), removed=True)
        await self._delete_session(place, gone, found.version if found else None)
        return True

    async def _is_being_removed(self, some: Sequence[ObjectInfo]) -> bool:
        """Return whether the session is being removed; only a tail without entries can say so, so few are read."""
        for one in some:
            if one.name.endswith(TAIL_NAME) and one.size < HEAD_BYTES:
                found = await self._objects.get_versioned(one.name)
                return found is None or _parse_head(found.content).removed
        return False

    async def _finish_removal(self, place: str, found: VersionedContent) -> bool:
        """Finish the removal that a dead process left unfinished; return whether there was one."""
        head = _parse_head(found.content)
        if not head.removed or self._now() < head.until:
            return False
        ours = msgspec.structs.replace(head, holder=token_hex(16))
        await self._delete_session(place, ours, found.version)
        return True

    async def _delete_session(self, place: str, head: TailHead, known: ObjectVersion | None) -> None:
        """Delete the session's objects in steps, and before each make sure that the removal is still ours.

        A process that was suspended in between for too long then notices that another one has started the session
        again, and leaves it alone.
        """
        last = f"{place}/{TAIL_NAME}"
        head, known = await self._mark_removal(place, head, known)
        others = [one.name for one in await self._objects.list_objects(place) if one.name != last]
        for begin in range(0, len(others), SEGMENTS_AT_ONCE):
            head, known = await self._mark_removal(place, head, known)
            await asyncio.gather(*(self._objects.delete(name) for name in others[begin : begin + SEGMENTS_AT_ONCE]))
        await self._mark_removal(place, head, known)
        await self._objects.delete(last)

    async def _mark_removal(
        self, place: str, head: TailHead, known: ObjectVersion | None
    ) -> tuple[TailHead, ObjectVersion]:
        ours = msgspec.structs.replace(head, serial=head.serial + 1, until=self._now() + LEASE_S)
        version = await swap_and_verify(self._objects, f"{place}/{TAIL_NAME}", encode_tail(JournalTail(ours)), known)
        # Deletes are unconditional, so a process whose lease ran out while it wrote the mark must not go on.
        if version is None or self._now() >= ours.until:
            raise session_taken_error(place)
        return ours, version

    async def _read_old_format(self, session_id: str) -> tuple[JournalEntry, ...]:
        """Return the entries of a session in the format before journals; none if there is no such file."""
        found = await self._objects.get_versioned(f"{_session_prefix(session_id)}/{CONTEXT}", CONTEXT_BYTES)
        return migrate_context_json(found.content, session_id) if found else ()


def _session_prefix(session_id: str) -> str:
    return f"{SESSIONS_PREFIX}/{check_session_id(session_id)}"


def _parse_head(content: bytes) -> TailHead:
    """Return the tail's head, or an empty one if it is damaged or newer: such a session can be removed too."""
    with suppress(JournalDamaged, SessionUnreadable):
        return parse_tail(content).head
    return TailHead()


def _describe_session(session_id: str, some: Sequence[ObjectInfo]) -> StoredSession | None:
    named = {one.name.removeprefix(f"{SESSIONS_PREFIX}/{session_id}/"): one for one in some}
    newest = named.get(TAIL_NAME) or named.get(CONTEXT)
    if newest is None:
        return None
    journal = sum(one.size for name, one in named.items() if name.startswith("journal/"))
    return StoredSession(session_id, f"{journal}-{newest.changed_at}", sum(one.size for one in some), newest.changed_at)


async def _read_archive(objects: VersionedObjectStore, session_id: str) -> SandboxArchive | None:
    try:
        flow = await objects.open_stream(f"{_session_prefix(session_id)}/{ARCHIVE}")
    except ObjectStoreUnusable as error:
        raise _archive_error(error) from error
    return None if flow is None else SandboxArchive(_translate_errors(flow.chunks), flow.changed_at)


async def _translate_errors(chunks: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    try:
        async with aclosing(chunks):
            async for chunk in chunks:
                yield chunk
    except ObjectStoreUnusable as error:
        raise _archive_error(error) from error


def _archive_error(error: Exception) -> ArchiveUnusable:
    return ArchiveUnusable(f"The checkpoints in the store cannot be used. {error}")
