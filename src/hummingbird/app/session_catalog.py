"""Lists, searches, exports and removes sessions.

The index is a cache of the store and is refreshed before it is searched.
"""

import asyncio
import logging
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from hashlib import blake2b
from pathlib import Path
from uuid import uuid4

import msgspec

from hummingbird.app.environment_secrets import all_secrets
from hummingbird.app.session_holder import session_folder
from hummingbird.app.stores import StatePaths, session_store, state_paths
from hummingbird.config.configuration import Configuration
from hummingbird.config.settings import Settings
from hummingbird.core.context_json import migrate_context_json
from hummingbird.core.errors import HummingbirdError, JournalDamaged, ObjectStoreUnusable, SessionUnreadable, UsageError
from hummingbird.core.journal import JournalEntry, SessionOpened, SessionRenamed
from hummingbird.core.protocols.observer import Clock
from hummingbird.core.protocols.run_figures import RunFiguresSource
from hummingbird.core.protocols.sessions import (
    DailyCost,
    IndexedText,
    SearchHit,
    Session,
    SessionIndex,
    SessionStore,
    StoredSession,
)
from hummingbird.core.sessions import (
    ARCHIVE,
    CONTEXT,
    CONTEXT_BYTES,
    FRESH_S,
    JOURNAL,
    METADATA,
    SEARCH_HITS,
    SESSIONS_AT_ONCE,
    TRANSCRIPT,
    SessionSubject,
    SessionSummary,
    check_session_id,
    dump_summary,
    find_subject,
    summarise_session,
)
from hummingbird.storage.folder_sessions import FolderSessionStore
from hummingbird.storage.journals import read_journal
from hummingbird.storage.session_index import open_session_index

# Folders of --save-session and --resume-session hold one session each; another session never overwrites it.


SESSION_FILES = (JOURNAL, CONTEXT, TRANSCRIPT, ARCHIVE, METADATA)
_SMALL_FILES = (CONTEXT, TRANSCRIPT, METADATA)


@dataclass(frozen=True, slots=True)
class SavedSession:
    """A session that was saved.

    `location` says where it is, in words. `folder` holds only this session; None for a session of the store.
    """

    location: str
    session_id: str
    about: SessionSubject
    folder: Path | None = None


async def find_saved_session(said: str, store: SessionStore) -> SavedSession:
    """Return the session in that folder, or the one whose id starts with this text.

    Raises UsageError if there is none, JournalDamaged, SessionUnreadable and ObjectStoreUnusable.
    """
    folder = Path(said)
    try:
        is_folder = await asyncio.to_thread(folder.is_dir)
    except OSError as error:
        raise _folder_error(folder, error) from error
    if is_folder:
        return await asyncio.to_thread(_read_folder_session, folder)
    try:
        session_id = await find_session_id(store, said)
    except UsageError as error:
        raise UsageError(f"{said} is not a folder that --save-session has filled, and no id: {error}") from error
    entries = await store.load_entries(session_id)
    return SavedSession(f"session {session_id} of {store.address}", session_id, find_subject(entries))


def _read_folder_session(folder: Path) -> SavedSession:
    entries = _read_folder_entries(folder)
    opened = next((entry for entry in entries if isinstance(entry, SessionOpened)), None)
    if opened is None:
        raise UsageError(
            f"There is no session in {folder}: it holds no {JOURNAL}. Name a folder that --save-session has filled."
        )
    return SavedSession(f"the session in {folder}", opened.session_id, find_subject(entries), folder)


def _read_folder_entries(folder: Path) -> Sequence[JournalEntry]:
    try:
        if (folder / JOURNAL).is_file():
            return read_journal(folder / JOURNAL)
        if (folder / CONTEXT).is_file():
            with (folder / CONTEXT).open("rb") as file:
                return migrate_context_json(file.read(CONTEXT_BYTES + 1), uuid4().hex)
    except OSError as error:
        raise _folder_error(folder, error) from error
    return ()


