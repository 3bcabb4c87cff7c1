"""A journal in a bucket (S1, L2): sealed segments that never change, and a tail that every commit writes anew.

Nothing can be appended to an object. So what is new goes with the unsealed rest into one object, the tail, and when
that has grown to SEGMENT_BYTES it becomes a segment: a commit costs the same however long the journal is.

Every write of the tail is conditional on the one before, so the tails form one line, and whoever was overtaken learns
it from the next commit, before the effect which that announces: no clock and no lease is needed for that. The lease in
the tail only keeps others away while its holder gives signs of life. A segment is made of a tail that stands in that
line, and only where there is none: whoever seals, it is the same beginning of the same history.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from hummingbird.adapters.stores.journal import too_long
from hummingbird.adapters.stores.tail import NAME, Head, Tail, parsed, segment, split, written
from hummingbird.domain.errors import (
    JournalBehind,
    JournalDamaged,
    JournalTaken,
    JournalUnwritable,
    ObjectsUnusable,
    SessionUnreadable,
)
from hummingbird.domain.journal import Entry, dump, load
from hummingbird.domain.session_limits import (
    COMMIT_REST_S,
    COMMIT_S,
    JOURNAL_BYTES,
    LEASE_BEAT_S,
    LEASE_S,
    SEGMENT_BYTES,
    SEGMENTS_AT_ONCE,
)
from hummingbird.ports.objects import Looked, Version, VersionedObjects


class BucketJournal:
    """Fulfils ports.journal.Journal. `place` is what its objects' names begin with. Belongs to one event loop: made by
    `claimed`, which gives it to this process, and let go of by `release`."""

    def __init__(
        self,
        objects: VersionedObjects,
        place: str,
        now: Callable[[], float],
        *,
        tail: Tail,
        version: Version,
        size: int,
        entries: list[Entry],
    ) -> None:
        self._objects, self._place, self._now = objects, place, now
        self._tail, self._version = tail, version
        self._entries = entries
        self._size = size
        self._pending: list[bytes] = []
        self._turn = asyncio.Lock()  # one write of the tail at a time
        self._lost = False
        self._rests_until = 0.0
        self._complaint = ""
        self._said_at = time.monotonic()
        self._beating: asyncio.Task[None] | None = asyncio.create_task(self._beat())

    def entries(self) -> Sequence[Entry]:
        return self._entries

    def append(self, entry: Entry) -> None:
        """Kept in memory until the next commit."""
        self._check()
        line = dump(entry)
        if self._size + len(line) > JOURNAL_BYTES:
            raise JournalUnwritable(too_long(JOURNAL_BYTES))
        self._pending.append(line)
        self._entries.append(entry)
        self._size += len(line)

    async def outlive(self) -> None:
        """There is nothing between this process and the bucket."""
        await self.commit()

    async def commit(self) -> None:
        """Raises JournalBehind when the bucket does not take it, JournalTaken when somebody else has the session."""
        self._check()
        if self._pending:
            await self._to_its_end(self._store())

    async def confirm(self) -> None:
        """That nobody else has the session by now. Raises as `commit`."""
        self._check()
        await self._to_its_end(self._store(anyway=True))

    async def catch_up(self) -> None:
        """Now, however short the time is since the bucket was tried last. Raises as `commit`."""
        self._rests_until = 0.0
        await self.commit()

    def close(self) -> None:
        """`release` is what lets go of it."""

    async def release(self) -> None:
        """With all that could be stored. Never raises. Takes nothing any more."""
        if self._beating is not None:
            beating, self._beating = self._beating, None
            await self._to_its_end(self._released(beating))

    async def _released(self, beating: asyncio.Task[None]) -> None:
        beating.cancel()
        await asyncio.wait((beating,))
        self._rests_until = 0.0
        if not self._lost:
            with suppress(JournalUnwritable, JournalDamaged, ObjectsUnusable):
                if self._entries:
                    await self._store(anyway=True, holder="", until=0.0)
                else:
                    await self._vanish()
        self._lost = True

    async def _vanish(self) -> None:
        """Remove a session that never began: mark it as removed, then delete it.

        Somebody who was overtaken cannot mark it. Whoever hung after marking leaves the mark: the session may have
        begun anew by now, and a delete has no condition.
        """
        await self._store(anyway=True, removed=True)
        if self._now() < self._tail.head.until:
            await self._objects.delete(f"{self._place}/{NAME}")

    def _check(self) -> None:
        if self._lost:
            raise taken(self._place)

    async def _to_its_end(self, work: Awaitable[None]) -> None:
        """Also when whoever waits for it is cancelled: nobody would know then what is stored."""
        doing = asyncio.ensure_future(work)
        try:
            await asyncio.shield(doing)
        except asyncio.CancelledError:
            await asyncio.wait({doing})
            if not doing.cancelled():
                doing.exception()
            raise

    async def _store(self, *, anyway: bool = False, **told: Any) -> None:
        """`told`: what the tail's head says besides."""
        async with self._turn:
            self._check()
            if not self._pending and not anyway:
                return  # a commit that came before took it along
            if time.monotonic() < self._rests_until:
                raise JournalBehind(self._complaint)
            try:
                async with asyncio.timeout(COMMIT_S):
                    await self._seal()
                    await self._swap(told)
            except (ObjectsUnusable, TimeoutError) as error:
                raise self._behind(error) from error

    def _behind(self, error: Exception) -> JournalBehind:
        """The run should not wait for a bucket that is away at every step."""
        words = str(error) or f"It did not answer within {COMMIT_S:.0f} s."
        self._complaint = f"The session is not stored any further. {words}"
        self._rests_until = time.monotonic() + COMMIT_REST_S
        return JournalBehind(self._complaint)

    async def _seal(self) -> None:
        """What is made a segment is exactly what the last tail held, for that is part of the line. One that is there
        already was made of an earlier tail of it, by somebody who then died: it is taken as it is."""
        tail = self._tail
        if tail.size < SEGMENT_BYTES:
            return
        content, name = b"".join(tail.lines), f"{self._place}/{segment(tail.head.first, tail.head.life)}"
        if await self._objects.swap(name, content, None) is None:
            found = await self._objects.look(name)
            if found is None or not content.startswith(found.content):
                await self._overtaken()  # whoever was, has no say in it
                raise JournalDamaged(f"{name} in the bucket is not of this session: restore it from a copy.")
            content = found.content
        sealed = len(split(content))
        head = msgspec.structs.replace(tail.head, first=tail.head.first + sealed)
        self._tail = Tail(head, tail.lines[sealed:])

    async def _swap(self, told: Mapping[str, Any]) -> None:
        count = len(self._pending)
        head = self._tail.head
        head = msgspec.structs.replace(head, **{"serial": head.serial + 1, "until": self._now() + LEASE_S, **told})
        tail = Tail(head, (*self._tail.lines, *self._pending[:count]))
        version = await swapped(self._objects, f"{self._place}/{NAME}", written(tail), self._version)
        if version is None:
            await self._overtaken()
            await self._swap(told)
            return
        self._tail, self._version = tail, version
        del self._pending[:count]
        self._said_at = time.monotonic()

    async def _overtaken(self) -> None:
        """By a write of our own that we had given up waiting for, which then counts, or by somebody else: a newer
        version of us perhaps, whose tail cannot be read."""
        found, tail = await self._objects.look(f"{self._place}/{NAME}", JOURNAL_BYTES), None
        with suppress(JournalDamaged, SessionUnreadable):
            tail = parsed(found.content) if found is not None else None
        if found is None or tail is None or tail.head.holder != self._tail.head.holder:
            self._lost = True
            raise taken(self._place)
        del self._pending[: tail.end - self._tail.end]
        self._tail, self._version = tail, found.version

    async def _beat(self) -> None:
        """A commit is a sign of life too. A bucket that is away is met by the next commit."""
        while not self._lost:
            rest = self._said_at + LEASE_BEAT_S - time.monotonic()
            if rest > 0:
                await asyncio.sleep(rest)
                continue
            self._rests_until = 0.0  # a lease that ran out while we rest would be somebody else's
            with suppress(JournalUnwritable, JournalDamaged):
                await self._to_its_end(self._store(anyway=True))
            self._said_at = time.monotonic()


