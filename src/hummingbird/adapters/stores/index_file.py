"""A SQLite file of which everything can be made again: one that is damaged, or is somebody else's, is put aside and
begun anew, also while other processes use it. Knows nothing of what is in it.

Whoever uses the file holds a lock meanwhile, many at a time; whoever puts it aside holds it alone. Without that, SQLite
would mix up the log that belongs to the old file with that of the new one, for both have the same name.
"""

import fcntl
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from hummingbird.adapters.stores.ledger_file import LedgerFile
from hummingbird.domain.errors import JournalDamaged, JournalUnwritable, SessionUnreadable

T = TypeVar("T")
Deed = Callable[[sqlite3.Connection], T]
_Way = Callable[[LedgerFile], AbstractContextManager[sqlite3.Connection]]
_Identity = tuple[int, int] | None


class RemadeFile:
    """As LedgerFile. `on_trouble` is told in a sentence when it was begun anew."""

    def __init__(
        self,
        path: Path,
        what: str,
        mark: int,
        migrations: Sequence[Sequence[str]],
        on_trouble: Callable[[str], None],
    ) -> None:
        self._path = path
        self._what = what
        self._mark = mark
        self._migrations = migrations
        self._on_trouble = on_trouble
        self._swapping = threading.Lock()
        self._identity: _Identity = None
        self._file = self._fresh()

    def read(self, deed: Deed[T]) -> T:
        """All that it reads belongs to one moment. Is done a second time if the file had to be begun anew."""
        return self._done(LedgerFile.reading, deed)

    def write(self, deed: Deed[T]) -> T:
        """All of it is written, or nothing. Is done a second time if the file had to be begun anew."""
        return self._done(LedgerFile.writing, deed)

    def _done(self, way: _Way, deed: Deed[T]) -> T:
        with self._lock(fcntl.LOCK_SH):
            file, identity = self._current()
            try:
                return _used(file, way, deed)
            except JournalDamaged:
                suffix = ".damaged"
            except SessionUnreadable:
                if not self._is_foreign():
                    raise
                suffix = ".foreign"
        self._put_aside(identity, suffix)
        with self._lock(fcntl.LOCK_SH):
            return _used(self._current()[0], way, deed)

    def _current(self) -> tuple[LedgerFile, _Identity]:
        """Another process may have begun it anew since we looked."""
        with self._swapping:
            identity = _identity(self._path)
            if identity != self._identity:
                self._file, self._identity = self._fresh(), identity
            return self._file, identity

    def _fresh(self) -> LedgerFile:
        return LedgerFile(self._path, self._what, self._mark, self._migrations)

    def _is_foreign(self) -> bool:
        with closing(sqlite3.connect(self._path)) as connection:
            return bool(connection.execute("PRAGMA application_id").fetchone()[0] != self._mark)

    def _put_aside(self, identity: _Identity, suffix: str) -> None:
        """What is damaged takes the place of what was damaged before; what is somebody else's takes nobody's."""
        aside = self._path.with_name(self._path.name + suffix)
        with self._lock(fcntl.LOCK_EX):
            if _identity(self._path) != identity:
                return  # somebody was quicker
            if suffix == ".foreign" and aside.exists():
                raise SessionUnreadable(f"{self._path} is not {self._what}, nor was {aside}; move both away.")
            for log in ("-wal", "-shm"):
                with suppress(FileNotFoundError):
                    self._path.with_name(self._path.name + log).unlink()
            self._path.rename(aside)
        state = "was damaged" if suffix == ".damaged" else f"was not {self._what}"
        self._on_trouble(f"{self._path} {state}; it is begun anew, and what was there is {aside} until you delete it.")

    @contextmanager
    def _lock(self, kind: int) -> Iterator[None]:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            fd = os.open(self._path.with_name(self._path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise self._unusable(error) from error
        try:
            fcntl.flock(fd, kind)
            yield
        except OSError as error:
            raise self._unusable(error) from error
        finally:
            os.close(fd)

    def _unusable(self, error: OSError) -> JournalUnwritable:
        return JournalUnwritable(f"{self._path} cannot be used as {self._what}: {error.strerror}.")


def _used(file: LedgerFile, way: _Way, deed: Deed[T]) -> T:
    with way(file) as connection:
        return deed(connection)


def _identity(path: Path) -> _Identity:
    try:
        found = path.stat()
    except OSError:  # LedgerFile says why
        return None
    return found.st_dev, found.st_ino
