"""Store the known failures of each project in a bucket that several hosts share.

The failures of a project are spread over known-failures/shards/PROJECT/N.json; known-failures/projects/PROJECT.json
says that a project has some. All are updated with conditional writes.

Unlike the SQLite store, a shard is limited in size: per failure it remembers only the latest jobs and merge requests,
as hashes, and the oldest failures make room when the shard is full.

There is no local copy: checking whether one is current would cost the same request as reading the shard, and an
outdated one would make a note call a failure new that another host has seen. The shards read last are kept in memory,
so that recording a sighting takes one request; the store refuses a write that is based on an outdated shard.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from secrets import token_hex
from typing import Annotated, Any, TypeAlias, TypeVar
from weakref import WeakValueDictionary

import msgspec

from hummingbird.core.errors import JournalDamaged, SessionUnreadable
from hummingbird.core.limits import (
    KNOWN_DAYS,
    KNOWN_EXCERPT_CHARS,
    KNOWN_LINKS,
    KNOWN_LISTED,
    KNOWN_PLACES,
    KNOWN_SHARD_BYTES,
    KNOWN_SHARDS,
    KNOWN_TRACES,
)
from hummingbird.core.protocols.storage import (
    AnalysisLink,
    FailureDay,
    FailureSighting,
    KnownFailure,
    VersionedContent,
    VersionedObjectStore,
)
from hummingbird.core.sessions import SEGMENTS_AT_ONCE, SHARED_HELD
from hummingbird.storage.compare_and_swap import BucketCircuitBreaker, ContentUpdate, update_object
from hummingbird.storage.ledger_fields import VersionedDecoder, check_ledger_name, text_digest, truncate, utc_day

FORMAT = 1
Ordinal: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=date.max.toordinal())]
_TRACE_CHARS = 24  # hexadecimal digits of a hash, 96 bits


class TimedText(msgspec.Struct, frozen=True, array_like=True):
    """A text, or a hash of one, and when it was seen.

    `author` is the pseudonym of a merge request's author; empty if unknown, because earlier versions recorded none.
    """

    text: str
    at: float
    author: str = ""


class StoredAnalysis(msgspec.Struct, frozen=True, kw_only=True):
    """An `AnalysisLink` as it is stored."""

    at: float
    merge_request: str
    link: str


class StoredFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A `KnownFailure` as it is stored.

    `jobs` holds hashes in the order in which they were recorded. `merge_requests`, `branches` and `links` are newest
    first; `earlier` holds hashes of the merge requests that no longer fit. `days` are pairs of an ordinal and a count.
    """

    kind: str = ""
    class_: str = msgspec.field(default="", name="class")
    title: str = ""
    excerpt: str = ""
    first_seen: float
    last_seen: float
    count: int = 0
    merge_requests: tuple[TimedText, ...] = ()
    earlier: tuple[TimedText, ...] = ()
    branches: tuple[TimedText, ...] = ()
    links: tuple[TimedText, ...] = ()
    jobs: tuple[TimedText, ...] = ()
    days: tuple[tuple[Ordinal, int], ...] = ()
    analysis: StoredAnalysis | None = None


class FailureShard(msgspec.Struct, frozen=True, kw_only=True):
    """Some failures of a project. `nonce` is new in each write, because stores distinguish versions by content."""

    known: int = FORMAT
    nonce: str = ""
    project: str = ""
    failures: dict[str, StoredFailure] = {}


class StoredProject(msgspec.Struct, frozen=True, kw_only=True):
    """A project that has known failures, unless all of them were deleted since (`forgotten`)."""

    known: int = FORMAT
    nonce: str = ""
    project: str
    last_seen: float
    forgotten: float = 0.0

    @property
    def has_any(self) -> bool:
        """Return whether the project still has known failures."""
        return self.last_seen >= self.forgotten


Known = TypeVar("Known", FailureShard, StoredProject)
_encoder = msgspec.json.Encoder()
_decoders: dict[Any, VersionedDecoder[Any]] = {
    kind: VersionedDecoder(kind, "known", FORMAT) for kind in (FailureShard, StoredProject)
}


def failure_shard_number(fingerprint: str) -> int:
    """Return the shard that holds the failure."""
    return text_digest(fingerprint)[0] % KNOWN_SHARDS


def encode_object(known: FailureShard | StoredProject) -> bytes:
    """Encode a shard or a project with a new nonce."""
    return _encoder.encode(msgspec.structs.replace(known, nonce=token_hex(8)))


