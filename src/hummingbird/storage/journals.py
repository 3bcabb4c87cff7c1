"""Keep a session's journal as JSON lines in a file, in memory, or with a fallback from file to memory.

`append` hands the line to the kernel, so it survives a crash of this process; `commit` waits until the disk has it and
so survives a power cut. Commits that arrive while one is running share the next one.
"""

import asyncio
import fcntl
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from hummingbird.core.errors import (
    JournalDamaged,
    JournalUnwritable,
    JournalWriteDelayed,
    SessionTaken,
    SessionUnreadable,
)
from hummingbird.core.journal import JournalEntry, dump_entry, load_entry
from hummingbird.core.limits import QUICK_FLUSH_S
from hummingbird.core.protocols.sessions import Journal
from hummingbird.core.sessions import JOURNAL_BYTES

_FIRST_BYTES = b'{"kind":"'  # every line of a journal begins with this


class FileJournal:
    """A journal in a file, which it locks while it is open: one writer at a time. A torn last line is cut off.

    Raises JournalUnwritable, and JournalDamaged or SessionUnreadable when it opens a file that cannot be parsed; such a
    file is left as it is.
    """

    def __init__(self, path: Path, most_bytes: int = JOURNAL_BYTES) -> None:
        self._path = path
        self._most = most_bytes
        try:
            self._unsynced = _make_directories(path)
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except FileNotFoundError as error:  # the folder existed a moment ago: another process is removing it
            raise _in_use_error(path) from error
        except OSError as error:
            raise JournalUnwritable(f"The journal {path} cannot be opened: {error.strerror}.") from error
        try:
            _lock(self._path, self._fd)
            self._entries = self._load()
            self._size = os.fstat(self._fd).st_size
        except OSError as error:
            _unlock_and_close(self._fd)
            raise JournalUnwritable(f"The journal {path} cannot be opened: {error.strerror}.") from error
        except BaseException:
            _unlock_and_close(self._fd)
            raise
        self._durable = 0  # entries of an earlier process may not be on the disk yet either
        self._partial = False
        self._failure: OSError | None = None
        self._flush_s = float("inf")  # how long the last flush took; unknown yet
        self._flushing: asyncio.Future[OSError | None] | None = None

    @property
    def closed(self) -> bool:
        """Return whether the journal was closed; another process may use the file by now."""
        return self._fd < 0

    def entries(self) -> Sequence[JournalEntry]:
        return self._entries

    def append(self, entry: JournalEntry) -> None:
        line = dump_entry(entry)
        if self._size + len(line) > self._most:
            raise JournalUnwritable(journal_too_long_text(self._most))
        try:
            self._cut_off_partial_line()
            self._partial = True
            done = os.write(self._fd, line)
            while done < len(line):
                done += os.write(self._fd, line[done:])
        except OSError as error:
            with suppress(OSError):  # the next append tries again
                self._cut_off_partial_line()
            raise self._unwritable_error(error) from error
        self._size += len(line)
        self._partial = False
        self._entries.append(entry)

    async def flush(self) -> None:
        """Do nothing: appended data already survives a process crash."""

    async def commit(self) -> None:
        wanted = len(self._entries)
        while self._durable < wanted:
            if self._failure is not None:
                raise self._unwritable_error(self._failure) from self._failure
            if self._flushing is None and self._flush_s < QUICK_FLUSH_S:
                # A thread costs twice the CPU time of the flush itself, so a fast disk is flushed right here.
                self._record_flush(len(self._entries), self._sync_to_disk(self._fd))
            else:
                # Shielded: when one run is interrupted, the others still wait for the same flush. If the flush is done
                # but its callback has not run yet, sleep(0) lets it run: awaiting the future would return at once.
                flushing = self._flushing or self._start_flush(len(self._entries))
                await (asyncio.sleep(0) if flushing.done() else asyncio.shield(flushing))

    def close(self) -> None:
        """Release the lock and close the file, after a running flush has ended."""
        fd, self._fd = self._fd, -1
        if fd >= 0 and self._flushing is not None:
            self._flushing.add_done_callback(lambda _: _unlock_and_close(fd))
        elif fd >= 0:
            _unlock_and_close(fd)

    def _start_flush(self, upto: int) -> asyncio.Future[OSError | None]:
        """Start a flush in a thread: a disk may be slow, and other runs share this event loop."""

        def on_flush_done(flush: asyncio.Future[OSError | None]) -> None:
            self._flushing = None
            if not flush.cancelled():
                self._record_flush(upto, flush.result())

        self._flushing = asyncio.get_running_loop().run_in_executor(None, self._sync_to_disk, self._fd)
        self._flushing.add_done_callback(on_flush_done)
        return self._flushing

    def _record_flush(self, upto: int, failure: OSError | None) -> None:
        if failure is None:
            self._durable = upto
        else:
            self._failure = failure  # for good: the kernel reports an error once, then treats lost pages as written

    def _sync_to_disk(self, fd: int) -> OSError | None:
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

    def _load(self) -> list[JournalEntry]:
        entries, whole = _parse_file(self._path, self._most)
        if whole < os.fstat(self._fd).st_size:
            os.ftruncate(self._fd, whole)
        return entries

    def _unwritable_error(self, error: OSError) -> JournalUnwritable:
        return JournalUnwritable(f"The journal {self._path} cannot be written: {error.strerror}. Free space or fix it.")


def read_journal(path: Path, most_bytes: int = JOURNAL_BYTES) -> list[JournalEntry]:
    """Return the entries of a journal without locking or changing it; an incomplete last line is left out.

    Raises JournalDamaged, SessionUnreadable and OSError.
    """
    return _parse_file(path, most_bytes)[0]


