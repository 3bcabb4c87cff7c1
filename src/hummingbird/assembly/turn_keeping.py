"""A session that is held for one turn at a time: between two messages of a chat anybody may go on with it, so that a
terminal left open does not keep a merge request waiting (C4).
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from hummingbird.assembly.held_session import HeldSession, held
from hummingbird.domain.chat_limits import STORING_LOOK_S, STORING_S
from hummingbird.domain.errors import JournalTaken, JournalUnwritable
from hummingbird.domain.journal import Entry
from hummingbird.ports.archives import Archive, Archives
from hummingbird.ports.journal import Journal
from hummingbird.ports.sessions import Sessions
from hummingbird.ports.spending import Spending


class TurnKeeping:
    """Fulfils Keeping."""

    def __init__(self, sessions: Sessions, on_trouble: Callable[[str], None], spending: Spending | None = None) -> None:
        self._sessions, self._on_trouble = sessions, on_trouble
        self._held: HeldSession | None = None
        self._holds = ""  # the id of the session that is held
        self._at = ""  # the id of the session at hand
        self._last: Sequence[Entry] = ()
        self._unkept: dict[str, Sequence[Entry]] = {}  # sessions that the store did not take whole
        self._one = asyncio.Lock()
        self._saving = 0  # checkpoints that are written beside the session which is held
        self._saved = asyncio.Event()
        self._leaving: set[asyncio.Task[None]] = set()
        self.archives: Archives | None = _ArchivesOfTurn(self)
        self.spending = spending

    @asynccontextmanager
    async def turn(self, session_id: str, *, needed: bool = False) -> AsyncIterator[HeldSession]:
        """Holds the session. What is to be written beside it when the turn ends is written in the background: whoever
        spoke has their prompt back (C3), and the next turn waits for it. Raises what `held` raises."""
        await self._one.acquire()
        try:
            session = await self._had(session_id, needed=needed)
        except BaseException:
            self._one.release()
            raise
        self._held, self._holds = session, session_id
        try:
            self._go_on(session_id, session)
            yield session
        finally:
            if session_id == self._at:
                self._last = tuple(session.journal.entries())
            leaving = asyncio.create_task(self._let_go(session_id, session))
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)

    async def _had(self, session_id: str, *, needed: bool) -> HeldSession:
        """Whoever spoke in it last may still be storing it: that is waited for, a run of theirs is not."""
        clock = asyncio.get_running_loop().time
        until = clock() + STORING_S
        while True:
            try:
                return await held(self._sessions, session_id, self._on_trouble, needed=needed)
            except JournalTaken:
                if clock() >= until:
                    raise
            await asyncio.sleep(STORING_LOOK_S)

    def _go_on(self, session_id: str, session: HeldSession) -> None:
        """What could not be written in the turns before is still part of the conversation: a disk that is full between
        two messages takes nothing out of it."""
        entries, kept = self._unkept.pop(session_id, ()), session.journal.entries()
        if not entries and not session.journal.whole and session_id == self._at:
            entries = self._last  # it could not even be read
        if entries and list(entries[: len(kept)]) != list(kept):
            self._on_trouble("What could not be stored is not part of this session any more: it was gone on with.")
            return
        for entry in entries[len(kept) :]:
            session.journal.append(entry)

    async def _let_go(self, session_id: str, session: HeldSession) -> None:
        try:
            while self._saving:
                self._saved.clear()
                await self._saved.wait()
            self._held = None
            await session.put_away()
            if not session.journal.whole:
                self._unkept[session_id] = tuple(session.journal.entries())
        finally:
            self._held = None
            self._one.release()

    async def settled(self) -> None:
        """Everything is kept that is to be kept, and nobody is kept waiting by us."""
        if self._leaving:
            await asyncio.wait(set(self._leaving))

    def entries(self) -> Sequence[Entry]:
        """Of the session at hand, as it was when it was last held."""
        return self._held.journal.entries() if self._held and self._holds == self._at else self._last

    def at(self, session_id: str, entries: Sequence[Entry]) -> None:
        """Another session is at hand; these are its entries so far."""
        self._at, self._last = session_id, entries

    def journal(self, session_id: str) -> Journal:
        if self._held is None or self._holds != session_id:
            raise JournalUnwritable("The session is not open: nothing can be written between two turns.")
        return self._held.journal

    def give_back(self, journal: Journal) -> None:
        """It is let go of when the turn ends."""

    @asynccontextmanager
    async def beside(self, session_id: str) -> AsyncIterator[Archives | None]:
        """The archives of the session; between two turns, and beside those of another session, it is held for that."""
        if self._held is None or self._holds != session_id:
            async with self.turn(session_id) as session:
                yield session.archives
            return
        self._saving += 1
        try:
            yield self._held.archives
        finally:
            self._saving -= 1
            self._saved.set()


class _ArchivesOfTurn:
    def __init__(self, keeping: TurnKeeping) -> None:
        self._keeping = keeping

    async def put(self, session_id: str, chunks: AsyncIterator[bytes]) -> int:
        async with self._keeping.beside(session_id) as archives:
            return 0 if archives is None else await archives.put(session_id, chunks)

    async def get(self, session_id: str) -> Archive | None:
        async with self._keeping.beside(session_id) as archives:
            return None if archives is None else await archives.get(session_id)
