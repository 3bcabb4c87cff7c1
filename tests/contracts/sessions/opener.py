"""What another process does to a session: `python opener.py DEED ADDRESS SESSION`. Tells a fact a line."""

import asyncio
import sys
import time

from hummingbird.app.stores import session_store_at
from hummingbird.core.errors import HummingbirdError
from hummingbird.core.journal import UserSaid
from hummingbird.core.protocols.sessions import SessionStore


def tell(fact: object) -> None:
    sys.stdout.write(f"{fact}\n")
    sys.stdout.flush()


async def hold(sessions: SessionStore, session_id: str) -> None:
    """Has it, with one entry, until the standard input ends."""
    session = await sessions.open(session_id)
    session.journal.append(UserSaid(text="from another process"))
    await session.journal.commit()
    tell("open")
    await asyncio.to_thread(sys.stdin.read)
    await session.release()


async def attempt(sessions: SessionStore, session_id: str) -> None:
    try:
        session = await sessions.open(session_id)
        tell(f"opened with {len(session.journal.entries())}")
        await session.release()
    except HummingbirdError as error:
        tell(f"{type(error).__name__} {error}")


DEEDS = {deed.__name__: deed for deed in (hold, attempt)}

if __name__ == "__main__":
    asyncio.run(DEEDS[sys.argv[1]](session_store_at(sys.argv[2], time.time), sys.argv[3]))
