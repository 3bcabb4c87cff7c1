"""Keep a session's journal in a bucket: sealed segments that never change, and a tail that every commit rewrites.

Objects cannot be appended to. So new entries go, with those that are not sealed yet, into one object, the tail. When
the tail has grown to SEGMENT_BYTES, it becomes a segment. A commit therefore costs the same however long the journal
is.

Every write of the tail is conditional on the previous one, so the tails form a single history. A process that lost the
session learns it from its next commit, before it carries out what that commit announces. This needs neither a clock nor
a lease; the lease in the tail only keeps others away while its holder renews it. A segment is made only of a tail in
that history, and only if it does not exist yet, so it does not matter who seals it.

The tail's first line is its head, the others are entries:

    {"tail":1,"serial":7,"holder":"…","until":…,"life":"…","first":130}
    {"kind":"tool_finished",…}

The head is different in every write (`serial`, `holder`), because stores distinguish versions by content.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from hummingbird.core.errors import (
    JournalDamaged,
    JournalUnwritable,
    JournalWriteDelayed,
    ObjectStoreUnusable,
    SessionTaken,
    SessionUnreadable,
)
from hummingbird.core.journal import JournalEntry, dump_entry, load_entry
from hummingbird.core.protocols.storage import ObjectVersion, VersionedContent, VersionedObjectStore
from hummingbird.core.sessions import (
    COMMIT_REST_S,
    COMMIT_S,
    JOURNAL_BYTES,
    LEASE_BEAT_S,
    LEASE_S,
    SEGMENT_BYTES,
    SEGMENTS_AT_ONCE,
)
from hummingbird.storage.journals import journal_too_long_text
from hummingbird.storage.ledger_fields import VersionedDecoder

TAIL_FORMAT = 1
TAIL_NAME = "journal/tail.jsonl"
HEAD_BYTES = 512  # no head is longer, so a longer tail has entries


class TailHead(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of the tail: who holds the session, and where the tail begins.

    `first` is the number of the tail's first entry; earlier ones are in sealed segments. `holder` identifies the
    process that holds the session, empty for none; its lease ends at `until` unless it is renewed. `life` differs
    between a removed session and a new one under the same id. `removed` says that the session is being removed.
    """

    tail: int = TAIL_FORMAT
    serial: int = 0
    holder: str = ""
    until: float = 0.0
    life: str = ""
    first: int = 0
    removed: bool = False


class JournalTail(msgspec.Struct, frozen=True):
    """The tail: its head, and the encoded entries that are not sealed yet, each with its newline."""

    head: TailHead
    lines: tuple[bytes, ...] = ()

    @property
    def size(self) -> int:
        return sum(map(len, self.lines))

    @property
    def end(self) -> int:
        """Return the number that the next entry will have."""
        return self.head.first + len(self.lines)


_encoder = msgspec.json.Encoder()
_decoder = VersionedDecoder(TailHead, "tail", TAIL_FORMAT)


def segment_name(first: int, life: str) -> str:
    """Return the name of the segment that begins with that entry; names sort in the order of entries.

    `life` is part of the name: a process that hung may still seal entries of a session that was removed meanwhile.
    """
    return f"journal/{first:012d}-{life}.jsonl"


def encode_tail(tail: JournalTail) -> bytes:
    """Return the content of the tail object."""
    return b"".join((_encoder.encode(tail.head), b"\n", *tail.lines))


def parse_tail(content: bytes) -> JournalTail:
    """Parse the tail object. Raises JournalDamaged, and SessionUnreadable for a newer format."""
    head, *lines = split_lines(content)
    found = _decoder.decode(
        head,
        newer=SessionUnreadable(
            "This session was written by a newer version of Hummingbird: update this one to open it."
        ),
        damaged=JournalDamaged("The journal's tail in the bucket has no valid head: restore it from a copy."),
    )
    return JournalTail(found, tuple(lines))


def split_lines(content: bytes) -> Sequence[bytes]:
    """Return the lines with their newlines. Raises JournalDamaged for an incomplete last line.

    Stores write objects completely or not at all, so the last line must be complete too.
    """
    if not content.endswith(b"\n"):
        raise JournalDamaged("A part of the journal in the bucket is cut off: restore it from a copy.")
    return [line + b"\n" for line in content[:-1].split(b"\n")]


