"""A journal as JSON lines in a file, durable where the loop asks for it (L2).

`append` hands the line to the kernel, so it outlives this process; `commit` waits until the disk has it: in a thread,
unless the disk has just shown that waiting is quicker. Commits that come while one is under way share the next one.
Knows nothing of what an entry means.
"""

import asyncio
import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from hummingbird.domain.errors import JournalTaken, JournalUnwritable, SessionUnreadable
from hummingbird.domain.journal import Entry, dump, load
from hummingbird.domain.limits import QUICK_FLUSH_S
from hummingbird.domain.session_limits import JOURNAL_BYTES

_FIRST_BYTES = b'{"kind":"'  # of every line that was ever written here


class FileJournal:
    """Holds a lock on the file while it is open: one writer at a time. A torn last line is cut off.

    Raises JournalUnwritable, and JournalDamaged or SessionUnreadable when opening one that cannot be read;
    a file that cannot be read is left as it is.
    """

    def __init__(self, path: Path, most_bytes: int = JOURNAL_BYTES) -> None:
        self._path = path
        self._most = most_bytes
        try:
            self._unsynced = _make_directories(path)
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except FileNotFoundError as error:  # its folder was there a moment ago: somebody is removing it
            raise _taken(path) from error
        except OSError as error:
            raise JournalUnwritable(f"The journal {path} cannot be opened: {error.strerror}.") from error
        try:
            _lock(self._path, self._fd)
            self._entries = self._load()
            self._size = os.fstat(self._fd).st_size
        except OSError as error:
            _let_go(self._fd)
            raise JournalUnwritable(f"The journal {path} cannot be opened: {error.strerror}.") from error
        except BaseException:
            _let_go(self._fd)
            raise
        self._durable = 0  # entries of an earlier process, too, may not be on the disk yet
        self._partial = False
        self._failure: OSError | None = None
        self._flush_s = float("inf")  # how long the last one took; nothing is known of this disk yet
        self._flushing: asyncio.Future[OSError | None] | None = None

    @property
    def closed(self) -> bool:
        """The file may be somebody else's by now."""
        return self._fd < 0

    def entries(self) -> Sequence[Entry]:
        return self._entries

    def append(self, entry: Entry) -> None:
        line = dump(entry)
        if self._size + len(line) > self._most:
            raise JournalUnwritable(too_long(self._most))
        try:
            self._cut_off_partial_line()
            self._partial = True
            done = os.write(self._fd, line)
            while done < len(line):
                done += os.write(self._fd, line[done:])
        except OSError as error:
            with suppress(OSError):  # tried again before the next line
                self._cut_off_partial_line()
            raise self._unwritable(error) from error
        self._size += len(line)
        self._partial = False
        self._entries.append(entry)

    async def outlive(self) -> None:
        """What the kernel has does."""

    async def commit(self) -> None:
        wanted = len(self._entries)
        while self._durable < wanted:
            if self._failure is not None:
                raise self._unwritable(self._failure) from self._failure
            if self._flushing is None and self._flush_s < QUICK_FLUSH_S:
                # a thread costs twice the CPU of the flush itself: not for a disk that just took no time
                self._flushed(len(self._entries), self._to_disk(self._fd))
            else:
                # shielded: when one run is interrupted, the others still wait for the same flush. One that is done but
                # has not told us yet gets its turn: to wait for it would return at once, again and again
                flushing = self._flushing or self._flush(len(self._entries))
                await (asyncio.sleep(0) if flushing.done() else asyncio.shield(flushing))

    def close(self) -> None:
        """A flush that is still under way keeps the file open until it is done."""
        fd, self._fd = self._fd, -1
        if fd >= 0 and self._flushing is not None:
            self._flushing.add_done_callback(lambda _: _let_go(fd))
        elif fd >= 0:
            _let_go(fd)

    def _flush(self, upto: int) -> asyncio.Future[OSError | None]:
        """In a thread: a disk may take its time, and other runs share this event loop."""

        def done(flush: asyncio.Future[OSError | None]) -> None:
            self._flushing = None
            if not flush.cancelled():
                self._flushed(upto, flush.result())

        self._flushing = asyncio.get_running_loop().run_in_executor(None, self._to_disk, self._fd)
        self._flushing.add_done_callback(done)
        return self._flushing

    def _flushed(self, upto: int, failure: OSError | None) -> None:
        if failure is None:
            self._durable = upto
        else:
            self._failure = failure  # for good: the kernel tells it once, then takes the lost pages for written

    def _to_disk(self, fd: int) -> OSError | None:
        began = time.monotonic()
        try:
            os.fdatasync(fd)
            while self._unsynced:
                directory = os.open(self._unsynced[-1], os.O_RDONLY)
                try:
                    os.fsync(directory)
                finally:
                    os.close(directory)
                self._unsynced.pop()
        except OSError as error:
            return error
        finally:
            self._flush_s = time.monotonic() - began
        return None

    def _cut_off_partial_line(self) -> None:
        if self._partial:
            os.ftruncate(self._fd, self._size)
            self._partial = False

    def _load(self) -> list[Entry]:
        entries, whole = _parsed(self._path, self._most)
        if whole < os.fstat(self._fd).st_size:
            os.ftruncate(self._fd, whole)
        return entries

    def _unwritable(self, error: OSError) -> JournalUnwritable:
        return JournalUnwritable(f"The journal {self._path} cannot be written: {error.strerror}. Free space or fix it.")