async def swapped(objects: VersionedObjects, name: str, content: bytes, known: Version | None) -> Version | None:
    """As the store's own verb, but certain: where the answer was lost, or is a no to something that was tried before,
    a look tells whether it is there. `content` never comes again. Raises ObjectsUnusable when nobody can tell."""
    try:
        if version := await objects.swap(name, content, known):
            return version
        failure = None
    except ObjectsUnusable as error:
        failure = error
    found = await objects.look(name)
    if found is not None and found.content == content:
        return found.version
    if failure is None or (found.version if found else None) != known:
        return None
    raise failure


async def looked(objects: VersionedObjects, place: str) -> Looked | None:
    """The session's tail. Raises ObjectsUnusable, also when the bucket takes its time: a run waits for it."""
    try:
        async with asyncio.timeout(COMMIT_S):
            return await objects.look(f"{place}/{NAME}", JOURNAL_BYTES)
    except TimeoutError as error:
        raise ObjectsUnusable(f"The store did not answer within {COMMIT_S:.0f} s; see whether it works.") from error


async def claimed(
    objects: VersionedObjects,
    place: str,
    now: Callable[[], float],
    *,
    holder: str,
    found: Looked | None,
    first_lines: Sequence[bytes] = (),
) -> BucketJournal:
    """The session's journal, ours from now on. `found`: its tail; `first_lines`: entries of one that is new. Raises
    JournalTaken, JournalDamaged, SessionUnreadable, ObjectsUnusable."""
    before = Tail(Head(life=holder[:8]), tuple(first_lines)) if found is None else parsed(found.content)
    if found is not None and before.head.holder and now() < before.head.until:
        raise taken(place)
    if before.head.removed:
        raise taken(place)
    head = msgspec.structs.replace(before.head, serial=before.head.serial + 1, holder=holder, until=now() + LEASE_S)
    tail = Tail(head, before.lines)
    version = await swapped(objects, f"{place}/{NAME}", written(tail), found.version if found else None)
    if version is None:
        raise taken(place)
    try:
        lines = [*await sealed_lines(objects, place, head), *tail.lines]
        entries, size = await asyncio.to_thread(_loaded, lines), sum(map(len, lines))
        return BucketJournal(objects, place, now, tail=tail, version=version, size=size, entries=entries)
    except BaseException:
        free = msgspec.structs.replace(head, serial=head.serial + 1, holder="", until=0.0)
        with suppress(ObjectsUnusable):
            await objects.swap(f"{place}/{NAME}", written(Tail(free, tail.lines)), version)
        raise