class BucketJournal:
    """A `Journal` in a bucket, held by this process.

    `place` is the prefix of its objects' names. `claim_journal` creates it and takes the lease; `release` gives the
    lease back. It belongs to one event loop, in which a task renews the lease.
    """

    def __init__(
        self,
        objects: VersionedObjectStore,
        place: str,
        now: Callable[[], float],
        *,
        tail: JournalTail,
        version: ObjectVersion,
        size: int,
        entries: list[JournalEntry],
    ) -> None:
        self._objects, self._prefix, self._now = objects, place, now
        self._tail, self._version = tail, version
        self._entries = entries
        self._size = size
        self._pending: list[bytes] = []
        self._write_lock = asyncio.Lock()  # only one write of the tail at a time
        self._is_lost = False
        self._paused_until = 0.0
        self._pause_reason = ""
        self._renewed_at = time.monotonic()
        self._renewal_task: asyncio.Task[None] | None = asyncio.create_task(self._renew_lease())

    def entries(self) -> Sequence[JournalEntry]:
        return self._entries

    def append(self, entry: JournalEntry) -> None:
        """Keep the entry in memory until the next commit."""
        self._raise_if_lost()
        line = dump_entry(entry)
        if self._size + len(line) > JOURNAL_BYTES:
            raise JournalUnwritable(journal_too_long_text(JOURNAL_BYTES))
        self._pending.append(line)
        self._entries.append(entry)
        self._size += len(line)

    async def flush(self) -> None:
        """Commit: nothing short of the bucket survives this process."""
        await self.commit()

    async def commit(self) -> None:
        """Store the pending entries.

        Raises JournalWriteDelayed when the bucket does not accept them, SessionTaken when another process holds the
        session.
        """
        self._raise_if_lost()
        if self._pending:
            await self._run_to_completion(self._store())

    async def confirm_lease(self) -> None:
        """Make sure, with a write, that this process still holds the session. Raises like `commit`."""
        self._raise_if_lost()
        await self._run_to_completion(self._store(anyway=True))

    async def catch_up(self) -> None:
        """Commit now, even if the last attempt failed only a moment ago. Raises like `commit`."""
        self._paused_until = 0.0
        await self.commit()

    def close(self) -> None:
        """Do nothing: `release` gives the journal back."""

    async def release(self) -> None:
        """Store what can be stored and give up the lease. Never raises; nothing can be appended afterwards."""
        if self._renewal_task is not None:
            beating, self._renewal_task = self._renewal_task, None
            await self._run_to_completion(self._store_and_release(beating))

    async def _store_and_release(self, beating: asyncio.Task[None]) -> None:
        beating.cancel()
        await asyncio.wait((beating,))
        self._paused_until = 0.0
        if not self._is_lost:
            with suppress(JournalUnwritable, JournalDamaged, ObjectStoreUnusable):
                if self._entries:
                    await self._store(anyway=True, holder="", until=0.0)
                else:
                    await self._remove_empty_session()
        self._is_lost = True

    async def _remove_empty_session(self) -> None:
        """Remove a session that never began: mark it as removed, then delete it.

        A process that lost the session cannot mark it. If the lease ran out after marking, the mark stays: a delete is
        unconditional, and another process may have started the session again by now.
        """
        await self._store(anyway=True, removed=True)
        if self._now() < self._tail.head.until:
            await self._objects.delete(f"{self._prefix}/{TAIL_NAME}")

    def _raise_if_lost(self) -> None:
        if self._is_lost:
            raise session_taken_error(self._prefix)

    async def _run_to_completion(self, work: Awaitable[None]) -> None:
        """Finish the work even if the caller is cancelled: otherwise it would be unknown what is stored."""
        doing = asyncio.ensure_future(work)
        try:
            await asyncio.shield(doing)
        except asyncio.CancelledError:
            await asyncio.wait({doing})
            if not doing.cancelled():
                doing.exception()
            raise

    async def _store(self, *, anyway: bool = False, **told: Any) -> None:
        """Write the tail with the pending entries; `told` holds further fields of its head."""
        async with self._write_lock:
            self._raise_if_lost()
            if not self._pending and not anyway:
                return  # an earlier commit stored them too
            if time.monotonic() < self._paused_until:
                raise JournalWriteDelayed(self._pause_reason)
            try:
                async with asyncio.timeout(COMMIT_S):
                    await self._seal_segment()
                    await self._swap_tail(told)
            except (ObjectStoreUnusable, TimeoutError) as error:
                raise self._pause_writes(error) from error

    def _pause_writes(self, error: Exception) -> JournalWriteDelayed:
        """Pause writes for COMMIT_REST_S, so that a run does not wait at every step for an unavailable bucket."""
        words = str(error) or f"It did not answer within {COMMIT_S:.0f} s."
        self._pause_reason = f"The session is currently not saved. {words}"
        self._paused_until = time.monotonic() + COMMIT_REST_S
        return JournalWriteDelayed(self._pause_reason)

    async def _seal_segment(self) -> None:
        """Seal the tail's entries as a segment once there are enough of them.

        The segment holds exactly what the last written tail held, because that is part of the history. A segment that
        exists already was made of an earlier tail by a process that then died; it is used as it is.
        """
        tail = self._tail
        if tail.size < SEGMENT_BYTES:
            return
        content, name = b"".join(tail.lines), f"{self._prefix}/{segment_name(tail.head.first, tail.head.life)}"
        if await self._objects.compare_and_swap(name, content, None) is None:
            found = await self._objects.get_versioned(name)
            if found is None or not content.startswith(found.content):
                await self._resolve_conflict()  # raises SessionTaken if another process holds the session
                raise JournalDamaged(f"{name} in the bucket does not belong to this session: restore it from a copy.")
            content = found.content
        sealed = len(split_lines(content))
        head = msgspec.structs.replace(tail.head, first=tail.head.first + sealed)
        self._tail = JournalTail(head, tail.lines[sealed:])

    async def _swap_tail(self, attributes: Mapping[str, Any]) -> None:
        count = len(self._pending)
        head = self._tail.head
        head = msgspec.structs.replace(
            head, **{"serial": head.serial + 1, "until": self._now() + LEASE_S, **attributes}
        )
        tail = JournalTail(head, (*self._tail.lines, *self._pending[:count]))
        version = await swap_and_verify(self._objects, f"{self._prefix}/{TAIL_NAME}", encode_tail(tail), self._version)
        if version is None:
            await self._resolve_conflict()
            await self._swap_tail(attributes)
            return
        self._tail, self._version = tail, version
        del self._pending[:count]
        self._renewed_at = time.monotonic()

    async def _resolve_conflict(self) -> None:
        """Find out who wrote the tail that made our write fail.

        It may be a write of our own that had timed out; then that one counts. Otherwise another process holds the
        session, perhaps a newer version whose tail cannot be parsed, and SessionTaken is raised.
        """
        found, tail = await self._objects.get_versioned(f"{self._prefix}/{TAIL_NAME}", JOURNAL_BYTES), None
        with suppress(JournalDamaged, SessionUnreadable):
            tail = parse_tail(found.content) if found is not None else None
        if found is None or tail is None or tail.head.holder != self._tail.head.holder:
            self._is_lost = True
            raise session_taken_error(self._prefix)
        del self._pending[: tail.end - self._tail.end]
        self._tail, self._version = tail, found.version

    async def _renew_lease(self) -> None:
        """Renew the lease while no commit does it. An unavailable bucket is reported by the next commit."""
        while not self._is_lost:
            rest = self._renewed_at + LEASE_BEAT_S - time.monotonic()
            if rest > 0:
                await asyncio.sleep(rest)
                continue
            self._paused_until = 0.0  # during a pause the lease could run out and another process take the session
            with suppress(JournalUnwritable, JournalDamaged):
                await self._run_to_completion(self._store(anyway=True))
            self._renewed_at = time.monotonic()


