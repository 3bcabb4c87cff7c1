"""Where a case is played: one place for sessions that any number of processes open, a clock that can be put forward,
and what is really stored there. Knows no backend."""

import asyncio
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import pytest

from hummingbird.core.journal import JournalEntry, SessionOpened, UserSaid
from hummingbird.core.protocols.sessions import Session, SessionStore
from hummingbird.core.protocols.storage import ObjectStore
from hummingbird.core.sessions import LEASE_S
from hummingbird.storage import bucket_journal
from hummingbird.storage.journals import FileJournal
from tests.contracts.sessions.unreliable import UnreliableObjects

LONGEST_CASE_S = 60.0
ID = "a-session"
OPENED = SessionOpened(session_id=ID, system="Regeln: ü\n", format=1, at=1.5)
_OPENER = Path(__file__).with_name("opener.py")


class Site(Protocol):
    """One place for sessions. `room` is what the names of its objects begin with, `journal` the one that grows."""

    room: str
    journal: str
    address: str

    @property
    def objects(self) -> ObjectStore: ...

    def sessions(self, now: Callable[[], float]) -> SessionStore: ...


class Case(Protocol):
    __name__: str

    def __call__(self, stage: "Stage") -> Coroutine[Any, Any, None]: ...


class Stage:
    def __init__(self, site: Site, patch: pytest.MonkeyPatch) -> None:
        self.site, self.patch = site, patch
        self._forward_s = 0.0
        self._after = AsyncExitStack()

    async def play(self, case: Case) -> None:
        async with asyncio.timeout(LONGEST_CASE_S), AsyncExitStack() as self._after:
            await case(self)

    @property
    def sessions(self) -> SessionStore:
        return self.site.sessions(self.now)

    @property
    def between(self) -> UnreliableObjects:
        """What stands between a bucket and its sessions."""
        between = getattr(self.site, "between", None)
        assert isinstance(between, UnreliableObjects)
        return between

    def now(self) -> float:
        return time.time() + self._forward_s

    def leases_run_out(self) -> None:
        self._forward_s += LEASE_S + 1

    async def opened(self, session_id: str = ID) -> Session:
        """Released after the case, whatever becomes of it."""
        session = await self.sessions.open(session_id)
        self._after.push_async_callback(session.release)
        return session

    async def told(self, *entries: JournalEntry, session_id: str = ID) -> None:
        """A session with these in its journal, that nobody has."""
        session = await self.opened(session_id)
        await committed(session, *entries)
        await session.release()

    async def entries(self, session_id: str = ID) -> list[JournalEntry]:
        return list(await self.sessions.load_entries(session_id))

    async def stored(self) -> dict[str, bytes]:
        """Everything that is there, by name."""
        found = {name: await self.site.objects.get(name) for name in await self.site.objects.list_names("")}
        return {name: content for name, content in found.items() if content is not None}

    async def write(self, name: str, content: bytes, session_id: str = ID) -> None:
        await self.site.objects.put(f"{self.site.room}{session_id}/{name}", content)

    async def change(self, change: Callable[[bytes], bytes], name: str = "", session_id: str = ID) -> None:
        """What the journal, or the file of that name, holds."""
        where = f"{self.site.room}{session_id}/{name or self.site.journal}"
        content = await self.site.objects.get(where)
        assert content is not None
        await self.site.objects.put(where, change(content))

    def journals_hold(self, most_bytes: int) -> None:
        self.patch.setattr(bucket_journal, "JOURNAL_BYTES", most_bytes)
        self.patch.setattr(FileJournal.__init__, "__defaults__", (most_bytes,))

    def segments_hold(self, most_bytes: int) -> None:
        self.patch.setattr(bucket_journal, "SEGMENT_BYTES", most_bytes)

    @asynccontextmanager
    async def other_process(self, deed: str, session_id: str = ID) -> AsyncIterator[Process]:
        words = (str(_OPENER), deed, self.site.address, session_id)
        process = await asyncio.create_subprocess_exec(sys.executable, *words, stdin=PIPE, stdout=PIPE)
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()


def said(*numbers: int) -> Sequence[UserSaid]:
    """Texts that are hard on lines."""
    return [UserSaid(text=f'{number}: warum?\n\x00\x1f\u2028"\\ 😀', at=float(number)) for number in numbers]


async def committed(session: Session, *entries: JournalEntry) -> None:
    for entry in entries:
        session.journal.append(entry)
    await session.journal.commit()


def segments(stored: dict[str, bytes]) -> Iterator[str]:
    """The names of sealed ones, in their order."""
    return (name for name in sorted(stored) if "/journal/" in name and not name.endswith("tail.jsonl"))


async def chunks(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
