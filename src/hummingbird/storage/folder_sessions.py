"""Store sessions in a directory, one folder each: the default, shared by all processes of one machine.

A process holds a session as long as it holds the lock on its journal, at most until the process ends.
"""

import asyncio
import os
import shutil
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any, Generic, TypeVar

import msgspec

from hummingbird.core.context_json import migrate_context_json
from hummingbird.core.errors import ArchiveTooLarge, ArchiveUnusable, ObjectStoreUnusable
from hummingbird.core.journal import JournalEntry
from hummingbird.core.limits import ARCHIVE_BYTES, FRAME_BYTES
from hummingbird.core.protocols.sandbox import SandboxArchive
from hummingbird.core.protocols.sessions import Session, StoredSession
from hummingbird.core.sessions import (
    ARCHIVE,
    COMMIT_S,
    CONTEXT,
    CONTEXT_BYTES,
    JOURNAL,
    check_session_id,
    is_session_id,
)
from hummingbird.storage.folder_objects import FolderObjectStore
from hummingbird.storage.journals import FileJournal, lock_journal, read_journal

T = TypeVar("T")


class FolderArchiveStore:
    """Store each session's sandbox archive as a file beside its journal, readable by its owner only.

    A file appears complete or not at all. It is never unpacked here, because untrusted commands produced its content.
    """

    def __init__(self, folder: Path, most_bytes: int = ARCHIVE_BYTES) -> None:
        self._folder = folder
        self._most = most_bytes

    async def put(self, session_id: str, chunks: AsyncIterator[bytes]) -> int:
        path = self._path(session_id)
        part = path.with_name(f".{ARCHIVE}.{token_hex(4)}.part")
        file = await self._run_in_thread(lambda: _create_part_file(path, part))
        try:
            size = await self._fill(file, chunks)
            await self._run_in_thread(lambda: _commit_part_file(file, part, path))
        finally:
            os.close(file)
            with suppress(OSError):
                part.unlink()  # gone already if all went well
        return size

    async def get(self, session_id: str) -> SandboxArchive | None:
        path = self._path(session_id)
        try:
            saved_at = (await asyncio.to_thread(path.stat)).st_mtime
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _archive_error(path, error) from error
        return SandboxArchive(self._chunks(path), saved_at)

    async def _fill(self, file: int, chunks: AsyncIterator[bytes]) -> int:
        size = 0
        async for chunk in limit_archive_size(chunks, self._most):
            size += len(chunk)
            await self._run_in_thread(lambda content=chunk: _write_all(file, content))  # type: ignore[misc] # mypy: a lambda's default
        return size

    async def _chunks(self, path: Path) -> AsyncGenerator[bytes, None]:
        file = await self._run_in_thread(lambda: os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        try:
            while content := await self._run_in_thread(lambda: os.read(file, FRAME_BYTES)):
                yield content
        finally:
            os.close(file)

    async def _run_in_thread(self, work: Callable[[], T]) -> T:
        """Run the work in a thread, to its end: a cancelled write must not continue on a closed file."""
        doing = asyncio.ensure_future(asyncio.to_thread(work))
        try:
            return await asyncio.shield(doing)
        except asyncio.CancelledError:
            await asyncio.wait({doing})
            raise
        except OSError as error:
            raise _archive_error(self._folder, error) from error

    def _path(self, session_id: str) -> Path:
        return self._folder / check_session_id(session_id) / ARCHIVE


async def limit_archive_size(chunks: AsyncIterator[bytes], most_bytes: int) -> AsyncIterator[bytes]:
    """Yield the chunks. Raises ArchiveTooLarge when they exceed `most_bytes`."""
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > most_bytes:
            raise ArchiveTooLarge(
                f"What the sandbox holds packs to more than {most_bytes} bytes; remove what is no longer needed "
                "from /tmp/data. The checkpoint before this one was kept."
            )
        yield chunk


def _create_part_file(path: Path, part: Path) -> int:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for left in path.parent.glob(f".{ARCHIVE}.*.part"):  # left by a process that died; only one writes at a time
        left.unlink(missing_ok=True)
    return os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


def _write_all(file: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(file, view) :]


def _commit_part_file(file: int, part: Path, path: Path) -> None:
    os.fsync(file)
    part.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _archive_error(path: Path, error: OSError) -> ArchiveUnusable:
    return ArchiveUnusable(f"The checkpoints in {path} cannot be used: {error.strerror}. Free space or fix it.")


S = TypeVar("S", bound=Session)


class SessionOpener(Generic[S]):
    """Open sessions of one store, and finish opening one even when its caller is cancelled.

    A thread that waits for a disk cannot be interrupted, nor can a write that is on its way to a bucket. A session that
    was opened for a cancelled caller is released; only the next caller for the same session waits for that. Belongs to
    one event loop.
    """

    def __init__(self) -> None:
        self._releasing: dict[asyncio.Task[None], str] = {}

    async def open(self, session_id: str, opening: Coroutine[Any, Any, S]) -> S:
        """Return the session that `opening` opens, or raise what it raises."""
        try:
            await self._wait_until_released(session_id)
        except BaseException:
            opening.close()
            raise
        task = asyncio.ensure_future(opening)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            leaving = asyncio.create_task(_release_when_open(task))
            self._releasing[leaving] = session_id
            leaving.add_done_callback(self._releasing.pop)
            raise

    async def _wait_until_released(self, session_id: str) -> None:
        """Wait until this process has released the session, so that nobody gets an error about another process.

        If the store hangs, the wait ends after COMMIT_S; the opening that follows reports the problem.
        """
        if leaving := {task for task, left in self._releasing.items() if left == session_id}:
            await asyncio.wait(leaving, timeout=COMMIT_S)


async def _release_when_open(opening: asyncio.Task[S]) -> None:
    await asyncio.wait({opening})
    if not opening.cancelled() and opening.exception() is None:
        await opening.result().release()


_REMOVED_PREFIX = ".removed-"


class FolderSession:
    """A `Session` in a folder, held by this process."""

    def __init__(self, session_id: str, folder: Path, journal: FileJournal) -> None:
        self._id = session_id
        self._folder = folder / session_id
        self._objects = FolderObjectStore(folder)
        self.journal = journal
        self.archives = FolderArchiveStore(folder)

    @property
    def id(self) -> str:
        return self._id

    async def write_files(self, files: Mapping[str, bytes]) -> None:
        for name, content in files.items():
            await self._objects.put(f"{self._id}/{name}", content)

    async def catch_up(self) -> None:
        """Do nothing: a journal in a file is never behind; it is written or fails for good."""

    async def release(self) -> None:
        if not self.journal.entries() and not self.journal.closed:  # the session never began
            with suppress(OSError):
                (self._folder / JOURNAL).unlink()
                self._folder.rmdir()
        self.journal.close()


class FolderSessionStore:
    """A `SessionStore` in a folder; its files are readable by their owner only.

    `named` is what users call the store, if they do not know the folder.
    """

    def __init__(self, folder: Path, named: str = "") -> None:
        self.folder, self._display_name = folder, named
        self._objects = FolderObjectStore(folder)
        self._opener = SessionOpener[FolderSession]()

    @property
    def address(self) -> str:
        return self._display_name or str(self.folder)

    async def open(self, session_id: str) -> FolderSession:
        return await self._opener.open(session_id, self._open_session(session_id))

    async def _open_session(self, session_id: str) -> FolderSession:
        path = self._path(session_id)
        session = FolderSession(session_id, self.folder, await asyncio.to_thread(FileJournal, path / JOURNAL))
        try:
            await self._migrate_session(session)
        except BaseException:
            await session.release()
            raise
        return session

    async def load_entries(self, session_id: str) -> Sequence[JournalEntry]:
        path = self._path(session_id) / JOURNAL
        try:
            found = await asyncio.to_thread(read_journal, path)
        except (FileNotFoundError, NotADirectoryError):
            found = []
        except OSError as error:
            raise self._storage_error(error) from error
        if older := await self._read_old_format(session_id, found):
            return older
        return found

    async def read_file(self, session_id: str, name: str) -> bytes | None:
        return await self._objects.get(f"{check_session_id(session_id)}/{name}")

    async def load_archive(self, session_id: str) -> SandboxArchive | None:
        return await FolderArchiveStore(self.folder).get(check_session_id(session_id))

    async def list_sessions(self) -> Sequence[StoredSession]:
        try:
            found = await asyncio.to_thread(self._list_folders)
        except OSError as error:
            raise self._storage_error(error) from error
        return sorted(found, key=lambda kept: (-kept.changed_at, kept.session_id))

    async def remove(self, session_id: str, stamp: str = "") -> bool:
        try:
            return await asyncio.to_thread(self._remove, self._path(session_id), stamp)
        except OSError as error:
            raise self._storage_error(error) from error

    async def _migrate_session(self, session: FolderSession) -> None:
        journal = session.journal
        if missing := (await self._read_old_format(session.id, journal.entries()))[len(journal.entries()) :]:
            for entry in missing:
                journal.append(msgspec.structs.replace(entry, at=time.time()))
            await journal.commit()

    async def _read_old_format(self, session_id: str, begun: Sequence[JournalEntry]) -> Sequence[JournalEntry]:
        """Return the entries of a session in the format before journals; none for any other session.

        A process that was killed during the migration leaves at most one entry beside the old file; no other session
        has so few entries and such a file.
        """
        if len(begun) > 1:
            return ()
        older = await asyncio.to_thread(self._read_context_file, session_id)
        return migrate_context_json(older, session_id) if older else ()

    def _read_context_file(self, session_id: str) -> bytes:
        """Read at most one byte more than allowed; the parser then reports that the file is too large."""
        try:
            with (self._path(session_id) / CONTEXT).open("rb") as file:
                return file.read(CONTEXT_BYTES + 1)
        except (FileNotFoundError, NotADirectoryError):
            return b""
        except OSError as error:
            raise self._storage_error(error) from error

    def _list_folders(self) -> list[StoredSession]:
        if not self.folder.is_dir():
            return []
        with os.scandir(self.folder) as found:
            folders = [one.path for one in found if is_session_id(one.name) and one.is_dir()]
        return [kept for one in folders if (kept := _describe_folder(Path(one)))]

    def _remove(self, path: Path, stamp: str) -> bool:
        self._remove_leftovers()
        if not path.is_dir() or not _has_stamp(path, stamp):
            return False
        with lock_journal(path / JOURNAL):  # no process holds the session, and none can take it
            if not _has_stamp(path, stamp):
                return False
            leaving = path.with_name(f"{_REMOVED_PREFIX}{path.name[:64]}-{token_hex(4)}")
            path.rename(leaving)
        shutil.rmtree(leaving, ignore_errors=True)
        return True

    def _remove_leftovers(self) -> None:
        """Remove what a process left behind that died while it removed a session."""
        if self.folder.is_dir():
            for left in self.folder.glob(f"{_REMOVED_PREFIX}*"):
                shutil.rmtree(left, ignore_errors=True)

    def _path(self, session_id: str) -> Path:
        return self.folder / check_session_id(session_id)

    def _storage_error(self, error: OSError) -> ObjectStoreUnusable:
        return ObjectStoreUnusable(
            f"The sessions in {self.folder} cannot be used: {error.strerror or 'the disk failed'}. "
            "Check the folder, its owner and the disk."
        )


def _has_stamp(folder: Path, stamp: str) -> bool:
    kept = _describe_folder(folder) if stamp else None
    return not stamp or (kept is not None and kept.stamp == stamp)


def _describe_folder(folder: Path) -> StoredSession | None:
    """Describe a session; return None for a folder without one, also for one that is just being removed."""
    found = _stat_files(folder)
    newest = found.get(JOURNAL) or found.get(CONTEXT)
    if newest is None:
        return None
    size = sum(one.st_size for one in found.values())
    return StoredSession(folder.name, f"{newest.st_size}-{newest.st_mtime_ns}", size, newest.st_mtime)


def _stat_files(folder: Path) -> dict[str, os.stat_result]:
    """Return the folder's files. A file that is being replaced (by a rename) does not hide the others."""
    found = {}
    with suppress(OSError), os.scandir(folder) as entries:
        for one in entries:
            with suppress(OSError):
                if one.is_file():
                    found[one.name] = one.stat()
    return found
