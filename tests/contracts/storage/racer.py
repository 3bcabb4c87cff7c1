"""What another process does to one object: `python racer.py ADDRESS NAME`.

Each line that comes in is a round. It swaps what it knew for `ROUND NAME-OF-THIS-RACER`, looks who is there now, and
says `won` or `lost` and what it saw.
"""

import asyncio
import sys

from hummingbird.core.protocols.storage import ObjectVersion
from hummingbird.storage.object_store import BucketObjectStore

OBJECT = "raced/for"


def tell(fact: str) -> None:
    sys.stdout.write(f"{fact}\n")
    sys.stdout.flush()


async def main() -> None:
    address, name = sys.argv[1:]
    objects = BucketObjectStore(address)
    known: ObjectVersion | None = None
    assert await objects.get_versioned(OBJECT) is None  # connected now
    tell("ready")
    while line := await asyncio.to_thread(sys.stdin.readline):
        won = await objects.compare_and_swap(OBJECT, f"{line.strip()} {name}".encode(), known)
        looked = await objects.get_versioned(OBJECT)
        assert looked is not None
        assert won is None or won == looked.version
        known = looked.version
        tell(f"{'won' if won else 'lost'} {looked.content.decode()}")


if __name__ == "__main__":
    asyncio.run(main())