async def read(objects: VersionedObjects, place: str) -> Sequence[Entry] | None:
    """What the journal holds by now, nothing while it is being removed; None if there is none. Raises as `claimed`, but
    for JournalTaken."""
    found = await looked(objects, place)
    if found is None:
        return None
    tail = parsed(found.content)
    if tail.head.removed:
        return []
    return await asyncio.to_thread(_loaded, [*await sealed_lines(objects, place, tail.head), *tail.lines])


def _loaded(lines: Sequence[bytes]) -> list[Entry]:
    """Beside the event loop: a long one takes seconds, and others share that."""
    return [load(line, number) for number, line in enumerate(lines, 1)]


async def sealed_lines(objects: VersionedObjects, place: str, head: Head) -> list[bytes]:
    """Of all entries before the tail's. They never change, so they can be read at any time."""
    upto, life = head.first, head.life
    if not upto:
        return []
    ours = [one for one in await objects.listed(f"{place}/journal") if one.name.endswith(f"-{life}.jsonl")]
    listed = [one for one in ours if one.name < f"{place}/{segment(upto, life)}"]
    if sum(one.size for one in listed) > JOURNAL_BYTES:
        raise JournalDamaged(f"The journal in the bucket is larger than {JOURNAL_BYTES:,} bytes: move it away.")
    slots = asyncio.Semaphore(SEGMENTS_AT_ONCE)

    async def content(name: str) -> bytes:
        async with slots:
            return await objects.get(name) or b""

    lines: list[bytes] = []
    contents = await asyncio.gather(*(content(one.name) for one in listed))
    for one, found in zip(listed, contents, strict=True):
        if one.name != f"{place}/{segment(len(lines), life)}":
            break
        lines.extend(split(found))
    if len(lines) != upto:
        raise JournalDamaged(f"The journal in the bucket lacks what comes after entry {len(lines)}: restore it.")
    return lines


def taken(place: str) -> JournalTaken:
    return JournalTaken(f"Another process is using {place}; wait for it, or use another session.")
