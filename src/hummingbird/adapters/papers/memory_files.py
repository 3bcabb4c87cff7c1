"""MEMORY.md and USER.md in a folder (C7). Several chats may write at once: each reads the file again under a lock and
puts a whole new one in its place. A person may edit it at any time, and nothing that a person wrote is lost: what could
not be read fully is copied before it is rewritten.
"""

import asyncio
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from hummingbird.adapters.papers.reading import Read, read
from hummingbird.adapters.tables.locking import sync_directory, wait_for_lock
from hummingbird.domain.errors import InputUnreadable, JournalUnwritable, UsageFault
from hummingbird.domain.memory import Page, Paper, Remembered, parsed
from hummingbird.domain.mind_limits import MEMORY_COPIES, PAPER_BYTES

LOCK = ".memory.lock"
PROJECTS = "projects"


@dataclass(frozen=True, slots=True)
class _Found:
    """`doubtful`: rewriting it would change something that a person wrote."""

    page: Page
    content: bytes = b""
    faults: tuple[str, ...] = ()
    doubtful: bool = False


class FileMemory:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self) -> Remembered:
        found = {paper: self._seen(paper) for paper in Paper}
        faults = tuple(fault for one in found.values() for fault in one.faults)
        return Remembered(found[Paper.MEMORY].page, found[Paper.USER].page, faults)

    async def change(self, paper: Paper, change: Callable[[Page], Page]) -> Page:
        return await asyncio.to_thread(self._change, paper, change)

    def of_project(self, project: str) -> "FileMemory":
        """Named so that a person finds it; the digest keeps names apart that would look alike."""
        readable = re.sub(r"[^A-Za-z0-9._-]+", "-", project).strip("-.")[:60]
        return FileMemory(self._folder / PROJECTS / f"{readable}-{sha256(project.encode()).hexdigest()[:12]}")

    def _seen(self, paper: Paper) -> _Found:
        try:
            return self._found(paper)
        except InputUnreadable as error:
            return _Found(Page(), faults=(str(error),))

    def _found(self, paper: Paper) -> _Found:
        """Raises InputUnreadable for what is no file."""
        path = self._folder / paper.file
        if (there := read(path, PAPER_BYTES)) is None:
            return _Found(Page())
        made = parsed(there.text)
        faults = tuple(_faults(path, there, made.stray))
        return _Found(made.page, there.content, faults, doubtful=bool(faults))

    def _change(self, paper: Paper, change: Callable[[Page], Page]) -> Page:
        path = self._folder / paper.file
        try:
            with self._locked():
                found = self._found(paper)
                if len(found.content) > PAPER_BYTES:
                    raise UsageFault(found.faults[0])
                page = change(found.page)
                if page != found.page:
                    if found.doubtful:
                        self._copy(path, found.content)
                    _replace(path, (page.text + "\n" if page.blocks else "").encode())
                return page
        except InputUnreadable as error:
            raise UsageFault(str(error)) from error
        except OSError as error:
            raise JournalUnwritable(
                f"{path} cannot be written ({error.strerror}); nothing was changed. Free space or fix it."
            ) from error

    def _copy(self, path: Path, content: bytes) -> None:
        """Beside it, never over another copy; the same content once."""
        for number in range(1, MEMORY_COPIES + 1):
            copy = path.with_name(f"{path.name}.bak" if number == 1 else f"{path.name}.{number}.bak")
            if not copy.exists():
                return _replace(copy, content)
            if copy.is_file() and copy.read_bytes() == content:
                return None
        raise UsageFault(f"There are {MEMORY_COPIES} copies of {path}; remove those that are not needed.")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(self._folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            wait_for_lock(fd, f"Another process holds the memory in {self._folder}; nothing was changed. End it.")
            yield
        finally:
            os.close(fd)


def _faults(path: Path, there: Read, stray: int) -> Iterator[str]:
    if there.cut:
        yield f"{path} has more than {PAPER_BYTES} bytes: only its beginning is read, and nothing is added. Shorten it."
    if there.broken:
        yield f"{path} is not all UTF-8: what is not is shown as question marks. Save it as UTF-8."
    if stray:
        yield f"Line {stray} of {path} belongs to no list entry; it is read as one. Begin it with a dash."


def _replace(path: Path, content: bytes) -> None:
    """All of it or nothing, on the disk when this returns. A link stays one: people keep such files elsewhere."""
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
