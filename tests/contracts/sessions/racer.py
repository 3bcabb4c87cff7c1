"""Processes that want one session again and again, one at a time: `python racer.py ADDRESS SESSION NAME`.

The first one only tells `born PID` and, when that has died, begets the next: nobody waits for an interpreter to start.

Every entry says whose it is and which number it has: `NAME.TENURE NUMBER`. What became of each is told, a fact a line:
`stored NUMBER TEXT` once it was committed, `refused NUMBER TEXT` where somebody else had the session by then. Anything
else that happens ends the race with a trace. Whoever started it stops, continues and kills it at any moment.
"""

import asyncio
import ctypes
import os
import signal
import sys
import time
from itertools import count
from random import Random

from hummingbird.app.stores import session_store_at
from hummingbird.core.errors import SessionTaken
from hummingbird.core.journal import UserSaid
from hummingbird.core.protocols.sessions import Session, SessionStore
from hummingbird.storage import bucket_journal, bucket_sessions

LEASE_S = 0.4
SEGMENT_BYTES = 500
_PR_SET_PDEATHSIG = 1


def tell(*facts: str) -> None:
    """All of them or none, whenever the process is killed."""
    os.write(sys.stdout.fileno(), "".join(f"{fact}\n" for fact in facts).encode())


def die_with_whoever_began_this() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


async def write(session: Session, name: str, random: Random) -> None:
    journal = session.journal
    while random.random() < 0.8:  # sometimes nothing at all
        first = len(journal.entries())
        texts = [f"{name} {first + number}" for number in range(random.randint(1, 3))]
        try:
            for text in texts:
                journal.append(UserSaid(text=text))
            await journal.commit()
        except SessionTaken:
            tell(*(f"refused {text}" for text in texts))
            return
        tell(*(f"stored {text}" for text in texts))
        if random.random() < 0.2:
            await session.write_files({"transcript.md": texts[-1].encode()})
        await asyncio.sleep(random.random() * 0.02)


async def race(sessions: SessionStore, session_id: str, name: str) -> None:
    random = Random(name)
    for tenure in count():
        try:
            session = await sessions.open(session_id)
        except SessionTaken:
            await asyncio.sleep(random.random() * 0.05)
            continue
        try:
            await write(session, f"{name}.{tenure}", random)
        except SessionTaken:
            tell("overtaken while a file was kept")
        await session.release()
        await asyncio.sleep(random.random() * 0.02)


if __name__ == "__main__":
    vars(bucket_journal).update(LEASE_S=LEASE_S, LEASE_BEAT_S=LEASE_S / 4, SEGMENT_BYTES=SEGMENT_BYTES)
    vars(bucket_sessions).update(LEASE_S=LEASE_S)
    die_with_whoever_began_this()
    for generation in count():
        if not (born := os.fork()):
            die_with_whoever_began_this()
            name = f"{sys.argv[3]}-{generation}"
            asyncio.run(race(session_store_at(sys.argv[1], time.time), sys.argv[2], name))
        tell(f"born {born}")
        if not os.WIFSIGNALED(os.waitpid(born, 0)[1]):
            break  # it has left a trace
