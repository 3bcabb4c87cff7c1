"""Store memory as MEMORY.md and USER.md in a folder.

Several chats may write at once: each reads the file again under a lock and replaces it as a whole. A person may edit it
at any time and loses nothing: a file that could not be read fully is copied before it is rewritten.
"""

import asyncio
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from hummingbird.agent.context_files.instruction_files import PAPER_BYTES, TextFile, read_text_file
from hummingbird.agent.context_files.memory_pages import MemoryKind, MemoryPage, MemoryPages, parse_memory_page
from hummingbird.clients.sqlite_files import sync_directory, wait_for_lock
from hummingbird.core.errors import InputUnreadable, JournalUnwritable, UsageError

MEMORY_COPIES = 100  # copies of a file that could not be read fully, before a person has to tidy up

LOCK_FILE_NAME = ".memory.lock"
PROJECTS_FOLDER = "projects"


@dataclass(frozen=True, slots=True)
class _MemoryFileState:
    """What a memory file holds; `needs_backup` means that rewriting it would change something that a person wrote."""

    page: MemoryPage
    content: bytes = b""
    faults: tuple[str, ...] = ()
    needs_backup: bool = False


class FileMemory:
    """The memory in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self) -> MemoryPages:
        found = {paper: self._read_tolerant(paper) for paper in MemoryKind}
        faults = tuple(fault for one in found.values() for fault in one.faults)
        return MemoryPages(found[MemoryKind.MEMORY].page, found[MemoryKind.USER].page, faults)

    async def edit(self, paper: MemoryKind, change: Callable[[MemoryPage], MemoryPage]) -> MemoryPage:
        return await asyncio.to_thread(self._change_locked, paper, change)

    def for_project(self, project: str) -> "FileMemory":
        """Return the memory in a folder named after the project; a digest distinguishes names that would look alike."""
        readable = re.sub(r"[^A-Za-z0-9._-]+", "-", project).strip("-.")[:60]
        return FileMemory(self._folder / PROJECTS_FOLDER / f"{readable}-{sha256(project.encode()).hexdigest()[:12]}")

    def _read_tolerant(self, paper: MemoryKind) -> _MemoryFileState:
        try:
            return self._read_file(paper)
        except InputUnreadable as error:
            return _MemoryFileState(MemoryPage(), faults=(str(error),))

    def _read_file(self, paper: MemoryKind) -> _MemoryFileState:
        """Read one page.

        Raises InputUnreadable if it is not a file.
        """
        path = self._folder / paper.file_name
        if (there := read_text_file(path, PAPER_BYTES)) is None:
            return _MemoryFileState(MemoryPage())
        made = parse_memory_page(there.text)
        faults = tuple(_find_faults(path, there, made.stray))
        return _MemoryFileState(made.page, there.content, faults, needs_backup=bool(faults))

    def _change_locked(self, paper: MemoryKind, change: Callable[[MemoryPage], MemoryPage]) -> MemoryPage:
        path = self._folder / paper.file_name
        try:
            with self._hold_lock():
                found = self._read_file(paper)
                if len(found.content) > PAPER_BYTES:
                    raise UsageError(found.faults[0])
                page = change(found.page)
                if page != found.page:
                    if found.needs_backup:
                        self._back_up(path, found.content)
                    _replace_file(path, (page.text + "\n" if page.blocks else "").encode())
                return page
        except InputUnreadable as error:
            raise UsageError(str(error)) from error
        except OSError as error:
            raise JournalUnwritable(
                f"{path} cannot be written ({error.strerror}); nothing was changed. Free space or fix it."
            ) from error

    def _back_up(self, path: Path, content: bytes) -> None:
        """Copy the file beside itself, never over another copy, and the same content only once."""
        for number in range(1, MEMORY_COPIES + 1):
            copy = path.with_name(f"{path.name}.bak" if number == 1 else f"{path.name}.{number}.bak")
            if not copy.exists():
                return _replace_file(copy, content)
            if copy.is_file() and copy.read_bytes() == content:
                return None
        raise UsageError(f"There are {MEMORY_COPIES} copies of {path}; remove those that are not needed.")

    @contextmanager
    def _hold_lock(self) -> Iterator[None]:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(self._folder / LOCK_FILE_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            wait_for_lock(fd, f"Another process holds the memory in {self._folder}; nothing was changed. End it.")
            yield
        finally:
            os.close(fd)


def _find_faults(path: Path, there: TextFile, stray: int) -> Iterator[str]:
    if there.is_truncated:
        yield f"{path} has more than {PAPER_BYTES} bytes: only its beginning is read, and nothing is added. Shorten it."
    if there.has_invalid_utf8:
        yield f"{path} is not all UTF-8: what is not is shown as question marks. Save it as UTF-8."
    if stray:
        yield f"Line {stray} of {path} belongs to no list entry; it is read as one. Begin it with a dash."


def _replace_file(path: Path, content: bytes) -> None:
    """Replace the file atomically and durably; a link stays one, because people keep such files elsewhere."""
    target = Path(os.path.realpath(path))
    new = target.with_name(f".{target.name}.{os.getpid()}.new")
    new.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        new.replace(target)
    except OSError:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        raise
    sync_directory(target.parent)
