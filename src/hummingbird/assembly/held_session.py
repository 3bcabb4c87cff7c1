"""The session of one run: opened before it, put away after it, and never in the way of its note (S2).

A store that cannot be written leaves the run with what can be read of the session, in memory; what is in the store
stays as it was.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence

from hummingbird.adapters.stores.degrading import NOT_KEPT, DegradingJournal
from hummingbird.domain.envelope import context_json
from hummingbird.domain.errors import (
    ArchiveUnusable,
    HummingbirdError,
    JournalBehind,
    JournalDamaged,
    JournalTaken,
    JournalUnwritable,
    ObjectsUnusable,
)
from hummingbird.domain.journal import Entry
from hummingbird.domain.sessions import CONTEXT, METADATA, TRANSCRIPT, dump_summary, summary
from hummingbird.domain.transcript import transcript
from hummingbird.ports.archives import Archive, Archives
from hummingbird.ports.sessions import Session, Sessions

_log = logging.getLogger("hummingbird")


class HeldSession:
    """`session` None: there is only what is in memory, and `earlier` of it was read."""

    def __init__(
        self, session: Session | None, on_trouble: Callable[[str], None], earlier: Sequence[Entry] = ()
    ) -> None:
        self._session, self._on_trouble = session, on_trouble
        self._complaints: list[str] = []
        kept = None if session is None else session.journal
        self.journal = DegradingJournal(kept, self._complaints.append, earlier)

    @property
    def archives(self) -> Archives | None:
        return None if self._session is None else _ArchivesBeside(self.journal, self._session.archives)

    async def put_away(self) -> None:
        """Stores what can be made of the journal beside it, and lets go of the session. Never raises."""
        if self._session is None:
            return
        try:
            await self._stored(self._session)
        except JournalTaken as error:  # whoever has it now writes what belongs there
            self._on_trouble(f"What was said last is not part of this session any more. {error}")
        finally:
            await self._session.release()

    async def _stored(self, session: Session) -> None:
        try:
            if not self.journal.whole:
                await self._caught_up(session)
            entries = tuple(self.journal.entries())
            if self.journal.whole and entries:
                await session.keep(await asyncio.to_thread(_beside, entries, session.id))
        except (ObjectsUnusable, JournalDamaged) as error:
            self._on_trouble(f"This session could not be stored whole. {error}")

    async def _caught_up(self, session: Session) -> None:
        """A bucket that was away for a while may be back. What was left out of a file stays out."""
        try:
            await session.catch_up()
            await self.journal.commit()
        except (JournalBehind, JournalDamaged) as error:
            _log.warning("Session %s: %s", session.id, error)
        if not self.journal.whole:
            for sentence in self._complaints:
                self._on_trouble(sentence)


def _beside(entries: Sequence[Entry], session_id: str) -> dict[str, bytes]:
    """Of a long session this takes longer than a key may take to appear, so not on the event loop."""
    return {
        CONTEXT: context_json(entries),
        TRANSCRIPT: transcript(entries).encode("utf-8", "replace"),
        METADATA: dump_summary(summary(entries, session_id)),
    }


class _ArchivesBeside:
    """Files of a sandbox belong to what the journal says of them: where that is not kept, they are not either (S2)."""

    def __init__(self, journal: DegradingJournal, archives: Archives) -> None:
        self._journal, self._archives = journal, archives

    async def put(self, session_id: str, chunks: AsyncIterator[bytes]) -> int:
        if self._journal.apart:
            raise ArchiveUnusable("The session is not kept any more, so its files are not either.")
        return await self._archives.put(session_id, chunks)

    async def get(self, session_id: str) -> Archive | None:
        return await self._archives.get(session_id)


async def held(sessions: Sessions, session_id: str, on_trouble: Callable[[str], None], *, needed: bool) -> HeldSession:
    """`needed`: nothing can be done without what is there. Raises JournalTaken, JournalDamaged, SessionUnreadable and
    UsageFault; ObjectsUnusable if it is needed and cannot be read."""
    try:
        session = await sessions.open(session_id)
    except JournalTaken:
        raise
    except (JournalUnwritable, ObjectsUnusable) as error:
        earlier = await _read(sessions, session_id, needed=needed)
        on_trouble(f"{NOT_KEPT} {error}")
        return HeldSession(None, on_trouble, earlier)
    if needed and not session.journal.entries():  # removed in the very moment
        await session.release()
        raise _gone(session_id)
    return HeldSession(session, on_trouble)


async def _read(sessions: Sessions, session_id: str, *, needed: bool) -> Sequence[Entry]:
    try:
        found = await sessions.entries(session_id)
    except HummingbirdError:
        if needed:
            raise
        return ()
    if needed and not found:
        raise _gone(session_id)
    return found


def _gone(session_id: str) -> ObjectsUnusable:
    return ObjectsUnusable(f"There is no session {session_id} any more; start anew.")
