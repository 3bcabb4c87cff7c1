"""What a question to the ledger of known failures costs as it grows: `python -m benchmarks.evidence.ledger [--quick]`.

Each number is a whole call, with its thread and the opening of the file. The ratio is to the same call on the smaller
ledger of the same run. A part of the failures has been seen often, as some are in life.
"""

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from statistics import quantiles

from hummingbird.core.protocols.storage import FailureSighting
from hummingbird.storage.failure_store import SqliteKnownFailureStore

NOW = 1_794_744_000.0
DAY = 86_400.0
SIZES, SIZES_QUICK = (1_000, 100_000), (100, 1_000)
CALLS, CALLS_QUICK = 1_000, 50
OFTEN, MORE = 100, 30  # every hundredth failure was seen thirty times more
FIRST_DAY = datetime.fromtimestamp(NOW - 30 * DAY, UTC).date()
PROJECTS = 5

Deed = Callable[[SqliteKnownFailureStore, random.Random], Awaitable[object]]


def report(*, quick: bool) -> None:
    print("## Known failures: a call as the ledger grows\n")
    print("| failures | call | p50 ms | p99 ms | p50 ÷ smallest | p99 ÷ smallest |\n|--:|---|--:|--:|--:|--:|")
    smallest: dict[str, tuple[float, float]] = {}
    for size in SIZES_QUICK if quick else SIZES:
        with tempfile.TemporaryDirectory() as folder:
            ledger = SqliteKnownFailureStore(Path(folder) / "known.sqlite")
            asyncio.run(_fill(ledger, size))
            for name, deed in _deeds(size).items():
                found = asyncio.run(_measured(ledger, deed, CALLS_QUICK if quick else CALLS))
                least = smallest.setdefault(name, found)
                ratios = " | ".join(f"{new / old:.2f}×" for new, old in zip(found, least, strict=True))
                print(f"| {size:,} | {name} | {found[0]:.2f} | {found[1]:.2f} | {ratios} |", flush=True)
    print()


def _sighting(number: int, occurrence: str) -> FailureSighting:
    return FailureSighting(
        project=f"group/project-{number % PROJECTS}",
        fingerprint=f"{number:016x}",
        occurrence=occurrence,
        at=NOW - number % 90 * DAY,
        kind="test failure",
        class_="test",
        title=f"TestNumber{number} fails",
        excerpt="an error line of the usual length, which says what went wrong\n" * 12,
        merge_request=f"!{occurrence}",
        branch="main",
        link=f"https://example.com/analyses/{occurrence}",
    )


async def _fill(ledger: SqliteKnownFailureStore, size: int) -> None:
    for number in range(size):
        await ledger.record_sighting(_sighting(number, f"{number}"))
        if number % OFTEN == 0:
            for more in range(MORE):
                await ledger.record_sighting(_sighting(number, f"{number} {more}"))


def _deeds(size: int) -> dict[str, Deed]:
    numbers = count(10 * size)

    def some(dice: random.Random) -> int:
        return dice.randrange(size)

    return {
        "known": lambda ledger, dice: ledger.find_failure(f"group/project-{(n := some(dice)) % PROJECTS}", f"{n:016x}"),
        "not known": lambda ledger, dice: ledger.find_failure("group/project-0", f"{dice.random()}"),
        "20 at once": lambda ledger, dice: ledger.find_failures(
            "group/project-0", [f"{some(dice) // PROJECTS * PROJECTS:016x}" for _ in range(20)]
        ),
        "20 recent": lambda ledger, _: ledger.list_recent("group/project-1", 20),
        "trend of 30 days": lambda ledger, _: ledger.trend("group/project-1", FIRST_DAY),
        "seen, known before": lambda ledger, dice: ledger.record_sighting(
            _sighting(some(dice), f"again {next(numbers)}")
        ),
        "seen, new": lambda ledger, _: ledger.record_sighting(_sighting(next(numbers), f"{next(numbers)}")),
    }


async def _measured(ledger: SqliteKnownFailureStore, deed: Deed, calls: int) -> tuple[float, float]:
    """What half of the calls stay below, and all but one of a hundred, in milliseconds."""
    dice, took = random.Random(7), []
    for _ in range(calls):
        before = time.perf_counter()
        await deed(ledger, dice)
        took.append((time.perf_counter() - before) * 1_000)
    cuts = quantiles(took, n=100)
    return cuts[49], cuts[98]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small numbers, one repeat: does it work at all?")
    report(quick=parser.parse_args().quick)
