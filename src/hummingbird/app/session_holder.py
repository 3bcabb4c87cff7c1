"""Holds a session for one turn at a time.

Between two messages of a chat, anybody may continue the session, so that an open terminal keeps no merge request
waiting.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

from hummingbird.core.context_json import encode_context_json
from hummingbird.core.errors import (
    ArchiveUnusable,
    HummingbirdError,
    JournalDamaged,
    JournalUnwritable,
    JournalWriteDelayed,
    ObjectStoreUnusable,
    SessionTaken,
    UsageError,
)
from hummingbird.core.journal import JournalEntry
from hummingbird.core.projections import render_transcript
from hummingbird.core.protocols.observer import Clock
from hummingbird.core.protocols.sandbox import ArchiveStore, SandboxArchive
from hummingbird.core.protocols.sessions import Journal, Session, SessionStore
from hummingbird.core.protocols.storage import SpendingStore
from hummingbird.core.sessions import (
    CONTEXT,
    JOURNAL,
    METADATA,
    TRANSCRIPT,
    check_session_id,
    dump_summary,
    summarise_session,
)
from hummingbird.storage.folder_sessions import FolderArchiveStore
from hummingbird.storage.journals import NOT_KEPT, DegradingJournal, FileJournal, MemoryJournal, read_journal
from hummingbird.storage.spending_store import SqliteSpendingStore

# How long a message waits for a session that another process is storing, and the pause between two looks
STORING_S = 1.0
STORING_LOOK_S = 0.05
SPENDING_FILE = "spending.sqlite"


class SessionHolder(Protocol):
    """Opens and releases the journals of an agent's sessions."""

    @property
    def archives(self) -> ArchiveStore | None: ...

    @property
    def spending(self) -> SpendingStore | None: ...

    def open_journal(self, session_id: str) -> Journal:
        """Open the journal of a session.

        Raises UsageError, JournalUnwritable, JournalDamaged and SessionUnreadable.
        """
        ...

    def release_journal(self, journal: Journal) -> None:
        """Release a journal that the agent no longer needs."""
        ...


class FolderSessionHolder:
    """Keeps sessions in a folder. With `on_trouble`, a journal that cannot be written is reported and the run
    continues.
    """

    def __init__(self, folder: Path | None, clock: Clock, on_trouble: Callable[[str], None] | None = None) -> None:
        self._folder, self._on_trouble = folder, on_trouble
        self.archives = None if folder is None else FolderArchiveStore(folder)
        self.spending = None if folder is None else SqliteSpendingStore(folder / SPENDING_FILE, clock.now)

    def open_journal(self, session_id: str) -> Journal:
        if self._folder is None:
            return MemoryJournal()
        path = session_folder(self._folder, session_id) / JOURNAL
        if self._on_trouble is None:
            return FileJournal(path)
        try:
            return DegradingJournal(FileJournal(path), self._on_trouble)
        except SessionTaken:
            raise
        except JournalUnwritable as error:
            self._on_trouble(f"{NOT_KEPT} {error}")
            return DegradingJournal(None, self._on_trouble, _readable_entries(path))

    def release_journal(self, journal: Journal) -> None:
        journal.close()


def _readable_entries(path: Path) -> list[JournalEntry]:
    """Return the entries of a session that cannot be written.

    Raises JournalDamaged and SessionUnreadable.
    """
    try:
        return read_journal(path)
    except OSError:
        return []


class OpenSessionHolder:
    """Uses one session that the caller has opened and will release."""

    def __init__(self, journal: Journal, archives: ArchiveStore | None, spending: SpendingStore | None) -> None:
        self._journal = journal
        self.archives, self.spending = archives, spending

    def open_journal(self, session_id: str) -> Journal:
        return self._journal

    def release_journal(self, journal: Journal) -> None:
        """Do nothing: the caller still writes files beside the journal."""


def session_folder(sessions: Path, session_id: str) -> Path:
    """Return the folder of a session.

    Raises UsageError for an id that is not a file name.
    """
    return sessions / check_session_id(session_id)


# The session of one run must not prevent its note: if the store cannot be written, the run continues in memory with
# what can be read, and the store stays as it was.


_log = logging.getLogger("hummingbird")


