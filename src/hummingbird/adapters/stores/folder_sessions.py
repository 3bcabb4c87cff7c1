"""Sessions in a directory, a folder each (S1): the default, for all processes of one machine.

A session is somebody's while its journal's lock is held, which ends with the process that holds it.
"""

import asyncio
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

import msgspec

from hummingbird.adapters.stores.archives import FolderArchives
from hummingbird.adapters.stores.folder_objects import FolderObjects
from hummingbird.adapters.stores.journal import FileJournal, locked, read
from hummingbird.adapters.stores.opening import Openings
from hummingbird.domain.envelope import migrated
from hummingbird.domain.errors import ObjectsUnusable
from hummingbird.domain.journal import Entry
from hummingbird.domain.session_limits import CONTEXT_BYTES
from hummingbird.domain.sessions import CONTEXT, JOURNAL, check_session_id, is_session_id
from hummingbird.ports.archives import Archive
from hummingbird.ports.sessions import Kept

_LEAVING = ".removed-"


class FolderSession:
    """Fulfils ports.sessions.Session."""

    def __init__(self, session_id: str, folder: Path, journal: FileJournal) -> None:
        self._id = session_id
        self._folder = folder / session_id
        self._objects = FolderObjects(folder)
        self.journal = journal
        self.archives = FolderArchives(folder)

    @property
    def id(self) -> str:
        return self._id

    async def keep(self, files: Mapping[str, bytes]) -> None:
        for name, content in files.items():
            await self._objects.put(f"{self._id}/{name}", content)

    async def catch_up(self) -> None:
        """A file that was not written once is not written any more."""

    async def release(self) -> None:
        if not self.journal.entries() and not self.journal.closed:  # it never began
            with suppress(OSError):
                (self._folder / JOURNAL).unlink()
                self._folder.rmdir()
        self.journal.close()


class FolderSessions:
    """Fulfils ports.sessions.Sessions. Files only their owner can read. `named`: what people call it, if they do not
    know the folder."""

    def __init__(self, folder: Path, named: str = "") -> None:
        self.folder, self._named = folder, named
        self._objects = FolderObjects(folder)
        self._openings = Openings[FolderSession]()

    @property
    def address(self) -> str:
        return self._named or str(self.folder)

    async def open(self, session_id: str) -> FolderSession:
        return await self._openings.opened(session_id, self._opened(session_id))

    async def _opened(self, session_id: str) -> FolderSession:
        path = self._path(session_id)
        session = FolderSession(session_id, self.folder, await asyncio.to_thread(FileJournal, path / JOURNAL))
        try:
            await self._bring_up_to_date(session)
        except BaseException:
            await session.release()
            raise
        return session

    async def entries(self, session_id: str) -> Sequence[Entry]:
        path = self._path(session_id) / JOURNAL
        try:
            found = await asyncio.to_thread(read, path)
        except (FileNotFoundError, NotADirectoryError):
            found = []
        except OSError as error:
            raise self._unusable(error) from error
        if older := await self._older(session_id, found):
            return older
        return found

    async def file(self, session_id: str, name: str) -> bytes | None:
        return await self._objects.get(f"{check_session_id(session_id)}/{name}")

    async def archive(self, session_id: str) -> Archive | None:
        return await FolderArchives(self.folder).get(check_session_id(session_id))

    async def listed(self) -> Sequence[Kept]:
        try:
            found = await asyncio.to_thread(self._listed)
        except OSError as error:
            raise self._unusable(error) from error
        return sorted(found, key=lambda kept: (-kept.changed_at, kept.session_id))

    async def remove(self, session_id: str, stamp: str = "") -> bool:
        try:
            return await asyncio.to_thread(self._remove, self._path(session_id), stamp)
        except OSError as error:
            raise self._unusable(error) from error

    async def _bring_up_to_date(self, session: FolderSession) -> None:
        journal = session.journal
        if missing := (await self._older(session.id, journal.entries()))[len(journal.entries()) :]:
            for entry in missing:
                journal.append(msgspec.structs.replace(entry, at=time.time()))
            await journal.commit()

    async def _older(self, session_id: str, begun: Sequence[Entry]) -> Sequence[Entry]:
        """How a session of an older format begins. One that was killed while it was brought up to date has the first
        of these entries and an older file; no other session has that little and a file."""
        if len(begun) > 1:
            return ()
        older = await asyncio.to_thread(self._context, session_id)
        return migrated(older, session_id) if older else ()

    def _context(self, session_id: str) -> bytes:
        """Not more of it than there may be, and a little: whoever reads it says that it is too large."""
        try:
            with (self._path(session_id) / CONTEXT).open("rb") as file:
                return file.read(CONTEXT_BYTES + 1)
        except (FileNotFoundError, NotADirectoryError):
            return b""
        except OSError as error:
            raise self._unusable(error) from error

    def _listed(self) -> list[Kept]:
        if not self.folder.is_dir():
            return []
        with os.scandir(self.folder) as found:
            folders = [one.path for one in found if is_session_id(one.name) and one.is_dir()]
        return [kept for one in folders if (kept := _kept(Path(one)))]

    def _remove(self, path: Path, stamp: str) -> bool:
        self._tidy()
        if not path.is_dir() or not _is_still(path, stamp):
            return False
        with locked(path / JOURNAL):  # nobody has it, and nobody gets it
            if not _is_still(path, stamp):
                return False
            leaving = path.with_name(f"{_LEAVING}{path.name[:64]}-{token_hex(4)}")
            path.rename(leaving)
        shutil.rmtree(leaving, ignore_errors=True)
        return True

    def _tidy(self) -> None:
        """What a process left behind that died while it removed a session."""
        if self.folder.is_dir():
            for left in self.folder.glob(f"{_LEAVING}*"):
                shutil.rmtree(left, ignore_errors=True)

    def _path(self, session_id: str) -> Path:
        return self.folder / check_session_id(session_id)

    def _unusable(self, error: OSError) -> ObjectsUnusable:
        return ObjectsUnusable(
            f"The sessions in {self.folder} cannot be used: {error.strerror or 'the disk failed'}. "
            "Check the folder, its owner and the disk."
        )


def _is_still(folder: Path, stamp: str) -> bool:
    kept = _kept(folder) if stamp else None
    return not stamp or (kept is not None and kept.stamp == stamp)


def _kept(folder: Path) -> Kept | None:
    """None for a folder that holds no session; one that is being removed just now is none either."""
    found = _files(folder)
    told = found.get(JOURNAL) or found.get(CONTEXT)
    if told is None:
        return None
    size = sum(one.st_size for one in found.values())
    return Kept(folder.name, f"{told.st_size}-{told.st_mtime_ns}", size, told.st_mtime)


def _files(folder: Path) -> dict[str, os.stat_result]:
    """A file that is renamed while we look (each is written beside and moved) hides none of the others."""
    found = {}
    with suppress(OSError), os.scandir(folder) as entries:
        for one in entries:
            with suppress(OSError):
                if one.is_file():
                    found[one.name] = one.stat()
    return found
