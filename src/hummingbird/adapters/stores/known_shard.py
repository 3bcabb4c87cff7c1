"""Some of a project's known failures as one object that hosts share (V6, O3). Knows how it looks as bytes and what a
sighting makes of it, and nothing of stores. All here is pure.

What a file of SQLite keeps until it is forgotten is bounded here: of one failure, the jobs and the merge requests that
were told of last are known by a hash, and all of a shard's failures together weigh what a shard may.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from secrets import token_hex
from typing import Annotated, TypeAlias, TypeVar

import msgspec

from hummingbird.adapters.stores.known_words import cut, day_of, digest_of
from hummingbird.domain.errors import JournalDamaged, SessionUnreadable
from hummingbird.domain.limits import (
    KNOWN_DAYS,
    KNOWN_EXCERPT_CHARS,
    KNOWN_LINKS,
    KNOWN_PLACES,
    KNOWN_SHARD_BYTES,
    KNOWN_SHARDS,
    KNOWN_TRACES,
)
from hummingbird.ports.known_failures import Analysed, FailureDay, KnownFailure, Sighting

FORMAT = 1
Ordinal: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=date.max.toordinal())]
_TRACE_CHARS = 24  # of a hash in hexadecimal digits: 96 bits


class Told(msgspec.Struct, frozen=True, array_like=True):
    """A text, or a hash of one, and when it was seen; of a merge request also the mark of its author, empty if nobody
    knows: earlier versions wrote none."""

    text: str
    at: float
    author: str = ""


class Analysis(msgspec.Struct, frozen=True, kw_only=True):
    at: float
    merge_request: str
    link: str


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """`jobs`: hashes, in the order in which they were told. `merge_requests`, `branches`, `links`: newest first;
    `earlier`: hashes of merge requests that are named no more. `days`: ordinals, with how often."""

    kind: str = ""
    class_: str = msgspec.field(default="", name="class")
    title: str = ""
    excerpt: str = ""
    first_seen: float
    last_seen: float
    count: int = 0
    merge_requests: tuple[Told, ...] = ()
    earlier: tuple[Told, ...] = ()
    branches: tuple[Told, ...] = ()
    links: tuple[Told, ...] = ()
    jobs: tuple[Told, ...] = ()
    days: tuple[tuple[Ordinal, int], ...] = ()
    analysis: Analysis | None = None


class Shard(msgspec.Struct, frozen=True, kw_only=True):
    """`nonce`: another one each time it is written, for stores tell versions apart by content."""

    known: int = FORMAT
    nonce: str = ""
    project: str = ""
    failures: dict[str, Failure] = {}


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """That a project has failures, unless all of them were forgotten since."""

    known: int = FORMAT
    nonce: str = ""
    project: str
    last_seen: float
    forgotten: float = 0.0

    @property
    def has_any(self) -> bool:
        return self.last_seen >= self.forgotten


class _Peek(msgspec.Struct):
    known: int


Known = TypeVar("Known", Shard, Project)
_encoder = msgspec.json.Encoder()
_peek = msgspec.json.Decoder(_Peek)


def shard_of(fingerprint: str) -> int:
    return digest_of(fingerprint)[0] % KNOWN_SHARDS


def written(known: Shard | Project) -> bytes:
    return _encoder.encode(msgspec.structs.replace(known, nonce=token_hex(8)))


def parsed(content: bytes, kind: type[Known], where: str) -> Known:
    """`where`: its name in sentences. Raises JournalDamaged, and SessionUnreadable for a newer version's."""
    try:
        if _peek.decode(content).known > FORMAT:
            raise SessionUnreadable(
                f"{where} was written by a newer version; update this one to use the ledger of known failures."
            )
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise JournalDamaged(
            f"{where} is damaged and cannot be used as part of the ledger of known failures; move it away."
        ) from error


def with_sighting(shard: Shard, sighting: Sighting) -> Shard | None:
    """None for a job that was told of before. Raises UsageFault for a time that is none."""
    day, at = day_of(sighting.at).toordinal(), sighting.at
    before = shard.failures.get(sighting.fingerprint, Failure(first_seen=at, last_seen=at))
    job = _trace(sighting.occurrence)
    if any(one.text == job for one in before.jobs):
        return None
    after = msgspec.structs.replace(
        _worded(before, sighting),
        first_seen=min(before.first_seen, at),
        last_seen=max(before.last_seen, at),
        count=before.count + 1,
        links=_newest((*_told(sighting.link, at), *before.links), KNOWN_LINKS),
        branches=_placed(before.branches, _told(sighting.branch, at))[:KNOWN_PLACES],
        jobs=(*before.jobs, Told(job, at))[-KNOWN_TRACES:],
        days=_counted(before.days, day),
    )
    if sighting.merge_request:
        after = _in_merge_request(after, Told(cut(sighting.merge_request), at, cut(sighting.author)))
    return msgspec.structs.replace(shard, failures={**shard.failures, sighting.fingerprint: after})


def with_analysis(shard: Shard, fingerprint: str, analysis: Analysed, since: float) -> Shard | None:
    """None where nothing changes: nobody has seen the failure, or it has an analysis that counts."""
    before = shard.failures.get(fingerprint)
    if before is None or (before.analysis is not None and before.analysis.at >= since):
        return None
    made = Analysis(at=analysis.at, merge_request=cut(analysis.merge_request), link=cut(analysis.link))
    after = msgspec.structs.replace(before, analysis=made)
    return msgspec.structs.replace(shard, failures={**shard.failures, fingerprint: after})