class OpenSession:
    """An open session. If `session` is None, it is in memory only, and `earlier` holds what could be read of it."""

    def __init__(
        self, session: Session | None, on_trouble: Callable[[str], None], earlier: Sequence[JournalEntry] = ()
    ) -> None:
        self._session, self._on_trouble = session, on_trouble
        self._complaints: list[str] = []
        kept = None if session is None else session.journal
        self.journal = DegradingJournal(kept, self._complaints.append, earlier)

    @property
    def archives(self) -> ArchiveStore | None:
        return None if self._session is None else _JournalBoundArchives(self.journal, self._session.archives)

    async def store_and_release(self) -> None:
        """Write the files beside the journal and release the session. Never raises."""
        if self._session is None:
            return
        try:
            await self._store_files(self._session)
        except SessionTaken as error:  # whoever has it now writes what belongs there
            self._on_trouble(f"The last messages are not part of this session any more. {error}")
        finally:
            await self._session.release()

    async def _store_files(self, session: Session) -> None:
        try:
            if not self.journal.is_complete:
                await self._catch_up(session)
            entries = tuple(self.journal.entries())
            if self.journal.is_complete and entries:
                await session.write_files(await asyncio.to_thread(_files_beside_journal, entries, session.id))
        except (ObjectStoreUnusable, JournalDamaged) as error:
            self._on_trouble(f"This session could not be stored completely. {error}")

    async def _catch_up(self, session: Session) -> None:
        """Commit once more, in case a bucket is available again; entries that are missing from a file stay missing."""
        try:
            await session.catch_up()
            await self.journal.commit()
        except (JournalWriteDelayed, JournalDamaged) as error:
            _log.warning("Session %s: %s", session.id, error)
        if not self.journal.is_complete:
            for sentence in self._complaints:
                self._on_trouble(sentence)


def _files_beside_journal(entries: Sequence[JournalEntry], session_id: str) -> dict[str, bytes]:
    """Return the files that are computed from the journal. Slow for long sessions: do not call it on the event loop."""
    return {
        CONTEXT: encode_context_json(entries),
        TRANSCRIPT: render_transcript(entries).encode("utf-8", "replace"),
        METADATA: dump_summary(summarise_session(entries, session_id)),
    }


class _JournalBoundArchives:
    """Saves archives of the sandbox only if the journal, which describes them, is saved as well."""

    def __init__(self, journal: DegradingJournal, archives: ArchiveStore) -> None:
        self._journal, self._archives = journal, archives

    async def put(self, session_id: str, chunks: AsyncIterator[bytes]) -> int:
        if self._journal.is_memory_only:
            raise ArchiveUnusable("The session is no longer stored, so its files are not either.")
        return await self._archives.put(session_id, chunks)

    async def get(self, session_id: str) -> SandboxArchive | None:
        return await self._archives.get(session_id)


async def open_session(
    sessions: SessionStore, session_id: str, on_trouble: Callable[[str], None], *, needed: bool
) -> OpenSession:
    """Open a session; with `needed`, fail if its entries cannot be read.

    Raises SessionTaken, JournalDamaged, SessionUnreadable and UsageError; ObjectStoreUnusable if it is needed.
    """
    try:
        session = await sessions.open(session_id)
    except SessionTaken:
        raise
    except (JournalUnwritable, ObjectStoreUnusable) as error:
        earlier = await _read_entries(sessions, session_id, needed=needed)
        on_trouble(f"{NOT_KEPT} {error}")
        return OpenSession(None, on_trouble, earlier)
    if needed and not session.journal.entries():  # removed in the very moment
        await session.release()
        raise _session_gone_error(session_id)
    return OpenSession(session, on_trouble)


async def _read_entries(sessions: SessionStore, session_id: str, *, needed: bool) -> Sequence[JournalEntry]:
    try:
        found = await sessions.load_entries(session_id)
    except HummingbirdError:
        if needed:
            raise
        return ()
    if needed and not found:
        raise _session_gone_error(session_id)
    return found


def _session_gone_error(session_id: str) -> ObjectStoreUnusable:
    return ObjectStoreUnusable(f"The session {session_id} no longer exists; start a new one.")


