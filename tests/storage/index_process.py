"""What another process does to an index of sessions: `python index_process.py PATH NAME ROUNDS`.

Puts sessions as they grow: one of its own, and one that all processes see, each at another pace. Says so in the end.
"""

import asyncio
import random
import sys
from pathlib import Path

from hummingbird.core.journal import JournalEntry, SessionOpened, UserSaid
from hummingbird.core.sessions import summarise_session
from hummingbird.storage.session_index import open_session_index


def growing(session_id: str, length: int) -> list[JournalEntry]:
    """The same beginning for whoever sees it."""
    said = (UserSaid(text=f"number{number} of {session_id} everywhere", at=float(number)) for number in range(length))
    return [SessionOpened(session_id=session_id, system="", format=1, at=1.0), *said]


async def put(path: Path, name: str, rounds: int) -> None:
    index = open_session_index(path, str, tell)
    dice = random.Random(name)
    for number in range(1, rounds + 1):
        for session_id, length in ((name, number), ("shared", number), ("shared", dice.randint(1, number))):
            entries = growing(session_id, length)
            await index.put(session_id, f"{length}", summarise_session(entries), entries)
    tell("done")


def tell(fact: str) -> None:
    sys.stdout.write(f"{fact}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(put(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