def read(path: Path, most_bytes: int = JOURNAL_BYTES) -> list[Entry]:
    """What a journal holds by now, whoever writes it; a last line that is not whole yet is left out. Changes nothing.
    Raises JournalDamaged, SessionUnreadable and OSError."""
    return _parsed(path, most_bytes)[0]


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Nobody has the journal meanwhile, whatever is in it. Raises JournalTaken and OSError."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _lock(path, fd)
        yield
    finally:
        _let_go(fd)


def _lock(path: Path, fd: int) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise _taken(path) from error
    if not _is_there(path, fd):  # removed between opening and locking it
        raise _taken(path)


def _taken(path: Path) -> JournalTaken:
    return JournalTaken(f"Another process is using {path}; wait for it, or use another session.")


def too_long(most_bytes: int) -> str:
    return f"The journal is as long as one may be, {most_bytes:,} bytes; start a new session to go on."


def _parsed(path: Path, most_bytes: int) -> tuple[list[Entry], int]:
    """The entries, and how many bytes of the file they are."""
    with path.open("rb") as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise SessionUnreadable(f"{path} is larger than {most_bytes:,} bytes, and no journal of ours is; move it away.")
    lines = content.split(b"\n")
    torn = lines.pop()
    if not torn and lines and b"\0" in lines[-1]:
        torn = lines.pop()  # a power cut can leave a last block of zeros, newline and all
    entries = [load(line, number) for number, line in enumerate(lines, 1)]
    if torn and not lines and not _may_be_ours(torn):
        raise SessionUnreadable(f"{path} is not a journal; it was left as it is. Name another file.")
    return entries, sum(len(line) + 1 for line in lines)


def _is_there(path: Path, fd: int) -> bool:
    try:
        there, here = path.stat(), os.fstat(fd)
    except OSError:
        return False
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


def _make_directories(path: Path) -> list[Path]:
    """Creates what is missing. Returns the directories that must reach the disk for the file to be found again."""
    missing = [directory for directory in path.parents if not directory.exists()]
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return [path.parent, *(directory.parent for directory in missing)]


def _may_be_ours(torn: bytes) -> bool:
    return torn.startswith((b"\0", _FIRST_BYTES)) or _FIRST_BYTES.startswith(torn)


def _let_go(fd: int) -> None:
    """A program that is being started has our files until it runs, and closing would leave the lock with it."""
    with suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_UN)
    os.close(fd)


class MemoryJournal:
    """For runs that nobody needs to continue."""

    def __init__(self, entries: Sequence[Entry] = ()) -> None:
        self._entries = list(entries)

    def entries(self) -> Sequence[Entry]:
        return self._entries

    def append(self, entry: Entry) -> None:
        self._entries.append(entry)

    async def outlive(self) -> None:
        return

    async def commit(self) -> None:
        return

    def close(self) -> None:
        return
