"""Share SQLite files between processes: `LedgerFile`, and `RebuildableSqliteFile` for what can be recreated.

Each use opens the file anew, because threads and processes come and go; SQLite isolates them, and writers queue up.
"""

import fcntl
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from hummingbird.clients.sqlite_files import (
    CORRUPTION_CODES,
    ForeignSqliteFile,
    NewerSqliteFile,
    SqliteSchema,
    create_private_file,
    migrate_schema,
)
from hummingbird.core.errors import JournalDamaged, JournalUnwritable, SessionUnreadable
from hummingbird.core.limits import LOCK_WAIT_S


class LedgerFile:
    """A SQLite file that is opened, migrated and used in transactions; its errors become sentences.

    `what` names it in error sentences. `mark` is the application id by which our files are recognised. `migrations`
    holds the statements that lead to version 1, to version 2 and so on; a published migration is never changed, only
    followed by the next one. Raises JournalUnwritable, JournalDamaged, SessionUnreadable.
    """

    def __init__(self, path: Path, what: str, mark: int, migrations: Sequence[Sequence[str]]) -> None:
        self._path = path
        self._what = what
        self._schema = SqliteSchema(mark, migrations)
        self._standby_connection: sqlite3.Connection | None = None
        self._standby_lock = threading.Lock()

    @contextmanager
    def read_transaction(self) -> Iterator[sqlite3.Connection]:
        """Open a transaction in which all reads see the same state."""
        with self._open() as connection:
            connection.execute("BEGIN")
            yield connection
            connection.execute("ROLLBACK")

    @contextmanager
    def write_transaction(self) -> Iterator[sqlite3.Connection]:
        """Open a transaction that writes everything or nothing."""
        with self._open() as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            create_private_file(self._path)
            connection = sqlite3.connect(self._path, timeout=LOCK_WAIT_S, isolation_level=None)
            connection.row_factory = sqlite3.Row
            try:
                self._migrate(connection)
                self._open_standby()
                connection.execute("PRAGMA synchronous = NORMAL")  # what a power cut loses will be recorded again
                connection.execute("PRAGMA secure_delete = ON")  # deleted content must not stay in the file
                yield connection
            finally:
                connection.close()  # rolls back what was not committed
        except (OSError, sqlite3.Error) as error:
            raise self._storage_error(error) from error

    def _open_standby(self) -> None:
        """Keep one connection open: the last one to close must checkpoint the file, which is slower than a write."""
        with self._standby_lock:
            if self._standby_connection is None:
                self._standby_connection = sqlite3.connect(self._path, timeout=LOCK_WAIT_S, check_same_thread=False)
                weakref.finalize(self, self._standby_connection.close)
                self._standby_connection.execute("PRAGMA user_version").fetchone()  # it counts only after a read

    def _migrate(self, connection: sqlite3.Connection) -> None:
        try:
            migrate_schema(connection, self._schema)
        except ForeignSqliteFile:
            raise SessionUnreadable(f"{self._path} is not {self._what}; name another file for it.") from None
        except NewerSqliteFile:
            raise SessionUnreadable(
                f"{self._path} was written by a newer version; update this one to use {self._what}."
            ) from None

    def _storage_error(self, error: OSError | sqlite3.Error) -> JournalUnwritable | JournalDamaged:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in CORRUPTION_CODES:
            return JournalDamaged(f"{self._path} is damaged and cannot be used as {self._what}; move it away.")
        if code == sqlite3.SQLITE_BUSY:
            return JournalUnwritable(f"Another process holds {self._what} {self._path} for too long; end it.")
        words = error.strerror if isinstance(error, OSError) else str(error)
        return JournalUnwritable(f"{self._path} cannot be used as {self._what}: {words}.")


T = TypeVar("T")
SqliteOperation = Callable[[sqlite3.Connection], T]
_TransactionKind = Callable[[LedgerFile], AbstractContextManager[sqlite3.Connection]]
_Identity = tuple[int, int] | None


