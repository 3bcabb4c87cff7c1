"""The sessions that there are, for whoever asks about them (S4): found by their words or the beginning of their ids,
exported, removed. The index is a cache of the store and is brought up to date before it is asked.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from hashlib import blake2b
from pathlib import Path

from hummingbird.adapters.stores.index import opened
from hummingbird.assembly.places import Places, places
from hummingbird.assembly.secrets import all_secrets
from hummingbird.assembly.session_copies import Saved, named, prepared, sessions_in, transferred
from hummingbird.assembly.session_stores import sessions_of
from hummingbird.config.configuration import Configuration
from hummingbird.config.settings import Settings
from hummingbird.domain.errors import HummingbirdError, JournalDamaged, ObjectsUnusable, SessionUnreadable
from hummingbird.domain.journal import Entry
from hummingbird.domain.session_limits import FRESH_S, SEARCH_HITS, SESSIONS_AT_ONCE
from hummingbird.domain.sessions import About, Summary, summary
from hummingbird.ports.clock import Clock
from hummingbird.ports.session_index import Day, Hit, SessionIndex, Spoken
from hummingbird.ports.sessions import Kept, Sessions

_log = logging.getLogger("hummingbird")
Progress = Callable[[int, int], None]  # so many of so many


def _unseen(done: int, of: int) -> None:
    """Where nobody watches."""


class SessionDesk:
    """Every verb raises ObjectsUnusable when the store cannot be used, JournalUnwritable when the index cannot."""

    def __init__(self, sessions: Sessions, index: SessionIndex) -> None:
        self.sessions, self._index = sessions, index
        self._refreshing: asyncio.Task[None] | None = None

    async def caught_up(self) -> None:
        """The index knows of what was said until now, here and by others, as far as it can be read in a moment; what
        takes longer goes on behind. Never raises: what there is can be searched all the same."""
        until = asyncio.get_running_loop().time() + FRESH_S
        if self._refreshing is not None:  # it may have looked before the last word was said
            await asyncio.wait({self._refreshing}, timeout=FRESH_S)
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.create_task(self._refreshed())
        await asyncio.wait({self._refreshing}, timeout=max(0.0, until - asyncio.get_running_loop().time()))

    async def rest(self) -> None:
        """Nothing goes on behind any more."""
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.wait({self._refreshing})

    async def _refreshed(self) -> None:
        try:
            await self.refresh()
        except HummingbirdError as error:
            _log.warning("The index of sessions could not be brought up to date: %s", error)

    async def refresh(self, on_progress: Progress = _unseen) -> None:
        """Brings the index up to date. What cannot be read is told and left out."""
        kept, known = await self.sessions.listed(), await self._index.stamps()
        changed = [one for one in reversed(kept) if known.get(one.session_id) != one.stamp]
        for begin in range(0, len(changed), SESSIONS_AT_ONCE):
            on_progress(begin, len(changed))
            some = changed[begin : begin + SESSIONS_AT_ONCE]
            found = await asyncio.gather(*(self._read(one) for one in some))
            for one, entries in zip(some, found, strict=True):
                if entries:
                    made = await asyncio.to_thread(summary, entries, one.session_id)
                    await self._index.put(one.session_id, one.stamp, made, entries)
        for gone in known.keys() - {one.session_id for one in kept}:
            await self._index.forget(gone)

    async def rebuild(self, on_progress: Progress = _unseen) -> int:
        """From the journals alone. How many sessions it has then."""
        await self._index.clear()
        await self.refresh(on_progress)
        return len(await self._index.stamps())

    async def listed(self, limit: int, project: str = "", text: str = "") -> Sequence[Summary]:
        return await self._index.listed(limit, project, text)

    async def days(self, since: date) -> Sequence[Day]:
        return await self._index.days(since)

    async def search(self, query: str, limit: int = SEARCH_HITS, project: str = "") -> Sequence[Hit]:
        return await self._index.search(query, limit, project)

    async def around(self, session_id: str, number: int, before: int, after: int, part: int = 0) -> Sequence[Spoken]:
        return await self._index.around(session_id, number, before, after, part)

    async def named(self, beginning: str) -> str:
        """The one session whose id begins so. Raises UsageFault for none and for several."""
        return await named(self.sessions, beginning)

    async def entries(self, session_id: str) -> Sequence[Entry]:
        """Raises JournalDamaged, SessionUnreadable."""
        return await self.sessions.entries(session_id)

    async def exported(self, session_id: str, folder: Path) -> Path:
        """All its files, as --resume-session takes them. Raises UsageFault if the folder holds another session."""
        place = await asyncio.to_thread(prepared, folder, Saved("the store", session_id, About()))
        with sessions_in(place, session_id) as target:
            await transferred(self.sessions, target, session_id)
        return place

    async def older_than(self, moment: float, project: str = "") -> Sequence[Kept]:
        """The last changed first. With a project, those that are known to be of it."""
        kept = [one for one in await self.sessions.listed() if one.changed_at < moment]
        if not project:
            return kept
        await self.refresh()
        theirs = {one.session_id for one in await self._index.listed(len(kept) + 1_000_000, project)}
        return [one for one in kept if one.session_id in theirs]

    async def remove(self, session_id: str, stamp: str = "") -> bool:
        """False if it has another stamp by now: something happened in it. Raises JournalTaken while somebody has it."""
        removed = await self.sessions.remove(session_id, stamp)
        with suppress(HummingbirdError):  # the next refresh does it
            await self._index.forget(session_id)
        return removed

    async def _read(self, kept: Kept) -> Sequence[Entry]:
        try:
            return await self.sessions.entries(kept.session_id)
        except (JournalDamaged, SessionUnreadable, ObjectsUnusable) as error:
            _log.warning("Session %s is not in the index: %s", kept.session_id, error)
            return ()


class Fresh:
    """The past as a conversation searches it (C7): brought up to date before, for what was said a moment ago, here
    before /new or by the service, is past as well. Fulfils agent.tools.recall.Past."""

    def __init__(self, desk: SessionDesk) -> None:
        self._desk = desk

    async def search(self, query: str, limit: int = SEARCH_HITS, project: str = "") -> Sequence[Hit]:
        await self._desk.caught_up()
        return await self._desk.search(query, limit, project)

    async def around(self, session_id: str, number: int, before: int, after: int, part: int = 0) -> Sequence[Spoken]:
        return await self._desk.around(session_id, number, before, after, part)


def desk_of(configuration: Configuration, environment: Mapping[str, str], clock: Clock) -> SessionDesk:
    """Over the configured store. What the environment knows to be secret is not indexed. Raises SessionUnreadable,
    JournalUnwritable and UsageFault."""
    settings = configuration.settings
    there = places(settings, environment)
    sessions = sessions_of(there, settings, clock.now)
    secrets = all_secrets(configuration, environment)
    file = index_file(there.made(), settings, clock.now)
    return SessionDesk(sessions, opened(file, secrets.mask, _log.warning))


def index_file(there: Places, settings: Settings, now: Callable[[], float]) -> Path:
    """Each store has its own."""
    address = sessions_of(there, settings, now).address
    return there.index(blake2b(address.encode(), digest_size=6).hexdigest())