def decode_object(content: bytes, kind: type[Known], where: str) -> Known:
    """Decode a shard or a project. `where` names it in error sentences.

    Raises JournalDamaged, and SessionUnreadable for an object of a newer version.
    """
    found: Known = _decoders[kind].decode(
        content,
        newer=SessionUnreadable(
            f"{where} was written by a newer version; update this one to use the ledger of known failures."
        ),
        damaged=JournalDamaged(
            f"{where} is damaged and cannot be used as part of the ledger of known failures; move it away."
        ),
    )
    return found


def add_sighting(shard: FailureShard, sighting: FailureSighting) -> FailureShard | None:
    """Return the shard with the sighting added; None if the job was recorded before.

    Raises UsageError for a time out of range.
    """
    day, at = utc_day(sighting.at).toordinal(), sighting.at
    before = shard.failures.get(sighting.fingerprint, StoredFailure(first_seen=at, last_seen=at))
    job = _trace_hash(sighting.occurrence)
    if any(one.text == job for one in before.jobs):
        return None
    after = msgspec.structs.replace(
        _update_texts(before, sighting),
        first_seen=min(before.first_seen, at),
        last_seen=max(before.last_seen, at),
        count=before.count + 1,
        links=_newest_texts((*_single_text(sighting.link, at), *before.links), KNOWN_LINKS),
        branches=_merge_places(before.branches, _single_text(sighting.branch, at))[:KNOWN_PLACES],
        jobs=(*before.jobs, TimedText(job, at))[-KNOWN_TRACES:],
        days=_count_day(before.days, day),
    )
    if sighting.merge_request:
        after = _add_merge_request(after, TimedText(truncate(sighting.merge_request), at, truncate(sighting.author)))
    return msgspec.structs.replace(shard, failures={**shard.failures, sighting.fingerprint: after})


def add_analysis(shard: FailureShard, fingerprint: str, analysis: AnalysisLink, since: float) -> FailureShard | None:
    """Return the shard with the analysis added; None if the failure is unknown or has a recent analysis."""
    before = shard.failures.get(fingerprint)
    if before is None or (before.analysis is not None and before.analysis.at >= since):
        return None
    made = StoredAnalysis(at=analysis.at, merge_request=truncate(analysis.merge_request), link=truncate(analysis.link))
    after = msgspec.structs.replace(before, analysis=made)
    return msgspec.structs.replace(shard, failures={**shard.failures, fingerprint: after})


