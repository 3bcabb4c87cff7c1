"""Processes that die or hang at any moment, played in this one: what a life does is counted, and at a given count it
ends, or stands still until somebody lets it go on."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from hummingbird.core.journal import JournalEntry
from hummingbird.core.protocols.sandbox import SandboxArchive
from hummingbird.core.protocols.sessions import Journal, Session, SessionStore, StoredSession
from hummingbird.core.protocols.storage import ObjectVersion, VersionedObjectStore
from tests.contracts.sessions.unreliable import UnreliableObjects

_WATCHED = 7  # every so many


class Died(BaseException):
    """This process is no more; whatever it still tries is not done."""


class Life:
    """Of one process. 0: it neither dies nor hangs. `watch` is awaited at some of its moments, by somebody else."""

    def __init__(self, dies_at: int = 0, hangs_at: int = 0, watch: Callable[[], Awaitable[None]] | None = None) -> None:
        self._dies_at, self._hangs_at, self._watch = dies_at, hangs_at, watch
        self._count = 0
        self._go_on = asyncio.Event()
        self.dead = False
        self.hanging = asyncio.Event()
        self.held: list[Session] = []

    def step(self) -> None:
        self._check()
        self._count += 1
        if self._count == self._dies_at:
            self.end()
            raise Died

    async def moment(self) -> None:
        self.step()
        if self._watch is not None and not self._count % _WATCHED:
            await self._watch()
        if self._count == self._hangs_at:
            self.hanging.set()
            await self._go_on.wait()
            self._check()

    def go_on(self) -> None:
        self._go_on.set()

    def end(self) -> None:
        """The kernel lets go of its locks."""
        self.dead = True
        for session in self.held:
            session.journal.close()

    def _check(self) -> None:
        if self.dead:
            raise Died


class MortalObjects(UnreliableObjects):
    """A store as such a process reaches it."""

    def __init__(self, objects: VersionedObjectStore, life: Life) -> None:
        super().__init__(objects)
        self._life = life

    async def compare_and_swap(self, name: str, content: bytes, known: ObjectVersion | None) -> ObjectVersion | None:
        await self._life.moment()
        version = await super().compare_and_swap(name, content, known)
        await self._life.moment()
        return version


class MortalJournal:
    def __init__(self, journal: Journal, life: Life) -> None:
        self._journal, self._life = journal, life

    def entries(self) -> Sequence[JournalEntry]:
        return self._journal.entries()

    def append(self, entry: JournalEntry) -> None:
        self._life.step()
        self._journal.append(entry)
        self._life.step()

    async def flush(self) -> None:
        await self.commit()

    async def commit(self) -> None:
        await self._life.moment()
        await self._journal.commit()
        await self._life.moment()

    def close(self) -> None:
        self._journal.close()


class MortalSession:
    def __init__(self, session: Session, life: Life) -> None:
        self._session, self._life = session, life
        self.journal = MortalJournal(session.journal, life)
        self.archives = session.archives

    @property
    def id(self) -> str:
        return self._session.id

    async def write_files(self, files: Mapping[str, bytes]) -> None:
        await self._life.moment()
        await self._session.write_files(files)

    async def catch_up(self) -> None:
        await self._life.moment()
        await self._session.catch_up()

    async def release(self) -> None:
        await self._life.moment()
        await self._session.release()


class MortalSessions:
    """Sessions as such a process has them."""

    def __init__(self, sessions: SessionStore, life: Life) -> None:
        self._sessions, self._life = sessions, life

    @property
    def address(self) -> str:
        return self._sessions.address

    async def open(self, session_id: str) -> Session:
        await self._life.moment()
        session = await self._sessions.open(session_id)
        self._life.held.append(session)
        await self._life.moment()
        return MortalSession(session, self._life)

    async def load_entries(self, session_id: str) -> Sequence[JournalEntry]:
        return await self._sessions.load_entries(session_id)

    async def read_file(self, session_id: str, name: str) -> bytes | None:
        return await self._sessions.read_file(session_id, name)

    async def load_archive(self, session_id: str) -> SandboxArchive | None:
        return await self._sessions.load_archive(session_id)

    async def list_sessions(self) -> Sequence[StoredSession]:
        return await self._sessions.list_sessions()

    async def remove(self, session_id: str, stamp: str = "") -> bool:
        return await self._sessions.remove(session_id, stamp)
