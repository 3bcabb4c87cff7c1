"""Known failures of each project, in a bucket that hosts share (V6, O3): known-failures/shards/PROJECT/N.json and
known-failures/projects/PROJECT.json, swapped on condition. What they say is `known_shard`'s business.

There is no copy in a file: to know whether one is still true takes the same request as to read the shard itself, and
what is not true makes a note call a failure new that another host has seen. What was read last is held in memory, so
that remembering it is one request; a write that rests on something older is refused by the store.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date
from weakref import WeakValueDictionary

from hummingbird.adapters.stores.exchanging import Change, Patience, exchanged
from hummingbird.adapters.stores.known_shard import (
    Failure,
    Project,
    Shard,
    bounded,
    parsed,
    shard_of,
    told_of,
    trend_of,
    with_analysis,
    with_sighting,
    without,
    written,
)
from hummingbird.adapters.stores.known_words import day_of, digest_of, named
from hummingbird.domain.errors import JournalDamaged, SessionUnreadable
from hummingbird.domain.limits import KNOWN_LISTED, KNOWN_SHARD_BYTES, KNOWN_SHARDS
from hummingbird.domain.session_limits import SEGMENTS_AT_ONCE, SHARED_HELD
from hummingbird.ports.known_failures import Analysed, FailureDay, KnownFailure, Sighting
from hummingbird.ports.objects import Looked, VersionedObjects

_SHARDS, _PROJECTS = "known-failures/shards", "known-failures/projects"


class BucketKnownFailures:
    """Fulfils ports.known_failures.KnownFailures. Belongs to one event loop."""

    def __init__(self, objects: VersionedObjects, address: str, patience: Patience | None = None) -> None:
        self._objects, self._address = objects, address.rstrip("/")
        self._patience = patience or Patience()
        self._what = f"The ledger of known failures in {self._address}"
        self._held: OrderedDict[str, Looked] = OrderedDict()
        self._turns = WeakValueDictionary[str, asyncio.Lock]()  # changes of ours do not compete with each other
        self._slots = asyncio.Semaphore(SEGMENTS_AT_ONCE)

    async def seen(self, sighting: Sighting) -> KnownFailure:
        project, fingerprint = named(sighting.project), named(sighting.fingerprint)
        name = _shard_name(project, shard_of(fingerprint))
        remembered: Failure | None = None

        def after(content: bytes | None) -> bytes | None:
            nonlocal remembered
            shard = self._shard(name, content, project)
            more = with_sighting(shard, sighting)
            remembered = (more or shard).failures[fingerprint]
            return None if more is None else bounded(more, fingerprint)

        async def change(content: bytes | None) -> bytes | None:
            return await asyncio.to_thread(after, content)

        async with self._patience.in_time(self._what):
            await self._changed(name, change)
            await self._listed(project, sighting.at)
        assert remembered is not None, "the last change saw it"
        return told_of(project, fingerprint, remembered)

    async def analysed(self, project: str, fingerprint: str, analysis: Analysed, since: float) -> None:
        name = _shard_name(named(project), shard_of(named(fingerprint)))

        def after(content: bytes | None) -> bytes | None:
            more = with_analysis(self._shard(name, content, project), fingerprint, analysis, since)
            return None if more is None else bounded(more, fingerprint)

        async def change(content: bytes | None) -> bytes | None:
            return await asyncio.to_thread(after, content)

        async with self._patience.in_time(self._what):
            await self._changed(name, change)

    async def known(self, project: str, fingerprint: str) -> KnownFailure | None:
        return (await self.known_many(project, (fingerprint,))).get(fingerprint)

    async def known_many(self, project: str, fingerprints: Sequence[str]) -> Mapping[str, KnownFailure]:
        """A request a shard, all at once."""
        wanted = dict.fromkeys(named(one) for one in fingerprints)
        found = await self._failures(named(project), sorted({shard_of(one) for one in wanted}))
        return {one: told_of(project, one, found[one]) for one in wanted if one in found}

    async def projects(self, limit: int) -> Sequence[str]:
        async with self._patience.in_time(self._what):
            names = [one.name for one in await self._objects.listed(_PROJECTS)]
            found = await asyncio.gather(*map(self._looked, names))
        all_of_them = [
            parsed(one.content, Project, self._where(name)) for name, one in zip(names, found, strict=True) if one
        ]
        newest = sorted((one for one in all_of_them if one.has_any), key=lambda one: -one.last_seen)
        return [one.project for one in newest[: _at_most(limit)]]

    async def recent(self, project: str, limit: int) -> Sequence[KnownFailure]:
        found = await self._failures(named(project), range(KNOWN_SHARDS))
        newest = sorted(found, key=lambda one: -found[one].last_seen)[: _at_most(limit)]
        return [told_of(project, one, found[one]) for one in newest]

    async def trend(self, project: str, since: date, fingerprint: str | None = None) -> Sequence[FailureDay]:
        if fingerprint is None:
            return trend_of((await self._failures(named(project), range(KNOWN_SHARDS))).values(), since)
        found = await self._failures(named(project), (shard_of(named(fingerprint)),))
        return trend_of([found[fingerprint]] if fingerprint in found else [], since)

    async def trends(
        self, project: str, since: date, fingerprints: Sequence[str]
    ) -> Mapping[str, Sequence[FailureDay]]:
        found = await self._failures(named(project), sorted({shard_of(named(one)) for one in fingerprints}))
        return {one: trend_of([found[one]] if one in found else [], since) for one in fingerprints}

    async def forget(self, before: float) -> int:
        """Shard by shard, each in its time. One that cannot be read keeps nobody from the others."""
        day_of(before)
        async with self._patience.in_time(self._what):
            names = [one.name for one in await self._objects.listed(_SHARDS)]
            projects = [one.name for one in await self._objects.listed(_PROJECTS)]
        gone, failure = 0, None
        for forgets, name in (*((self._forgotten, one) for one in names), *((self._unlisted, one) for one in projects)):
            try:
                gone += await forgets(name, before)
            except (JournalDamaged, SessionUnreadable) as error:
                failure = error
        if failure is not None:
            raise failure
        return gone

    async def _forgotten(self, name: str, before: float) -> int:
        gone = 0

        def after(content: bytes | None) -> bytes | None:
            nonlocal gone
            shard = self._shard(name, content, "")
            less, gone = without(shard, before)
            return None if less == shard else written(less)

        async def change(content: bytes | None) -> bytes | None:
            return await asyncio.to_thread(after, content)

        async with self._patience.in_time(self._what):
            await self._changed(name, change)
        return gone

    async def _listed(self, project: str, at: float) -> None:
        """A job that is told of for the second time is no news, but whoever told of it first may have died here."""
        name = _project_name(project)

        async def change(content: bytes | None) -> bytes | None:
            forgotten = 0.0
            with suppress(JournalDamaged):  # there is nothing in it that we do not know
                before = None if content is None else parsed(content, Project, self._where(name))
                if before is not None and before.last_seen >= at:
                    return None
                forgotten = before.forgotten if before else 0.0
            return written(Project(project=project, last_seen=at, forgotten=forgotten))

        await self._changed(name, change, trusting=True)

    async def _unlisted(self, name: str, before: float) -> int:
        async def change(content: bytes | None) -> bytes | None:
            if content is None:
                return None
            project = parsed(content, Project, self._where(name))
            if project.last_seen >= before or project.forgotten >= before:
                return None
            return written(Project(project=project.project, last_seen=project.last_seen, forgotten=before))

        async with self._patience.in_time(self._what):
            await self._changed(name, change)
        return 0  # failures

    async def _changed(self, name: str, change: Change, *, trusting: bool = False) -> None:
        """Nobody is told that all is well as it is from something older, but for who trusts it."""
        async with self._turn(name):
            held = self._held.pop(name, None)
            found = await exchanged(self._objects, name, change, most_bytes=KNOWN_SHARD_BYTES, held=held)
            if found is held and held is not None and not trusting:
                found = await exchanged(self._objects, name, change, most_bytes=KNOWN_SHARD_BYTES)
            if found is not None:
                self._hold(name, found)

    def _turn(self, name: str) -> asyncio.Lock:
        turn = self._turns.get(name)
        if turn is None:
            turn = self._turns[name] = asyncio.Lock()
        return turn

    async def _failures(self, project: str, shards: Sequence[int]) -> dict[str, Failure]:
        names = [_shard_name(project, number) for number in shards]
        async with self._patience.in_time(self._what):
            found = await asyncio.gather(*map(self._looked, names))
        failures: dict[str, Failure] = {}
        for name, looked in zip(names, found, strict=True):
            if looked is not None:
                shard = await asyncio.to_thread(self._shard, name, looked.content, project)
                self._hold(name, looked)
                failures.update(shard.failures)
        return failures

    async def _looked(self, name: str) -> Looked | None:
        async with self._slots:
            return await self._objects.look(name, KNOWN_SHARD_BYTES)

    def _hold(self, name: str, looked: Looked) -> None:
        self._held[name] = looked
        self._held.move_to_end(name)
        while len(self._held) > SHARED_HELD:
            self._held.popitem(last=False)

    def _shard(self, name: str, content: bytes | None, project: str) -> Shard:
        return Shard(project=project) if content is None else parsed(content, Shard, self._where(name))

    def _where(self, name: str) -> str:
        return f"{self._address}/{name}"


def _at_most(limit: int) -> int:
    return max(0, min(limit, KNOWN_LISTED))


def _shard_name(project: str, number: int) -> str:
    return f"{_SHARDS}/{digest_of(project).hex()}/{number}.json"


def _project_name(project: str) -> str:
    return f"{_PROJECTS}/{digest_of(project).hex()}.json"
