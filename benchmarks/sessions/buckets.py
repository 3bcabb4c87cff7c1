"""What a session in a bucket costs as it grows: a commit and a resume, in time, requests and bytes.

S3 as ministack serves it on loopback, a process in Python on the same cores: the times are its own for the most part,
and a cloud's are longer. What carries over is the number of requests and bytes, and that neither grows.
"""

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

from benchmarks.sessions.growth import Pair, Step, appended, check, quantile, ratio, timed
from benchmarks.sessions.journals import entries, pairs
from hummingbird.agent.run_state import RunState
from hummingbird.core.journal import dump_entry
from hummingbird.core.protocols.storage import ObjectInfo, ObjectVersion, VersionedContent
from hummingbird.core.sessions import SEGMENT_BYTES
from hummingbird.storage.bucket_sessions import SESSIONS_PREFIX, BucketSession, BucketSessionStore
from hummingbird.storage.object_store import BucketObjectStore
from tests.contracts.queues.backends.ministack import REGION, SURROUNDINGS, serving
from tests.contracts.storage.backends.s3 import S3Buckets

SIZES, SIZES_QUICK = (10, 1_000, 100_000), (10, 100, 1_000)
TRIES, TRIES_QUICK = 200, 60  # a tail takes about 55 of them until it is sealed: each phase of it is among them
ROUNDS, ROUNDS_QUICK = 5, 2
SMALL = "bare PUT of these bytes"
LARGE = f"bare PUT of {SEGMENT_BYTES // 2 // 1024} KiB, what a tail weighs on average"
_AT_ONCE = 20  # entries a commit while a session is filled
_PAGE = 1_000  # names that S3 lists at once


class CountedObjects(BucketObjectStore):
    """Counts requests as S3 bills them, tries of obstore's own left out, and the bytes that were sent."""

    requests = 0
    sent = 0

    async def get_versioned(self, name: str, most_bytes: int | None = None) -> VersionedContent | None:
        self.requests += 1
        return await super().get_versioned(name, most_bytes)

    async def compare_and_swap(self, name: str, content: bytes, known: ObjectVersion | None) -> ObjectVersion | None:
        self.requests += 1
        self.sent += len(content)
        return await super().compare_and_swap(name, content, known)

    async def list_objects(self, prefix: str) -> Sequence[ObjectInfo]:
        found = await super().list_objects(prefix)
        self.requests += 1 + max(0, len(found) - 1) // _PAGE
        return found


@dataclass(frozen=True, slots=True)
class Resumed:
    wall_s: float
    cpu_s: float
    requests: int
    objects: int


@dataclass(frozen=True, slots=True)
class Committed:
    """Each try's milliseconds by what was written to; for each journal requests and bytes a commit."""

    spans: Mapping[str, Sequence[float]]
    requests: Mapping[str, float]
    sent: Mapping[str, float]


def report(*, quick: bool) -> None:
    if find_spec("ministack") is None:
        print("- sessions in a bucket skipped: ministack is one of the development dependencies\n")
        return
    sizes, tries, rounds = (SIZES_QUICK, TRIES_QUICK, ROUNDS_QUICK) if quick else (SIZES, TRIES, ROUNDS)
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.dict(os.environ, SURROUNDINGS),
        serving(Path(folder)) as server,
    ):
        objects = CountedObjects(S3Buckets(server).address(), endpoint=server.endpoint, region=REGION)
        asyncio.run(_measured(objects, sizes, tries, rounds))


async def _measured(objects: CountedObjects, sizes: Sequence[int], tries: int, rounds: int) -> None:
    for size in sizes:
        await fill(objects, size)
    print_resumes(sizes, await resumes(objects, sizes, rounds), rounds)
    print_commits(sizes, await commits(objects, sizes, tries), tries)


async def fill(objects: CountedObjects, size: int) -> None:
    session = await opened(objects, size)
    for number, entry in enumerate(entries(size), 1):
        session.journal.append(entry)
        if number % _AT_ONCE == 0:
            await session.journal.commit()
    await session.release()


async def opened(objects: CountedObjects, size: int) -> BucketSession:
    return await BucketSessionStore(objects, "measured", time.time).open(str(size))