async def swap_and_verify(
    objects: VersionedObjectStore, name: str, content: bytes, known: ObjectVersion | None
) -> ObjectVersion | None:
    """Write on condition like the store's `compare_and_swap`, and read the object when the outcome is unclear.

    It is unclear when the response was lost, or when the store refused its own retry. `content` must be unique. Raises
    ObjectStoreUnusable when the outcome stays unknown.
    """
    try:
        if version := await objects.compare_and_swap(name, content, known):
            return version
        failure = None
    except ObjectStoreUnusable as error:
        failure = error
    found = await objects.get_versioned(name)
    if found is not None and found.content == content:
        return found.version
    if failure is None or (found.version if found else None) != known:
        return None
    raise failure


async def look_up_tail(objects: VersionedObjectStore, place: str) -> VersionedContent | None:
    """Return the session's tail. Raises ObjectStoreUnusable, also after COMMIT_S seconds: a run waits for it."""
    try:
        async with asyncio.timeout(COMMIT_S):
            return await objects.get_versioned(f"{place}/{TAIL_NAME}", JOURNAL_BYTES)
    except TimeoutError as error:
        raise ObjectStoreUnusable(
            f"The store did not answer within {COMMIT_S:.0f} s; check whether it works."
        ) from error


async def claim_journal(
    objects: VersionedObjectStore,
    place: str,
    now: Callable[[], float],
    *,
    holder: str,
    found: VersionedContent | None,
    first_lines: Sequence[bytes] = (),
) -> BucketJournal:
    """Take the session for this process and return its journal.

    `found` is its current tail; `first_lines` are the entries of a new session. Raises SessionTaken, JournalDamaged,
    SessionUnreadable, ObjectStoreUnusable.
    """
    before = JournalTail(TailHead(life=holder[:8]), tuple(first_lines)) if found is None else parse_tail(found.content)
    if found is not None and before.head.holder and now() < before.head.until:
        raise session_taken_error(place)
    if before.head.removed:
        raise session_taken_error(place)
    head = msgspec.structs.replace(before.head, serial=before.head.serial + 1, holder=holder, until=now() + LEASE_S)
    tail = JournalTail(head, before.lines)
    version = await swap_and_verify(
        objects, f"{place}/{TAIL_NAME}", encode_tail(tail), found.version if found else None
    )
    if version is None:
        raise session_taken_error(place)
    try:
        lines = [*await read_sealed_lines(objects, place, head), *tail.lines]
        entries, size = await asyncio.to_thread(_load_entries, lines), sum(map(len, lines))
        return BucketJournal(objects, place, now, tail=tail, version=version, size=size, entries=entries)
    except BaseException:
        free = msgspec.structs.replace(head, serial=head.serial + 1, holder="", until=0.0)
        with suppress(ObjectStoreUnusable):
            await objects.compare_and_swap(f"{place}/{TAIL_NAME}", encode_tail(JournalTail(free, tail.lines)), version)
        raise


