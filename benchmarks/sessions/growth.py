"""What a session in a directory costs as it grows: a durable append, and the way back to a run's state.

An append is what a turn adds between two commits, two entries and one commit, in real time. It stands beside the same
bytes written by nothing but `os.write` and `os.fdatasync`, and beside SQLite. A resume is opening the session and
folding its entries, in CPU of this process; it stands beside `json.loads` of the same lines.
"""

import asyncio
import gc
import json
import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.sessions.journals import ONE_RUN, TURNS_A_RUN, entries, pairs
from hummingbird.agent.run_state import RunState
from hummingbird.core.journal import JournalEntry, dump_entry
from hummingbird.core.protocols.sessions import Journal
from hummingbird.core.sessions import JOURNAL
from hummingbird.storage.folder_sessions import FolderSessionStore
from hummingbird.storage.journals import FileJournal

SIZES, SIZES_QUICK = (10, 1_000, 100_000), (10, 100, 1_000)
TRIES, TRIES_QUICK = 200, 50
ROUNDS, ROUNDS_QUICK = 7, 2
BARE = "bare: `os.write`, `os.fdatasync`"
SQLITE = "SQLite: INSERT of two rows, WAL, synchronous=FULL"
_LEAST_ENTRIES = 2_000  # that a timing is taken over: the clock is coarse for ten