def bounded(shard: Shard, kept: str = "") -> bytes:
    """As its bytes, without what was not seen for the longest time if there is too much; `kept` stays."""
    content = written(shard)
    while len(content) > KNOWN_SHARD_BYTES and len(shard.failures) > 1:
        by_age = sorted(shard.failures, key=lambda name: (name == kept, shard.failures[name].last_seen))
        oldest = set(by_age[: max(1, len(by_age) // 8)])
        left = {name: one for name, one in shard.failures.items() if name not in oldest}
        shard = msgspec.structs.replace(shard, failures=left)
        content = written(shard)
    return content


def without(shard: Shard, before: float) -> tuple[Shard, int]:
    """What was not seen since is gone, with every trace that is older; how many failures. Raises UsageFault."""
    day = day_of(before).toordinal()
    left = {name: one for name, one in shard.failures.items() if one.last_seen >= before}
    traces = {name: _since(one, before, day) for name, one in left.items()}
    return msgspec.structs.replace(shard, failures=traces), len(shard.failures) - len(left)


def told_of(project: str, fingerprint: str, failure: Failure) -> KnownFailure:
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
        analysis=_analysed(failure.analysis),
        authors=tuple(one.author for one in failure.merge_requests),
        authors_total=len({one.author for one in (*failure.merge_requests, *failure.earlier)}),
    )


def _analysed(analysis: Analysis | None) -> Analysed | None:
    if analysis is None:
        return None
    return Analysed(at=analysis.at, merge_request=analysis.merge_request, link=analysis.link)


def trend_of(failures: Iterable[Failure], since: date) -> Sequence[FailureDay]:
    sightings, different = Counter[int](), Counter[int]()
    for failure in failures:
        for day, count in failure.days:
            sightings[day] += count
            different[day] += 1
    days = sorted(day for day in sightings if day >= since.toordinal())[-KNOWN_DAYS:]
    return [FailureDay(date.fromordinal(day), sightings[day], different[day]) for day in days]


def _worded(before: Failure, sighting: Sighting) -> Failure:
    """The newest sighting has the say; words are better than none."""
    newest, excerpt = sighting.at >= before.last_seen, cut(sighting.excerpt, KNOWN_EXCERPT_CHARS)
    if excerpt and (newest or not before.excerpt):
        before = msgspec.structs.replace(before, excerpt=excerpt)
    if not newest:
        return before
    kind, class_, title = cut(sighting.kind), cut(sighting.class_), cut(sighting.title)
    return msgspec.structs.replace(before, kind=kind, class_=class_, title=title)


def _in_merge_request(failure: Failure, seen: Told) -> Failure:
    """Those that cannot be named any more are still told from new ones."""
    all_of_them = _placed(failure.merge_requests, (seen,))
    trace = _trace(seen.text)
    came_back = [one for one in failure.earlier if one.text == trace]
    others = [one for one in failure.earlier if one.text != trace]
    if came_back:
        all_of_them = _placed(all_of_them, (Told(seen.text, came_back[0].at, came_back[0].author),))
    left = [Told(_trace(one.text), one.at, one.author) for one in all_of_them[KNOWN_PLACES:]]
    earlier = _newest((*left, *others), KNOWN_TRACES - KNOWN_PLACES)
    return msgspec.structs.replace(failure, merge_requests=all_of_them[:KNOWN_PLACES], earlier=earlier)


def _placed(places: tuple[Told, ...], more: tuple[Told, ...]) -> tuple[Told, ...]:
    """Each once, when it was seen last, with the author that was told last; newest first."""
    before = {one.text: one for one in places}
    new = [_joined(one, before.pop(one.text, one)) for one in more]
    return _newest((*new, *before.values()), len(new) + len(before))


def _joined(one: Told, before: Told) -> Told:
    return Told(one.text, max(one.at, before.at), one.author or before.author)


def _newest(some: Iterable[Told], most: int) -> tuple[Told, ...]:
    """Of two at the same time, the one that is told first."""
    return tuple(sorted(some, key=lambda one: -one.at)[:most])


def _counted(days: tuple[tuple[int, int], ...], day: int) -> tuple[tuple[int, int], ...]:
    counts = dict(days)
    counts[day] = counts.get(day, 0) + 1
    return tuple(sorted(counts.items())[-KNOWN_DAYS:])


def _since(failure: Failure, before: float, day: int) -> Failure:
    lists = ("merge_requests", "earlier", "branches", "links", "jobs")
    left = {name: tuple(one for one in getattr(failure, name) if one.at >= before) for name in lists}
    days = tuple(one for one in failure.days if one[0] >= day)
    analysis = failure.analysis if failure.analysis is not None and failure.analysis.at >= before else None
    return msgspec.structs.replace(failure, days=days, analysis=analysis, **left)


def _told(text: str, at: float) -> tuple[Told, ...]:
    return (Told(cut(text), at),) if text else ()


def _trace(text: str) -> str:
    return digest_of(text).hex()[:_TRACE_CHARS]