async def read_bucket_journal(objects: VersionedObjectStore, place: str) -> Sequence[JournalEntry] | None:
    """Return the entries without taking the session; none while it is being removed, None if there is no journal.

    Raises like `claim_journal`, but never SessionTaken.
    """
    found = await look_up_tail(objects, place)
    if found is None:
        return None
    tail = parse_tail(found.content)
    if tail.head.removed:
        return []
    return await asyncio.to_thread(_load_entries, [*await read_sealed_lines(objects, place, tail.head), *tail.lines])


def _load_entries(lines: Sequence[bytes]) -> list[JournalEntry]:
    """Parse the entries. Call this in a thread: a long journal takes seconds."""
    return [load_entry(line, number) for number, line in enumerate(lines, 1)]


async def read_sealed_lines(objects: VersionedObjectStore, place: str, head: TailHead) -> list[bytes]:
    """Return the lines of all entries before the tail. Segments never change, so they can be read at any time."""
    upto, life = head.first, head.life
    if not upto:
        return []
    ours = [one for one in await objects.list_objects(f"{place}/journal") if one.name.endswith(f"-{life}.jsonl")]
    listed = [one for one in ours if one.name < f"{place}/{segment_name(upto, life)}"]
    if sum(one.size for one in listed) > JOURNAL_BYTES:
        raise JournalDamaged(f"The journal in the bucket is larger than {JOURNAL_BYTES:,} bytes: move it away.")
    slots = asyncio.Semaphore(SEGMENTS_AT_ONCE)

    async def content(name: str) -> bytes:
        async with slots:
            return await objects.get(name) or b""

    lines: list[bytes] = []
    contents = await asyncio.gather(*(content(one.name) for one in listed))
    for one, found in zip(listed, contents, strict=True):
        if one.name != f"{place}/{segment_name(len(lines), life)}":
            break
        lines.extend(split_lines(found))
    if len(lines) != upto:
        raise JournalDamaged(f"The journal in the bucket lacks the entries after {len(lines)}: restore it.")
    return lines


def session_taken_error(place: str) -> SessionTaken:
    """Return the error for a session that another process holds."""
    return SessionTaken(f"Another process is using {place}; wait for it, or use another session.")
