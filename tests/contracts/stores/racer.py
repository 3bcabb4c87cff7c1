"""What another process does to one object: `python racer.py ADDRESS NAME`.

Each line that comes in is a round. It swaps what it knew for `ROUND NAME-OF-THIS-RACER`, looks who is there now, and
says `won` or `lost` and what it saw.
"""

import asyncio
import sys

from hummingbird.adapters.stores.objects import BucketObjects
from hummingbird.ports.objects import Version

OBJECT = "raced/for"


def tell(fact: str) -> None:
    sys.stdout.write(f"{fact}\n")
    sys.stdout.flush()


async def main() -> None:
    address, name = sys.argv[1:]
    objects = BucketObjects(address)
    known: Version | None = None
    assert await objects.look(OBJECT) is None  # connected now
    tell("ready")
    while line := await asyncio.to_thread(sys.stdin.readline):
        won = await objects.swap(OBJECT, f"{line.strip()} {name}".encode(), known)
        looked = await objects.look(OBJECT)
        assert looked is not None
        assert won is None or won == looked.version
        known = looked.version
        tell(f"{'won' if won else 'lost'} {looked.content.decode()}")


if __name__ == "__main__":
    asyncio.run(main())
