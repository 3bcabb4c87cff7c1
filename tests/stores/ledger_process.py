"""What another process does to a ledger of known failures: `python ledger_process.py PATH NAME COUNT`.

Tells each sighting once it is remembered. Each of them is a job of its own, of one of three failures.
"""

import asyncio
import sys
from pathlib import Path

from hummingbird.adapters.stores.known_failures import SqliteKnownFailures
from hummingbird.ports.known_failures import Sighting


async def remember(path: Path, name: str, count: int) -> None:
    ledger = SqliteKnownFailures(path)
    for number in range(count):
        sighting = Sighting(
            project="group/project",
            fingerprint=f"{number % 3:016x}",
            occurrence=f"{name} {number}",
            at=1_794_744_000.0 + number,
            kind="test failure",
            class_="test",
            title="A test failed",
            excerpt="x" * 1_500,
            merge_request=f"!{number}",
            link=f"https://example.com/{name}/{number}",
        )
        await ledger.seen(sighting)
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(remember(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