async def resumes(objects: CountedObjects, sizes: Sequence[int], rounds: int) -> dict[int, list[Resumed]]:
    found: dict[int, list[Resumed]] = {size: [] for size in sizes}
    for _ in range(rounds):
        for size in sizes:
            found[size].append(await resumed(objects, size))
    return found


async def resumed(objects: CountedObjects, size: int) -> Resumed:
    parts = len(await objects.list_objects(f"{SESSIONS_PREFIX}/{size}"))
    before, wall, cpu = objects.requests, time.perf_counter(), time.process_time()
    session = await opened(objects, size)
    state = RunState.from_entries(session.journal.entries())
    wall, cpu, requests = time.perf_counter() - wall, time.process_time() - cpu, objects.requests - before
    check(len(session.journal.entries()) == size, f"{size} entries were written, and others read")
    check(state.model != "", "the state of a run has its model")
    await session.release()
    return Resumed(wall, cpu, requests, parts)


async def commits(objects: CountedObjects, sizes: Sequence[int], tries: int) -> Committed:
    sessions = {f"{size:,}": await opened(objects, size) for size in sizes}
    requests, sent = dict.fromkeys(sessions, 0.0), dict.fromkeys(sessions, 0.0)
    number = 0

    def counted(name: str, step: Step) -> Step:
        async def doubly(pair: Pair) -> None:
            nonlocal number
            before = objects.requests, objects.sent
            await step(pair)
            number += 1
            requests[name] += objects.requests - before[0]
            sent[name] += objects.sent - before[1]

        return doubly

    steps = {name: counted(name, appended(one.journal)) for name, one in sessions.items()}
    spans = await timed({SMALL: _put(objects, 0), LARGE: _put(objects, SEGMENT_BYTES // 2), **steps}, tries)
    for session in sessions.values():
        await session.release()
    each = number / len(sessions)
    return Committed(
        spans, {n: made / each for n, made in requests.items()}, {n: size / each for n, size in sent.items()}
    )


def _put(objects: BucketObjectStore, least: int) -> Step:
    async def step(pair: Pair) -> None:
        content = dump_entry(pair[0]) + dump_entry(pair[1])
        await objects.put(f"bare-{least}", content + bytes(max(0, least - len(content))))

    return step


def print_resumes(sizes: Sequence[int], found: Mapping[int, Sequence[Resumed]], rounds: int) -> None:
    print(f"## Sessions: resuming one in a bucket (S3 of ministack, loopback), median of {rounds}, interleaved\n")
    print("| entries | objects | requests | CPU ms | CPU µs an entry | CPU ÷ the row before | wall ms |")
    print("|--:|--:|--:|--:|--:|--:|--:|")
    before = 0.0
    for size in sizes:
        cpu = statistics.median(one.cpu_s for one in found[size])
        wall, one = statistics.median(one.wall_s for one in found[size]), found[size][-1]
        grown = f"{cpu / before:.1f}×" if before else ""
        print(f"| {size:,} | {one.objects:,} | {one.requests:,} | {cpu * 1e3:.1f} | {cpu / size * 1e6:.1f} ", end="")
        print(f"| {grown} | {wall * 1e3:.1f} |")
        before = cpu
    print(flush=True)


def print_commits(sizes: Sequence[int], found: Committed, tries: int) -> None:
    first, size = f"{sizes[0]:,}", sum(map(len, map(dump_entry, next(pairs()))))
    print(f"## Sessions: two entries and a commit ({size:,} bytes) in a bucket, {tries} tries, interleaved\n")
    print("The ratio is taken within each round. The physical limit is one round trip to the store: the first row.\n")
    print(f"| written to | p50 ms | p90 ms | ÷ bare PUT | ÷ {first} entries | requests a commit | KB a commit |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for name, spans in found.spans.items():
        title = f"**a journal** of {name} entries" if name in found.sent else name
        ratios = " | ".join(f"{ratio(spans, found.spans[other]):.2f}×" for other in (SMALL, first))
        cost = f"{found.requests[name]:.2f} | {found.sent[name] / 1e3:.0f}" if name in found.sent else "1 | "
        print(f"| {title} | {quantile(spans, 50):.2f} | {quantile(spans, 90):.2f} | {ratios} | {cost} |")
    print(f"\nLoad {', '.join(f'{each:.1f}' for each in os.getloadavg())} at the end.\n", flush=True)


if __name__ == "__main__":
    report(quick=False)