@contextmanager
def lock_journal(path: Path) -> Iterator[None]:
    """Hold the journal's lock without reading the file. Raises SessionTaken and OSError."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _lock(path, fd)
        yield
    finally:
        _unlock_and_close(fd)


def _lock(path: Path, fd: int) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise _in_use_error(path) from error
    if not _is_same_file(path, fd):  # the file was removed between opening and locking it
        raise _in_use_error(path)


def _in_use_error(path: Path) -> SessionTaken:
    return SessionTaken(f"Another process is using {path}; wait for it, or use another session.")


def journal_too_long_text(most_bytes: int) -> str:
    """Return the error sentence for a journal that has reached its size limit."""
    return f"The journal has reached its limit of {most_bytes:,} bytes; start a new session to continue."


def _parse_file(path: Path, most_bytes: int) -> tuple[list[JournalEntry], int]:
    """Return the entries, and how many bytes of the file they take up."""
    with path.open("rb") as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise SessionUnreadable(f"{path} is larger than {most_bytes:,} bytes, so it is not a journal; move it away.")
    lines = content.split(b"\n")
    torn = lines.pop()
    if not torn and lines and b"\0" in lines[-1]:
        torn = lines.pop()  # a power cut can leave zeros in the last block, even before a newline
    entries = [load_entry(line, number) for number, line in enumerate(lines, 1)]
    if torn and not lines and not _may_be_journal(torn):
        raise SessionUnreadable(f"{path} is not a journal; it was left as it is. Name another file.")
    return entries, sum(len(line) + 1 for line in lines)


def _is_same_file(path: Path, fd: int) -> bool:
    try:
        there, here = path.stat(), os.fstat(fd)
    except OSError:
        return False
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


def _make_directories(path: Path) -> list[Path]:
    """Create the missing directories; return those that must be flushed for the file to survive a power cut.

    The directory above is among them even if nothing is missing: whoever created its entry may have died before the
    flush.
    """
    missing = [directory for directory in path.parents if not directory.exists()]
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return [path.parent, *dict.fromkeys((path.parent.parent, *(directory.parent for directory in missing)))]


def _may_be_journal(torn: bytes) -> bool:
    return torn.startswith((b"\0", _FIRST_BYTES)) or _FIRST_BYTES.startswith(torn)


def _unlock_and_close(fd: int) -> None:
    """Unlock explicitly: a child process that is being started still holds our files until its exec.

    Closing alone would leave the lock with it.
    """
    with suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_UN)
    os.close(fd)


class MemoryJournal:
    """A journal in memory, for runs that nobody needs to resume."""

    def __init__(self, entries: Sequence[JournalEntry] = ()) -> None:
        self._entries = list(entries)

    def entries(self) -> Sequence[JournalEntry]:
        return self._entries

    def append(self, entry: JournalEntry) -> None:
        self._entries.append(entry)

    async def flush(self) -> None:
        return

    async def commit(self) -> None:
        return

    def close(self) -> None:
        return


NOT_KEPT = "This session is not saved from here on, so it cannot be resumed."


class DegradingJournal:
    """A journal that continues in memory when it cannot be written: the run matters more than its record.

    What was written stays as it is. SessionTaken is still raised, because two processes must not continue the same
    session. `journal` is None when nothing can be written from the start; `earlier` is what could be read.
    `on_trouble` is called once with a sentence, when the rest is not stored, or not yet.
    """

    def __init__(
        self, journal: Journal | None, on_trouble: Callable[[str], None], earlier: Sequence[JournalEntry] = ()
    ) -> None:
        self._journal = journal
        self._on_trouble = on_trouble
        self._memory_entries = list(earlier)
        self._has_reported = journal is None
        self._is_detached = False  # whether new entries are only in memory
        self._is_behind = False

    @property
    def is_memory_only(self) -> bool:
        """Return whether new entries will stay only in memory."""
        return self._journal is None or self._is_detached

    @property
    def is_complete(self) -> bool:
        """Return whether all entries are stored, as far as that is known."""
        return self._journal is not None and not self._is_behind and not self._is_detached

    def entries(self) -> Sequence[JournalEntry]:
        return self._memory_entries if self._journal is None or self._is_detached else self._journal.entries()

    def append(self, entry: JournalEntry) -> None:
        if self._journal is not None and not self._is_detached:
            try:
                self._journal.append(entry)
                return
            except SessionTaken:
                raise
            except JournalUnwritable as error:
                self._degrade(error)
        self._memory_entries.append(entry)

    async def flush(self) -> None:
        if self._journal is not None and not self._is_detached:
            await self._await_write(self._journal.flush())

    async def commit(self) -> None:
        if self._journal is not None and not self._is_detached:
            await self._await_write(self._journal.commit())

    async def _await_write(self, storing: Awaitable[None]) -> None:
        try:
            await storing
            self._is_behind = False
        except SessionTaken:
            raise
        except JournalWriteDelayed as error:  # the next successful write stores the missing entries too
            self._is_behind = True
            self._report_once(str(error))
        except (JournalUnwritable, JournalDamaged) as error:
            self._degrade(error)

    def close(self) -> None:
        if self._journal is not None:
            self._memory_entries = list(self.entries())
            self._journal.close()
            self._journal = None

    def _degrade(self, error: JournalUnwritable | JournalDamaged) -> None:
        """Continue in memory; the journal stays open, so that no other process can take the session."""
        if not self._is_detached and self._journal is not None:
            self._is_detached, self._memory_entries = True, list(self._journal.entries())
        self._report_once(f"{NOT_KEPT} {error}")

    def _report_once(self, sentence: str) -> None:
        if not self._has_reported:
            self._has_reported = True
            self._on_trouble(sentence)
