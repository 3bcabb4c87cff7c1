"""The session of one run: opened before it, put away after it, and never in the way of its note (S2).

A store that cannot be written leaves the run with what can be read of the session, in memory; what is in the store
stays as it was.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress

from hummingbird.adapters.stores.degrading import NOT_KEPT, DegradingJournal
from hummingbird.domain.envelope import context_json
from hummingbird.domain.errors import (
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
from hummingbird.ports.archives import Archives
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
        return None if self._session is None else self._session.archives

    async def put_away(self) -> None:
        """Stores what can be made of the journal beside it, and lets go of the session. Never raises."""
        if self._session is None:
            return
        try:
            with suppress(JournalTaken):  # whoever has it now writes what belongs there
                await self._stored(self._session)
        finally:
            await self._session.release()

    async def _stored(self, session: Session) -> None:
        try:
            if not self.journal.whole:
                await self._caught_up(session)
            entries = self.journal.entries()
            if self.journal.whole and entries:
                await session.keep(CONTEXT, context_json(entries))
                await session.keep(TRANSCRIPT, transcript(entries).encode("utf-8", "replace"))
                await session.keep(METADATA, dump_summary(summary(entries, session.id)))
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


async def held(sessions: Sessions, session_id: str, on_trouble: Callable[[str], None], *, needed: bool) -> HeldSession:
    """`needed`: nothing can be done without what is there. Raises JournalTaken, JournalDamaged, SessionUnreadable and
    UsageFault; ObjectsUnusable if it is needed and cannot be read."""
    try:
        return HeldSession(await sessions.open(session_id), on_trouble)
    except JournalTaken:
        raise
    except (JournalUnwritable, ObjectsUnusable) as error:
        earlier = await _read(sessions, session_id, needed=needed)
        on_trouble(f"{NOT_KEPT} {error}")
        return HeldSession(None, on_trouble, earlier)


async def _read(sessions: Sessions, session_id: str, *, needed: bool) -> Sequence[Entry]:
    try:
        return await sessions.entries(session_id)
    except HummingbirdError:
        if needed:
            raise
        return ()
