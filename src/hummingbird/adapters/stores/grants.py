"""Grants that hold for always (T9), one JSON line each in a file that all processes of a machine share.

People may read the file, and take a grant back by deleting its line. `key` is what counts; `command` is there to be
read, and may be masked or cut. Knows nothing of rules.
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from hummingbird.adapters.tables.locking import sync_directory, wait_for_lock
from hummingbird.domain.errors import JournalUnwritable, UsageFault
from hummingbird.domain.permissions import Grant


class _Line(msgspec.Struct, frozen=True, kw_only=True):
    at: str
    project: str
    command: str
    granted_by: str
    key: str


_decoder = msgspec.json.Decoder(_Line)


class FileGrants:
    """Reads the file whenever it is asked: another process, or a person, may have changed it. A last line that was cut
    off in the middle of writing is no grant."""

    def __init__(self, path: Path, now: Callable[[], float]) -> None:
        self._path = path
        self._now = now

    async def keys(self, project: str) -> frozenset[str]:
        return await asyncio.to_thread(self._keys, project)

    async def save(self, project: str, grant: Grant) -> None:
        await asyncio.to_thread(self._save, project, grant)

    def _keys(self, project: str) -> frozenset[str]:
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return frozenset()
        except OSError as error:
            raise self._unusable(error) from error
        return frozenset(line.key for line in self._lines(content) if line.project == project)

    def _save(self, project: str, grant: Grant) -> None:
        at = datetime.fromtimestamp(self._now(), UTC).isoformat(timespec="seconds")
        line = _Line(at=at, project=project, command=grant.command, granted_by=grant.by, key=grant.key)
        try:
            with self._locked() as fd:
                content = self._path.read_bytes()
                if not any((known.project, known.key) == (project, grant.key) for known in self._lines(content)):
                    _append(fd, _mended(fd, content) + msgspec.json.encode(line) + b"\n")
        except OSError as error:
            raise self._unusable(error) from error

    def _lines(self, content: bytes) -> Iterator[_Line]:
        *whole, last = content.split(b"\n")
        for number, line in enumerate(whole, 1):
            if line.strip():
                yield self._line(line, number)
        if (unended := _readable(last)) is not None:  # an editor may have left out the last line's end
            yield unended

    def _line(self, line: bytes, number: int) -> _Line:
        found = _readable(line)
        if found is None:
            raise UsageFault(f"Line {number} of {self._path} is no grant; mend it, or delete it to take a grant back.")
        return found

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """The file, ours alone. What its block wrote is on the disk afterwards, and so is the way to the file."""
        missing = [directory for directory in self._path.parents if not directory.exists()]
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            wait_for_lock(fd, f"Another process holds the grants {self._path}; end it.")
            yield fd
            os.fsync(fd)
            for directory in (self._path.parent, *(directory.parent for directory in missing)):
                sync_directory(directory)
        finally:
            os.close(fd)

    def _unusable(self, error: OSError) -> JournalUnwritable:
        return JournalUnwritable(f"The file of grants {self._path} cannot be used: {error.strerror}.")


def _readable(line: bytes) -> _Line | None:
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _mended(fd: int, content: bytes) -> bytes:
    """Cuts off a line that was never finished. Returns what has to stand before the next one."""
    last = content.rpartition(b"\n")[2]
    if last and _readable(last) is None:
        os.ftruncate(fd, len(content) - len(last))
        return b""
    return b"\n" if last else b""


def _append(fd: int, line: bytes) -> None:
    """A disk may take a part of it only, and say what is wrong when it gets the rest."""
    done = 0
    while done < len(line):
        done += os.write(fd, line[done:])