def encode_within_limit(shard: FailureShard, kept: str = "") -> bytes:
    """Encode the shard; if it is too large, without the failures not seen for the longest time, but with `kept`."""
    content = encode_object(shard)
    while len(content) > KNOWN_SHARD_BYTES and len(shard.failures) > 1:
        by_age = sorted(shard.failures, key=lambda name: (name == kept, shard.failures[name].last_seen))
        oldest = set(by_age[: max(1, len(by_age) // 8)])
        left = {name: one for name, one in shard.failures.items() if name not in oldest}
        shard = msgspec.structs.replace(shard, failures=left)
        content = encode_object(shard)
    return content


def remove_older(shard: FailureShard, before: float) -> tuple[FailureShard, int]:
    """Return the shard without failures not seen since `before` and without older traces, and how many were removed.

    Raises UsageError for a time out of range.
    """
    day = utc_day(before).toordinal()
    left = {name: one for name, one in shard.failures.items() if one.last_seen >= before}
    traces = {name: _drop_before(one, before, day) for name, one in left.items()}
    return msgspec.structs.replace(shard, failures=traces), len(shard.failures) - len(left)


def to_known_failure(project: str, fingerprint: str, failure: StoredFailure) -> KnownFailure:
    """Convert a stored failure to the value that the protocol returns."""
    return KnownFailure(
        project=project,
        fingerprint=fingerprint,
        kind=failure.kind,
        class_=failure.class_,
        title=failure.title,
        excerpt=failure.excerpt,
        first_seen=failure.first_seen,
        last_seen=failure.last_seen,
        count=failure.count,
        merge_requests=tuple(one.text for one in failure.merge_requests),
        merge_requests_total=len(failure.merge_requests) + len(failure.earlier),
        branches=tuple(one.text for one in failure.branches),
        links=tuple(one.text for one in failure.links),
        analysis=_analysis_from_stored(failure.analysis),
        authors=tuple(one.author for one in failure.merge_requests),
        authors_total=len({one.author for one in (*failure.merge_requests, *failure.earlier)}),
    )


def _analysis_from_stored(analysis: StoredAnalysis | None) -> AnalysisLink | None:
    if analysis is None:
        return None
    return AnalysisLink(at=analysis.at, merge_request=analysis.merge_request, link=analysis.link)


def count_trend(failures: Iterable[StoredFailure], since: date) -> Sequence[FailureDay]:
    """Return sightings and different failures per day, oldest day first."""
    sightings, different = Counter[int](), Counter[int]()
    for failure in failures:
        for day, count in failure.days:
            sightings[day] += count
            different[day] += 1
    days = sorted(day for day in sightings if day >= since.toordinal())[-KNOWN_DAYS:]
    return [FailureDay(date.fromordinal(day), sightings[day], different[day]) for day in days]


def _update_texts(before: StoredFailure, sighting: FailureSighting) -> StoredFailure:
    """Take the texts of the newest sighting; an older one only adds an excerpt that is missing."""
    newest, excerpt = sighting.at >= before.last_seen, truncate(sighting.excerpt, KNOWN_EXCERPT_CHARS)
    if excerpt and (newest or not before.excerpt):
        before = msgspec.structs.replace(before, excerpt=excerpt)
    if not newest:
        return before
    kind, class_, title = truncate(sighting.kind), truncate(sighting.class_), truncate(sighting.title)
    return msgspec.structs.replace(before, kind=kind, class_=class_, title=title)


def _add_merge_request(failure: StoredFailure, seen: TimedText) -> StoredFailure:
    """Add a merge request; those that no longer fit stay as hashes, so that they are not counted as new later."""
    all_of_them = _merge_places(failure.merge_requests, (seen,))
    trace = _trace_hash(seen.text)
    came_back = [one for one in failure.earlier if one.text == trace]
    others = [one for one in failure.earlier if one.text != trace]
    if came_back:
        all_of_them = _merge_places(all_of_them, (TimedText(seen.text, came_back[0].at, came_back[0].author),))
    left = [TimedText(_trace_hash(one.text), one.at, one.author) for one in all_of_them[KNOWN_PLACES:]]
    earlier = _newest_texts((*left, *others), KNOWN_TRACES - KNOWN_PLACES)
    return msgspec.structs.replace(failure, merge_requests=all_of_them[:KNOWN_PLACES], earlier=earlier)


def _merge_places(places: tuple[TimedText, ...], more: tuple[TimedText, ...]) -> tuple[TimedText, ...]:
    """Return each place once, newest first, with its latest time and its last known author."""
    before = {one.text: one for one in places}
    new = [_merge_texts(one, before.pop(one.text, one)) for one in more]
    return _newest_texts((*new, *before.values()), len(new) + len(before))


def _merge_texts(one: TimedText, before: TimedText) -> TimedText:
    return TimedText(one.text, max(one.at, before.at), one.author or before.author)


def _newest_texts(some: Iterable[TimedText], most: int) -> tuple[TimedText, ...]:
    """Return the newest texts; among equal times the order is kept."""
    return tuple(sorted(some, key=lambda one: -one.at)[:most])


def _count_day(days: tuple[tuple[int, int], ...], day: int) -> tuple[tuple[int, int], ...]:
    counts = dict(days)
    counts[day] = counts.get(day, 0) + 1
    return tuple(sorted(counts.items())[-KNOWN_DAYS:])


def _drop_before(failure: StoredFailure, before: float, day: int) -> StoredFailure:
    lists = ("merge_requests", "earlier", "branches", "links", "jobs")
    left = {name: tuple(one for one in getattr(failure, name) if one.at >= before) for name in lists}
    days = tuple(one for one in failure.days if one[0] >= day)
    analysis = failure.analysis if failure.analysis is not None and failure.analysis.at >= before else None
    return msgspec.structs.replace(failure, days=days, analysis=analysis, **left)


def _single_text(text: str, at: float) -> tuple[TimedText, ...]:
    return (TimedText(truncate(text), at),) if text else ()


def _trace_hash(text: str) -> str:
    return text_digest(text).hex()[:_TRACE_CHARS]


_SHARDS, _PROJECTS = "known-failures/shards", "known-failures/projects"


class BucketKnownFailureStore:
    """A `KnownFailureStore` in a bucket. Belongs to one event loop."""

    def __init__(
        self, objects: VersionedObjectStore, address: str, circuit_breaker: BucketCircuitBreaker | None = None
    ) -> None:
        self._objects, self._address = objects, address.rstrip("/")
        self._circuit_breaker = circuit_breaker or BucketCircuitBreaker()
        self._what = f"The ledger of known failures in {self._address}"
        self._cache: OrderedDict[str, VersionedContent] = OrderedDict()
        self._locks = WeakValueDictionary[str, asyncio.Lock]()  # changes of this process do not compete with each other
        self._slots = asyncio.Semaphore(SEGMENTS_AT_ONCE)

    async def record_sighting(self, sighting: FailureSighting) -> KnownFailure:
        project, fingerprint = check_ledger_name(sighting.project), check_ledger_name(sighting.fingerprint)
        name = _shard_name(project, failure_shard_number(fingerprint))
        remembered: StoredFailure | None = None

        def after(content: bytes | None) -> bytes | None:
            nonlocal remembered
            shard = self._parse_shard(name, content, project)
            more = add_sighting(shard, sighting)
            remembered = (more or shard).failures[fingerprint]
            return None if more is None else encode_within_limit(more, fingerprint)

        async def change(content: bytes | None) -> bytes | None:
            return await asyncio.to_thread(after, content)

        async with self._circuit_breaker.guard(self._what):
            await self._update_cached(name, change)
            await self._record_project(project, sighting.at)
        assert remembered is not None, "the last change saw it"
        return to_known_failure(project, fingerprint, remembered)

    async def record_analysis(self, project: str, fingerprint: str, analysis: AnalysisLink, since: float) -> None:
        name = _shard_name(check_ledger_name(project), failure_shard_number(check_ledger_name(fingerprint)))

        def after(content: bytes | None) -> bytes | None:
            more = add_analysis(self._parse_shard(name, content, project), fingerprint, analysis, since)
            return None if more is None else encode_within_limit(more, fingerprint)

        async def change(content: bytes | None) -> bytes | None:
            return await asyncio.to_thread(after, content)

        async with self._circuit_breaker.guard(self._what):
            await self._update_cached(name, change)

    async def find_failure(self, project: str, fingerprint: str) -> KnownFailure | None:
        return (await self.find_failures(project, (fingerprint,))).get(fingerprint)

    async def find_failures(self, project: str, fingerprints: Sequence[str]) -> Mapping[str, KnownFailure]:
        """Return the known ones; the shards are read concurrently, one request each."""
        wanted = dict.fromkeys(check_ledger_name(one) for one in fingerprints)
        found = await self._read_failures(
            check_ledger_name(project), sorted({failure_shard_number(one) for one in wanted})
        )
        return {one: to_known_failure(project, one, found[one]) for one in wanted if one in found}

    async def list_projects(self, limit: int) -> Sequence[str]:
        async with self._circuit_breaker.guard(self._what):
            names = [one.name for one in await self._objects.list_objects(_PROJECTS)]
            found = await asyncio.gather(*map(self._read_object, names))
        all_of_them = [
            decode_object(one.content, StoredProject, self._object_address(name))
            for name, one in zip(names, found, strict=True)
            if one
        ]
        newest = sorted((one for one in all_of_them if one.has_any), key=lambda one: -one.last_seen)
        return [one.project for one in newest[: _clamp_limit(limit)]]

    async def list_recent(self, project: str, limit: int) -> Sequence[KnownFailure]:
        found = await self._read_failures(check_ledger_name(project), range(KNOWN_SHARDS))
        newest = sorted(found, key=lambda one: -found[one].last_seen)[: _clamp_limit(limit)]
        return [to_known_failure(project, one, found[one]) for one in newest]

    async def trend(self, project: str, since: date, fingerprint: str | None = None) -> Sequence[FailureDay]:
        if fingerprint is None:
            return count_trend(
                (await self._read_failures(check_ledger_name(project), range(KNOWN_SHARDS))).values(), since
            )
        found = await self._read_failures(
            check_ledger_name(project), (failure_shard_number(check_ledger_name(fingerprint)),)
        )
        return count_trend([found[fingerprint]] if fingerprint in found else [], since)

    async def trends(
        self, project: str, since: date, fingerprints: Sequence[str]
    ) -> Mapping[str, Sequence[FailureDay]]:
        found = await self._read_failures(
            check_ledger_name(project), sorted({failure_shard_number(check_ledger_name(one)) for one in fingerprints})
        )
        return {one: count_trend([found[one]] if one in found else [], since) for one in fingerprints}

    async def delete_unseen_since(self, before: float) -> int:
        """Clean shard after shard, each with its own time limit; an unreadable one does not stop the others."""
        utc_day(before)
        async with self._circuit_breaker.guard(self._what):
            names = [one.name for one in await self._objects.list_objects(_SHARDS)]
            projects = [one.name for one in await self._objects.list_objects(_PROJECTS)]
        gone, failure = 0, None
        for forgets, name in (
            *((self._forget_in_shard, one) for one in names),
            *((self._forget_project, one) for one in projects),
        ):
            try:
                gone += await forgets(name, before)
            except (JournalDamaged, SessionUnreadable) as error:
                failure = error
        if failure is not None:
            raise failure
        return gone

    async def _forget_in_shard(self, name: str, before: float) -> int:
        gone = 0

        def after(content: bytes | None) -> bytes | None:
            nonlocal gone
            shard = self._parse_shard(name, content, "")
            less, gone = remove_older(shard, before)
            return None if less == shard else encode_object(less)

        async def change(content: bytes | None) -> bytes | None:
            return await asyncio.to_thread(after, content)

        async with self._circuit_breaker.guard(self._what):
            await self._update_cached(name, change)
        return gone

    async def _record_project(self, project: str, at: float) -> None:
        """Record that the project has failures.

        This happens also for a job that was recorded before: the process that recorded it may have died before this
        step.
        """
        name = _project_name(project)

        async def change(content: bytes | None) -> bytes | None:
            forgotten = 0.0
            with suppress(JournalDamaged):  # a damaged object can be overwritten: we know its content
                before = None if content is None else decode_object(content, StoredProject, self._object_address(name))
                if before is not None and before.last_seen >= at:
                    return None
                forgotten = before.forgotten if before else 0.0
            return encode_object(StoredProject(project=project, last_seen=at, forgotten=forgotten))

        await self._update_cached(name, change, trusting=True)

    async def _forget_project(self, name: str, before: float) -> int:
        async def change(content: bytes | None) -> bytes | None:
            if content is None:
                return None
            project = decode_object(content, StoredProject, self._object_address(name))
            if project.last_seen >= before or project.forgotten >= before:
                return None
            return encode_object(StoredProject(project=project.project, last_seen=project.last_seen, forgotten=before))

        async with self._circuit_breaker.guard(self._what):
            await self._update_cached(name, change)
        return 0  # no failures were removed here

    async def _update_cached(self, name: str, change: ContentUpdate, *, trusting: bool = False) -> None:
        """Apply a change, starting from the cached content.

        If the cached content needs no change, the current one is read and checked too, unless `trusting`.
        """
        async with self._lock_for(name):
            held = self._cache.pop(name, None)
            found = await update_object(self._objects, name, change, most_bytes=KNOWN_SHARD_BYTES, held=held)
            if found is held and held is not None and not trusting:
                found = await update_object(self._objects, name, change, most_bytes=KNOWN_SHARD_BYTES)
            if found is not None:
                self._remember(name, found)

    def _lock_for(self, name: str) -> asyncio.Lock:
        turn = self._locks.get(name)
        if turn is None:
            turn = self._locks[name] = asyncio.Lock()
        return turn

    async def _read_failures(self, project: str, shards: Sequence[int]) -> dict[str, StoredFailure]:
        names = [_shard_name(project, number) for number in shards]
        async with self._circuit_breaker.guard(self._what):
            found = await asyncio.gather(*map(self._read_object, names))
        failures: dict[str, StoredFailure] = {}
        for name, versioned in zip(names, found, strict=True):
            if versioned is not None:
                shard = await asyncio.to_thread(self._parse_shard, name, versioned.content, project)
                self._remember(name, versioned)
                failures.update(shard.failures)
        return failures

    async def _read_object(self, name: str) -> VersionedContent | None:
        async with self._slots:
            return await self._objects.get_versioned(name, KNOWN_SHARD_BYTES)

    def _remember(self, name: str, versioned: VersionedContent) -> None:
        self._cache[name] = versioned
        self._cache.move_to_end(name)
        while len(self._cache) > SHARED_HELD:
            self._cache.popitem(last=False)

    def _parse_shard(self, name: str, content: bytes | None, project: str) -> FailureShard:
        return (
            FailureShard(project=project)
            if content is None
            else decode_object(content, FailureShard, self._object_address(name))
        )

    def _object_address(self, name: str) -> str:
        return f"{self._address}/{name}"


def _clamp_limit(limit: int) -> int:
    return max(0, min(limit, KNOWN_LISTED))


def _shard_name(project: str, number: int) -> str:
    return f"{_SHARDS}/{text_digest(project).hex()}/{number}.json"


def _project_name(project: str) -> str:
    return f"{_PROJECTS}/{text_digest(project).hex()}.json"