class RebuildableSqliteFile:
    """Like `LedgerFile`, for content that can be recreated: a damaged or foreign file is moved aside and replaced.

    That works while other processes use the file: users hold a shared lock, and whoever moves the file holds it
    exclusively. Without the lock SQLite would mix up the write-ahead logs of the old and the new file, which have the
    same name. `on_trouble` is called with a sentence when the file was replaced.
    """

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
        self._swap_lock = threading.Lock()
        self._identity: _Identity = None
        self._file = self._new_file()

    def read(self, deed: SqliteOperation[T]) -> T:
        """Run a read in one transaction; repeat it if the file had to be replaced."""
        return self._run_with_recovery(LedgerFile.read_transaction, deed)

    def write(self, deed: SqliteOperation[T]) -> T:
        """Run a write in one transaction; repeat it if the file had to be replaced."""
        return self._run_with_recovery(LedgerFile.write_transaction, deed)

    def _run_with_recovery(self, way: _TransactionKind, deed: SqliteOperation[T]) -> T:
        with self._lock(fcntl.LOCK_SH):
            file, identity = self._current_file()
            try:
                return _run_operation(file, way, deed)
            except JournalDamaged:
                suffix = ".damaged"
            except SessionUnreadable:
                if not self._is_foreign():
                    raise
                suffix = ".foreign"
        self._move_aside(identity, suffix)
        with self._lock(fcntl.LOCK_SH):
            return _run_operation(self._current_file()[0], way, deed)

    def _current_file(self) -> tuple[LedgerFile, _Identity]:
        """Return the file, reopened if another process has replaced it meanwhile."""
        with self._swap_lock:
            identity = _file_identity(self._path)
            if identity != self._identity:
                self._file, self._identity = self._new_file(), identity
            return self._file, identity

    def _new_file(self) -> LedgerFile:
        return LedgerFile(self._path, self._what, self._mark, self._migrations)

    def _is_foreign(self) -> bool:
        with closing(sqlite3.connect(self._path)) as connection:
            return bool(connection.execute("PRAGMA application_id").fetchone()[0] != self._mark)

    def _move_aside(self, identity: _Identity, suffix: str) -> None:
        """Rename the file; a damaged one replaces the previous damaged one, a foreign one replaces nothing."""
        aside = self._path.with_name(self._path.name + suffix)
        with self._lock(fcntl.LOCK_EX):
            if _file_identity(self._path) != identity:
                return  # another process was faster
            if suffix == ".foreign" and aside.exists():
                raise SessionUnreadable(f"{self._path} is not {self._what}, nor was {aside}; move both away.")
            for log in ("-wal", "-shm"):
                with suppress(FileNotFoundError):
                    self._path.with_name(self._path.name + log).unlink()
            self._path.rename(aside)
        state = "was damaged" if suffix == ".damaged" else f"was not {self._what}"
        self._on_trouble(
            f"{self._path} {state}; a new one is used, and the old one is now {aside} until you delete it."
        )

    @contextmanager
    def _lock(self, kind: int) -> Iterator[None]:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            fd = os.open(self._path.with_name(self._path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise self._storage_error(error) from error
        try:
            fcntl.flock(fd, kind)
            yield
        except OSError as error:
            raise self._storage_error(error) from error
        finally:
            os.close(fd)

    def _storage_error(self, error: OSError) -> JournalUnwritable:
        return JournalUnwritable(f"{self._path} cannot be used as {self._what}: {error.strerror}.")


def _run_operation(file: LedgerFile, way: _TransactionKind, deed: SqliteOperation[T]) -> T:
    with way(file) as connection:
        return deed(connection)


def _file_identity(path: Path) -> _Identity:
    try:
        found = path.stat()
    except OSError:  # LedgerFile reports the reason
        return None
    return found.st_dev, found.st_ino
