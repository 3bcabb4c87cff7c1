"""Archives as files beside the sessions' journals. A file appears whole or not at all, and is never looked into:
what is in it was made where untrusted commands run."""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import TypeVar

from hummingbird.domain.errors import ArchiveTooLarge, ArchiveUnusable
from hummingbird.domain.limits import ARCHIVE_BYTES, FRAME_BYTES
from hummingbird.domain.sessions import ARCHIVE, check_session_id
from hummingbird.ports.archives import Archive

T = TypeVar("T")


class FolderArchives:
    """In `folder`, a folder each session. Files only their owner can read."""

    def __init__(self, folder: Path, most_bytes: int = ARCHIVE_BYTES) -> None:
        self._folder = folder
        self._most = most_bytes

    async def put(self, session_id: str, chunks: AsyncIterator[bytes]) -> int:
        path = self._path(session_id)
        part = path.with_name(f".{ARCHIVE}.{token_hex(4)}.part")
        file = await self._done(lambda: _opened(path, part))
        try:
            size = await self._fill(file, chunks)
            await self._done(lambda: _settled(file, part, path))
        finally:
            os.close(file)
            with suppress(OSError):
                part.unlink()  # not there any more when all went well
        return size

    async def get(self, session_id: str) -> Archive | None:
        path = self._path(session_id)
        try:
            saved_at = (await asyncio.to_thread(path.stat)).st_mtime
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unusable(path, error) from error
        return Archive(self._chunks(path), saved_at)

    async def _fill(self, file: int, chunks: AsyncIterator[bytes]) -> int:
        size = 0
        async for chunk in bounded(chunks, self._most):
            size += len(chunk)
            await self._done(lambda content=chunk: _write(file, content))  # type: ignore[misc] # mypy: a lambda's default
        return size

    async def _chunks(self, path: Path) -> AsyncGenerator[bytes, None]:
        file = await self._done(lambda: os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        try:
            while content := await self._done(lambda: os.read(file, FRAME_BYTES)):
                yield content
        finally:
            os.close(file)

    async def _done(self, work: Callable[[], T]) -> T:
        """In a thread, to its end: a cancelled write must not find its file closed under it."""
        doing = asyncio.ensure_future(asyncio.to_thread(work))
        try:
            return await asyncio.shield(doing)
        except asyncio.CancelledError:
            await asyncio.wait({doing})
            raise
        except OSError as error:
            raise _unusable(self._folder, error) from error

    def _path(self, session_id: str) -> Path:
        return self._folder / check_session_id(session_id) / ARCHIVE


async def bounded(chunks: AsyncIterator[bytes], most_bytes: int) -> AsyncIterator[bytes]:
    """The same chunks. Raises ArchiveTooLarge."""
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > most_bytes:
            raise ArchiveTooLarge(
                f"What the sandbox holds packs to more than {most_bytes} bytes; remove what is no longer needed "
                "from /tmp/data. The checkpoint before this one was kept."
            )
        yield chunk


def _opened(path: Path, part: Path) -> int:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for left in path.parent.glob(f".{ARCHIVE}.*.part"):  # of a process that died; a session has one at a time
        left.unlink(missing_ok=True)
    return os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


def _write(file: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(file, view) :]


def _settled(file: int, part: Path, path: Path) -> None:
    os.fsync(file)
    part.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _unusable(path: Path, error: OSError) -> ArchiveUnusable:
    return ArchiveUnusable(f"The checkpoints in {path} cannot be used: {error.strerror}. Free space or fix it.")