Pair = tuple[JournalEntry, JournalEntry]
Step = Callable[[Pair], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Resumed:
    """CPU seconds."""

    ours: float
    uncollected: float  # the same while Python's collector rests
    parsing: float


def report(*, quick: bool) -> None:
    sizes, tries, rounds = (SIZES_QUICK, TRIES_QUICK, ROUNDS_QUICK) if quick else (SIZES, TRIES, ROUNDS)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as scratch:  # a real disk: /tmp is often memory
        folder = Path(scratch)
        print_resumes(sizes, asyncio.run(resumes(folder / "usual", sizes, rounds)), rounds, f"{TURNS_A_RUN} turns each")
        print_resumes(sizes, asyncio.run(resumes(folder / "long", sizes, rounds, ONE_RUN)), rounds, "one run")
        print_appends(sizes, asyncio.run(appends(folder, folder / "usual", sizes, tries)), tries, filesystem(folder))


def fill(folder: Path, size: int, turns_a_run: int = TURNS_A_RUN) -> None:
    """A session of so many entries, named by their number."""
    place = folder / str(size)
    place.mkdir(parents=True)
    (place / JOURNAL).write_bytes(b"".join(map(dump_entry, entries(size, turns_a_run))))


async def resumes(
    folder: Path, sizes: Sequence[int], rounds: int, turns_a_run: int = TURNS_A_RUN
) -> dict[int, list[Resumed]]:
    """Sizes take turns, so that a busy minute of the machine hits all of them."""
    for size in sizes:
        fill(folder, size, turns_a_run)
    sessions = FolderSessionStore(folder)
    found: dict[int, list[Resumed]] = {size: [] for size in sizes}
    for _ in range(rounds):
        for size in sizes:
            ours = await cpu_s(size, partial(resumed, sessions, size))
            with uncollected():
                rested = await cpu_s(size, partial(resumed, sessions, size))
            parsing = await cpu_s(size, partial(parsed, folder / str(size) / JOURNAL))
            found[size].append(Resumed(ours, rested, parsing))
    return found


async def resumed(sessions: FolderSessionStore, size: int) -> None:
    session = await sessions.open(str(size))
    state = RunState.from_entries(session.journal.entries())
    check(len(session.journal.entries()) == size, f"{size} entries were written, and others read")
    check(state.model != "", "the state of a run has its model")
    await session.release()


async def parsed(path: Path) -> None:
    lines = [json.loads(line) for line in await asyncio.to_thread(_lines, path)]
    check(len(lines) > 0, "there are lines")


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()


async def cpu_s(size: int, work: Callable[[], Awaitable[None]]) -> float:
    """Of one time; a short one is done several times."""
    times = max(1, _LEAST_ENTRIES // size)
    gc.collect()
    began = time.process_time()
    for _ in range(times):
        await work()
    return (time.process_time() - began) / times


@contextmanager
def uncollected() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


async def appends(scratch: Path, folder: Path, sizes: Sequence[int], tries: int) -> dict[str, list[float]]:
    """Milliseconds of every try, by what was written to: BARE, SQLITE, and each journal by its length. They take
    turns."""
    journals = {f"{size:,}": FileJournal(folder / str(size) / JOURNAL) for size in sizes}
    fd = os.open(scratch / "bare", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    table = _table(scratch / "table.sqlite")
    try:
        steps = {BARE: _bare(fd), SQLITE: _inserted(table), **{n: appended(one) for n, one in journals.items()}}
        return await timed(steps, tries)
    finally:
        table.close()
        os.close(fd)
        for journal in journals.values():
            journal.close()


async def timed(steps: Mapping[str, Step], tries: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {name: [] for name in steps}
    more = pairs()
    for number in range(tries + 3):  # the first few make directories durable and open connections
        for name, step in steps.items():
            pair = next(more)
            began = time.perf_counter()
            await step(pair)
            if number >= 3:
                found[name].append((time.perf_counter() - began) * 1_000)
    return found


def appended(journal: Journal) -> Step:
    async def step(pair: Pair) -> None:
        journal.append(pair[0])
        journal.append(pair[1])
        await journal.commit()

    return step


def _bare(fd: int) -> Step:
    async def step(pair: Pair) -> None:
        os.write(fd, dump_entry(pair[0]) + dump_entry(pair[1]))
        os.fdatasync(fd)

    return step


def _table(path: Path) -> sqlite3.Connection:
    table = sqlite3.connect(path, isolation_level=None)
    table.execute("PRAGMA journal_mode = WAL")
    table.execute("PRAGMA synchronous = FULL")
    table.execute("CREATE TABLE entries (number INTEGER PRIMARY KEY, line BLOB)")
    return table


def _inserted(table: sqlite3.Connection) -> Step:
    async def step(pair: Pair) -> None:
        table.execute("BEGIN IMMEDIATE")
        table.executemany("INSERT INTO entries (line) VALUES (?)", [(dump_entry(entry),) for entry in pair])
        table.execute("COMMIT")

    return step


def print_resumes(sizes: Sequence[int], found: Mapping[int, Sequence[Resumed]], rounds: int, kind: str) -> None:
    print(f"## Sessions: resuming one in a directory ({kind}), CPU, median of {rounds}, interleaved\n")
    print("| entries | ms | µs an entry | ÷ the row before | entries ÷ those of the row before ", end="")
    print("| the same without Python's collector | ÷ `json.loads` of the lines |\n|--:|--:|--:|--:|--:|--:|--:|")
    before: tuple[int, float, float] | None = None
    for size in sizes:
        took = statistics.median(one.ours for one in found[size])
        rested = statistics.median(one.uncollected for one in found[size])
        parsing = statistics.median(one.ours / one.parsing for one in found[size])
        grown = f"{took / before[1]:.1f}× | {size / before[0]:.0f}× | {rested / before[2]:.1f}×" if before else " | | "
        print(f"| {size:,} | {took * 1e3:.2f} | {took / size * 1e6:.1f} | {grown} | {parsing:.2f}× |")
        before = size, took, rested
    print(flush=True)


def print_appends(sizes: Sequence[int], found: Mapping[str, Sequence[float]], tries: int, kind: str) -> None:
    first, size = f"{sizes[0]:,}", len(dump_entry(next(pairs())[0])) + len(dump_entry(next(pairs())[1]))
    print(
        f"## Sessions: two entries and a commit ({size:,} bytes) in a directory on {kind}, {tries} tries, interleaved\n"
    )
    print("The ratio is taken within each round. The physical limit is one `fdatasync` of this disk: the first row.\n")
    print(f"| written to | p50 ms | p90 ms | ÷ bare | ÷ SQLite | ÷ {first} entries |\n|---|--:|--:|--:|--:|--:|")
    for name, spans in found.items():
        title = name if name in (BARE, SQLITE) else f"**a journal** of {name} entries"
        ratios = " | ".join(f"{ratio(spans, found[other]):.2f}×" for other in (BARE, SQLITE, first))
        print(f"| {title} | {quantile(spans, 50):.2f} | {quantile(spans, 90):.2f} | {ratios} |")
    print(f"\nLoad {', '.join(f'{each:.1f}' for each in os.getloadavg())} at the end.\n", flush=True)


def ratio(spans: Sequence[float], others: Sequence[float]) -> float:
    return statistics.median(span / other for span, other in zip(spans, others, strict=True))


def quantile(spans: Sequence[float], percent: int) -> float:
    return sorted(spans)[min(len(spans) - 1, len(spans) * percent // 100)]


def filesystem(folder: Path) -> str:
    """Its kind, as the kernel names it: ext4, xfs, tmpfs …"""
    where, best = os.fspath(folder.resolve()), ("", "an unknown filesystem")
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        fields, _, told = line.partition(" - ")
        mounted = fields.split()[4]
        inside = where == mounted or where.startswith(mounted.rstrip("/") + "/")
        if inside and len(mounted) >= len(best[0]):
            best = mounted, told.split()[0]
    return best[1]


def check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise SystemExit(f"The measurement is worth nothing: {otherwise}.")


if __name__ == "__main__":
    report(quick=False)
