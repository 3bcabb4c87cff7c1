"""What another process does: `python -m tests.contracts.shared.process DEED ADDRESS NAME COUNT`. Tells a number a line
once that is done.

spend: a cent, COUNT times. remember: COUNT jobs of its own, each with one of three failures.
look: takes turns of notes, two at a time, until there is none; tells each.
"""

import asyncio
import os
import sys
from decimal import Decimal

from hummingbird.core.protocols.storage import FailureSighting
from tests.contracts.shared.sites import DAY, NOON, Site


def tell(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


async def spend(site: Site, name: str, count: int) -> None:
    spending = site.spending()
    for number in range(count):
        await spending.add(name, Decimal("0.01"))
        tell(number)


async def remember(site: Site, name: str, count: int) -> None:
    ledger = site.known_failures()
    for number in range(count):
        sighting = FailureSighting(
            project="group/project",
            fingerprint=f"{number % 3:016x}",
            occurrence=f"{name} {number}",
            at=NOON + number,
            kind="test failure",
            class_="test",
            title="A test failed",
            excerpt="x" * 1_500,
            merge_request=f"!{number}",
            link=f"https://example.com/{name}/{number}",
        )
        await ledger.record_sighting(sighting)
        tell(number)


async def look(site: Site, name: str, count: int) -> None:
    votes = site.reactions()
    while notes := await votes.claim_due_notes(NOON + DAY, 2):
        for note in notes:
            tell(note.note_id)


DEEDS = {deed.__name__: deed for deed in (spend, remember, look)}

if __name__ == "__main__":
    asyncio.run(DEEDS[sys.argv[1]](Site(sys.argv[2]), sys.argv[3], int(sys.argv[4])))
    os._exit(0)  # obstore's threads abort now and then while the interpreter is taken down: pyo3-async-runtimes #40