def prepare_folder(folder: Path, going_on: SavedSession | None = None) -> Path:
    """Create the folder for a new session, or for continuing the given one.

    Raises UsageError if it holds another session.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        there = next((name for name in SESSION_FILES if (folder / name).exists()), "")
        ours = going_on is not None and there and _read_folder_session(folder).session_id == going_on.session_id
        same = going_on is not None and going_on.folder is not None and folder.samefile(going_on.folder)
    except OSError as error:
        raise _folder_error(folder, error) from error
    if there and not ours and not same:
        raise UsageError(f"{folder} holds another session already ({there}); name another folder to save this in.")
    return folder.absolute()


async def find_session_id(sessions: SessionStore, beginning: str) -> str:
    """Return the one session whose id starts with this text.

    Raises UsageError if there is none or several.
    """
    if await sessions.read_file(check_session_id(beginning), METADATA) is not None:
        return beginning
    found = [one.session_id for one in await sessions.list_sessions() if one.session_id.startswith(beginning)]
    if beginning in found:
        return beginning
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{len(found)} sessions begin with {beginning}: write more of the id.")
    raise UsageError(
        f"There is no session {beginning} in {sessions.address}; `hummingbird sessions list` shows what there is."
    )


async def copy_session(source: SessionStore, target: SessionStore, session_id: str) -> None:
    """Copy a session unless the target has as much of it.

    Raises UsageError if the target's copy continued in another way, SessionTaken, JournalUnwritable,
    ObjectStoreUnusable and ArchiveUnusable.
    """
    ours = await source.load_entries(session_id)
    session = await target.open(session_id)
    try:
        if _has_more_entries(list(session.journal.entries()), list(ours), target):
            await _copy_contents(source, session, ours)
    finally:
        await session.release()


async def fork_session(sessions: SessionStore, session_id: str, new_id: str, title: str) -> None:
    """Copy a session under another id and title; the original stays as it is. Raises what `copy_session` raises."""
    ours = await sessions.load_entries(session_id)
    session = await sessions.open(new_id)
    try:
        if (archive := await sessions.load_archive(session_id)) is not None:
            await session.archives.put(new_id, archive.chunks)
        for entry in ours:
            is_first = isinstance(entry, SessionOpened)
            session.journal.append(msgspec.structs.replace(entry, session_id=new_id) if is_first else entry)
        session.journal.append(SessionRenamed(at=ours[-1].at, title=title))
        await session.journal.commit()
        summary = summarise_session(session.journal.entries(), new_id)
        await session.write_files({METADATA: dump_summary(summary)})
    finally:
        await session.release()


def _has_more_entries(source: list[JournalEntry], copied: list[JournalEntry], target: SessionStore) -> bool:
    """Return whether the source has entries that the target lacks."""
    both = min(len(source), len(copied))
    if _without_times(source[:both]) != _without_times(copied[:both]):
        raise UsageError(
            f"The session was continued differently in {target.address}: continue that one, or name another place."
        )
    return len(copied) > len(source)


def _without_times(entries: list[JournalEntry]) -> list[JournalEntry]:
    """Return the entries without times: sessions of an older format are converted at different times."""
    return [msgspec.structs.replace(entry, at=0.0) for entry in entries]


async def _copy_contents(source: SessionStore, session: Session, entries: Sequence[JournalEntry]) -> None:
    """Copy the archive first, because the journal says what is in it."""
    if (archive := await source.load_archive(session.id)) is not None:
        await session.archives.put(session.id, archive.chunks)
    for entry in entries[len(session.journal.entries()) :]:
        session.journal.append(entry)
    await session.journal.commit()
    files = {name: await source.read_file(session.id, name) for name in _SMALL_FILES}
    await session.write_files({name: content for name, content in files.items() if content is not None})


@contextmanager
def temporary_sessions(folder: Path | None, session_id: str) -> Iterator[FolderSessionStore]:
    """Yield a store that is deleted afterwards. With a `folder`, this one session is written there, so that it survives
    a kill.
    """
    with tempfile.TemporaryDirectory(prefix="hummingbird-run-") as made:
        sessions = Path(made)
        if folder is not None:
            session_folder(sessions, session_id).symlink_to(folder.absolute(), target_is_directory=True)
        yield FolderSessionStore(sessions, named=str(folder or ""))


def _folder_error(folder: Path, error: OSError) -> UsageError:
    return UsageError(f"The folder {folder} cannot be used: {error.strerror}. Name another one for the session.")


_log = logging.getLogger("hummingbird")
IndexProgress = Callable[[int, int], None]  # so many of so many


def _ignore_progress(done: int, of: int) -> None:
    """Report nothing."""


class SessionCatalog:
    """The sessions of a store with their index.

    Methods raise ObjectStoreUnusable if the store cannot be used, JournalUnwritable if the index cannot.
    """

    def __init__(self, sessions: SessionStore, index: SessionIndex) -> None:
        self.sessions, self._index = sessions, index
        self._refresh_task: asyncio.Task[None] | None = None
        self._damaged: set[tuple[str, str]] = set()  # id and stamp; what was told once is not read again

    async def catch_up(self) -> None:
        """Refresh the index as far as that takes a moment; the rest continues in the background. Never raises."""
        until = asyncio.get_running_loop().time() + FRESH_S
        if self._refresh_task is not None:  # it may have looked before the last word was said
            await asyncio.wait({self._refresh_task}, timeout=FRESH_S)
        if self._refresh_task is None or self._refresh_task.done():
            self._refresh_task = asyncio.create_task(self._refresh_or_warn())
        await asyncio.wait({self._refresh_task}, timeout=max(0.0, until - asyncio.get_running_loop().time()))

    async def stop_refresh(self) -> None:
        """Stop the refresh in the background."""
        if self._refresh_task is not None:
            self._refresh_task.cancel()
            await asyncio.wait({self._refresh_task})

    async def _refresh_or_warn(self) -> None:
        try:
            await self.refresh()
        except HummingbirdError as error:
            _log.warning("The index of sessions could not be brought up to date: %s", error)

    async def refresh(self, on_progress: IndexProgress = _ignore_progress) -> None:
        """Refresh the index. Sessions that cannot be read are reported and left out."""
        kept, known = await self.sessions.list_sessions(), await self._index.stamps()
        changed = [one for one in reversed(kept) if known.get(one.session_id) != one.stamp]
        for begin in range(0, len(changed), SESSIONS_AT_ONCE):
            on_progress(begin, len(changed))
            some = changed[begin : begin + SESSIONS_AT_ONCE]
            found = await asyncio.gather(*(self._load_or_warn(one) for one in some))
            for one, entries in zip(some, found, strict=True):
                if entries:
                    made = await asyncio.to_thread(summarise_session, entries, one.session_id)
                    await self._index.put(one.session_id, one.stamp, made, entries)
        for gone in known.keys() - {one.session_id for one in kept}:
            await self._index.forget(gone)

    async def rebuild(self, on_progress: IndexProgress = _ignore_progress) -> int:
        """Rebuild the index from the journals and return how many sessions it has."""
        await self._index.clear()
        await self.refresh(on_progress)
        return len(await self._index.stamps())

    @property
    def figures(self) -> RunFiguresSource:
        """Return what answers questions about many runs."""
        return self._index

    async def list_sessions(self, limit: int, project: str = "", text: str = "") -> Sequence[SessionSummary]:
        return await self._index.list_sessions(limit, project, text)

    async def daily_costs(self, since: date) -> Sequence[DailyCost]:
        return await self._index.daily_costs(since)

    async def search(self, query: str, limit: int = SEARCH_HITS, project: str = "") -> Sequence[SearchHit]:
        return await self._index.search(query, limit, project)

    async def texts_around(
        self, session_id: str, number: int, before: int, after: int, part: int = 0
    ) -> Sequence[IndexedText]:
        return await self._index.texts_around(session_id, number, before, after, part)

    async def find_session_id(self, beginning: str) -> str:
        """Return the one session whose id starts with this text.

        Raises UsageError if there is none or several.
        """
        return await find_session_id(self.sessions, beginning)

    async def load_entries(self, session_id: str) -> Sequence[JournalEntry]:
        """Return the entries of a session.

        Raises JournalDamaged and SessionUnreadable.
        """
        return await self.sessions.load_entries(session_id)

    async def export_session(self, session_id: str, folder: Path) -> Path:
        """Copy all files of a session to a folder, as --resume-session takes it.

        Raises UsageError if the folder holds another session.
        """
        place = await asyncio.to_thread(prepare_folder, folder, SavedSession("the store", session_id, SessionSubject()))
        with temporary_sessions(place, session_id) as target:
            await copy_session(self.sessions, target, session_id)
        return place

    async def list_older_than(self, moment: float, project: str = "") -> Sequence[StoredSession]:
        """Return sessions that were not changed since, newest first; with a project, those known to be of it."""
        kept = [one for one in await self.sessions.list_sessions() if one.changed_at < moment]
        if not project:
            return kept
        await self.refresh()
        indexed = {one.session_id for one in await self._index.list_sessions(len(kept) + 1_000_000, project)}
        return [one for one in kept if one.session_id in indexed]

    async def remove(self, session_id: str, stamp: str = "") -> bool:
        """Remove a session; return False if its stamp has changed, because something happened in it.

        Raises SessionTaken while somebody uses it.
        """
        removed = await self.sessions.remove(session_id, stamp)
        with suppress(HummingbirdError):  # the next refresh does it
            await self._index.forget(session_id)
        return removed

    async def _load_or_warn(self, kept: StoredSession) -> Sequence[JournalEntry]:
        if (kept.session_id, kept.stamp) in self._damaged:
            return ()
        try:
            return await self.sessions.load_entries(kept.session_id)
        except (JournalDamaged, SessionUnreadable, ObjectStoreUnusable) as error:
            if not isinstance(error, ObjectStoreUnusable):
                self._damaged.add((kept.session_id, kept.stamp))
            _log.warning("Session %s is not in the index: %s", kept.session_id, error)
            return ()


class FreshSessionSearch:
    """Searches past sessions for a conversation, after a refresh, so that what was said a moment ago is found."""

    def __init__(self, catalog: SessionCatalog) -> None:
        self._catalog = catalog

    async def search(self, query: str, limit: int = SEARCH_HITS, project: str = "") -> Sequence[SearchHit]:
        await self._catalog.catch_up()
        return await self._catalog.search(query, limit, project)

    async def texts_around(
        self, session_id: str, number: int, before: int, after: int, part: int = 0
    ) -> Sequence[IndexedText]:
        return await self._catalog.texts_around(session_id, number, before, after, part)


def open_session_catalog(configuration: Configuration, environment: Mapping[str, str], clock: Clock) -> SessionCatalog:
    """Open the catalog of the configured store. Secrets of the environment are not indexed.

    Raises SessionUnreadable, JournalUnwritable and UsageError.
    """
    settings = configuration.settings
    there = state_paths(settings, environment)
    sessions = session_store(there, settings, clock.now)
    secrets = all_secrets(configuration, environment)
    file = session_index_file(there.create_folders(), settings, clock.now)
    return SessionCatalog(sessions, open_session_index(file, secrets.mask, _log.warning))


def session_index_file(there: StatePaths, settings: Settings, now: Callable[[], float]) -> Path:
    """Return the index file of the configured store; each store has its own."""
    address = session_store(there, settings, now).address
    return there.index_path(blake2b(address.encode(), digest_size=6).hexdigest())