class TurnSessionHolder:
    """Holds a chat's session for the time of a turn."""

    def __init__(
        self, sessions: SessionStore, on_trouble: Callable[[str], None], spending: SpendingStore | None = None
    ) -> None:
        self._sessions, self._on_trouble = sessions, on_trouble
        self._held: OpenSession | None = None
        self._held_id = ""  # the id of the session that is held
        self._current_id = ""  # the id of the session at hand
        self._last_entries: Sequence[JournalEntry] = ()
        self._unstored_entries: dict[str, Sequence[JournalEntry]] = {}  # sessions that the store did not take whole
        self._turn_lock = asyncio.Lock()
        self._saving = 0  # checkpoints that are written beside the session which is held
        self._saved = asyncio.Event()
        self._release_tasks: set[asyncio.Task[None]] = set()
        self.archives: ArchiveStore | None = _TurnArchives(self)
        self.spending = spending

    @asynccontextmanager
    async def hold_turn(self, session_id: str, *, needed: bool = False) -> AsyncIterator[OpenSession]:
        """Hold the session for a turn. Files beside it are written in the background afterwards, and the next turn
        waits for that.

        Raises what `open_session` raises.
        """
        await self._turn_lock.acquire()
        try:
            session = await self._open_when_free(session_id, needed=needed)
        except BaseException:
            self._turn_lock.release()
            raise
        self._held, self._held_id = session, session_id
        try:
            self._append_unstored(session_id, session)
            yield session
        finally:
            if session_id == self._current_id:
                self._last_entries = tuple(session.journal.entries())
            leaving = asyncio.create_task(self._release(session_id, session))
            self._release_tasks.add(leaving)
            leaving.add_done_callback(self._release_tasks.discard)

    async def _open_when_free(self, session_id: str, *, needed: bool) -> OpenSession:
        """Open the session; wait while another process stores it, but not for a run of another process."""
        clock = asyncio.get_running_loop().time
        until = clock() + STORING_S
        while True:
            try:
                return await open_session(self._sessions, session_id, self._on_trouble, needed=needed)
            except SessionTaken:
                if clock() >= until:
                    raise
            await asyncio.sleep(STORING_LOOK_S)

    def _append_unstored(self, session_id: str, session: OpenSession) -> None:
        """Append entries that could not be written in earlier turns, for example because the disk was full."""
        entries, kept = self._unstored_entries.pop(session_id, ()), session.journal.entries()
        if not entries and not session.journal.is_complete and session_id == self._current_id:
            entries = self._last_entries  # it could not even be read
        if entries and list(entries[: len(kept)]) != list(kept):
            self._on_trouble("Messages that could not be stored were dropped: somebody else continued this session.")
            return
        for entry in entries[len(kept) :]:
            session.journal.append(entry)

    async def _release(self, session_id: str, session: OpenSession) -> None:
        try:
            while self._saving:
                self._saved.clear()
                await self._saved.wait()
            self._held = None
            await session.store_and_release()
            if not session.journal.is_complete:
                self._unstored_entries[session_id] = tuple(session.journal.entries())
        finally:
            self._held = None
            self._turn_lock.release()

    async def wait_until_stored(self) -> None:
        """Wait until everything is stored and released."""
        if self._release_tasks:
            await asyncio.wait(set(self._release_tasks))

    def entries(self) -> Sequence[JournalEntry]:
        """Return the entries of the current session as of its last turn."""
        return self._held.journal.entries() if self._held and self._held_id == self._current_id else self._last_entries

    def keeps(self, session_id: str) -> bool:
        """Return whether the current session has entries, all of which were stored when its last turn ended."""
        return bool(self.entries()) and session_id not in self._unstored_entries

    def switch_to(self, session_id: str, entries: Sequence[JournalEntry]) -> None:
        """Make another session the current one; `entries` are its entries so far."""
        self._current_id, self._last_entries = session_id, entries

    def open_journal(self, session_id: str) -> Journal:
        if self._held is None or self._held_id != session_id:
            raise JournalUnwritable("The session is not open: nothing can be written between two turns.")
        return self._held.journal

    def release_journal(self, journal: Journal) -> None:
        """Do nothing: the session is released when the turn ends."""

    @asynccontextmanager
    async def hold_archives(self, session_id: str) -> AsyncIterator[ArchiveStore | None]:
        """Yield the session's archives; hold the session for that if it is not held."""
        if self._held is None or self._held_id != session_id:
            async with self.hold_turn(session_id) as session:
                yield session.archives
            return
        self._saving += 1
        try:
            yield self._held.archives
        finally:
            self._saving -= 1
            self._saved.set()


class _TurnArchives:
    def __init__(self, keeping: TurnSessionHolder) -> None:
        self._holder = keeping

    async def put(self, session_id: str, chunks: AsyncIterator[bytes]) -> int:
        async with self._holder.hold_archives(session_id) as archives:
            return 0 if archives is None else await archives.put(session_id, chunks)

    async def get(self, session_id: str) -> SandboxArchive | None:
        async with self._holder.hold_archives(session_id) as archives:
            return None if archives is None else await archives.get(session_id)


def check_known_session(folder: Path | None, session_id: str) -> str:
    """Return the id unchanged.

    Raises UsageError for one that is only the beginning of a session's id: it would start another session.
    """
    if folder is None:
        return session_id
    place = session_folder(folder, session_id)
    if not place.exists() and place.parent.is_dir():
        meant = sorted(one.name for one in place.parent.iterdir() if one.name.startswith(place.name))
        if meant:
            raise UsageError(f"There is no session {session_id}; write the whole id: {' or '.join(meant[:3])}.")
    return session_id
