"""The SQLite file of a queue: opened once, made durable, and its faults told in sentences. Knows no message.

One connection for all threads of a queue, one thread at a time; other processes have their own. Writers queue up.
"""

import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hummingbird.domain.errors import QueueUnusable
from hummingbird.domain.limits import LOCK_WAIT_S

_MARK = 0x48425155  # "HBQU"
_TRY_AGAIN_S = 0.02
_BROKEN = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class QueueFile:
    """`migrations` holds the statements that lead to version 1, to version 2, …; one that was published is never
    changed, the next one is added. Everything raises QueueUnusable."""

    def __init__(self, path: Path, migrations: Sequence[Sequence[str]]) -> None:
        self._path = path
        self._migrations = migrations
        self._turn = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._closed = False

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """For one statement: nobody waits for it, and it waits for nobody."""
        with self._opened() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """All that its block wrote is on the disk afterwards, or nothing of it."""
        with self._opened() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def close(self) -> None:
        with self._turn:
            self._closed = True
            self._forget()

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        with self._turn:
            if self._closed:
                raise QueueUnusable(f"The queue {self._path} is closed; open it again to use it.")
            try:
                yield self._connection or self._open()
            except (OSError, sqlite3.Error) as error:
                self._forget()  # whatever ails it, the next one starts afresh
                raise self._told(error) from error

    def _forget(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _open(self) -> sqlite3.Connection:
        self._make()
        connection = sqlite3.connect(self._path, timeout=LOCK_WAIT_S, isolation_level=None, check_same_thread=False)
        self._connection = connection
        connection.row_factory = sqlite3.Row
        try:
            self._bring_up_to_date(connection)
        except QueueUnusable:
            self._forget()
            raise
        connection.execute("PRAGMA synchronous = FULL")  # who was told that it is sent may forget it
        return connection

    def _make(self) -> None:
        """Ours alone: SQLite would let others read it."""
        if not self._path.exists():
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.touch(mode=0o600)

    def _bring_up_to_date(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN")  # so that mark and version belong together
        version = self._version(connection)
        connection.execute("ROLLBACK")
        if version == len(self._migrations):
            return
        _use_write_ahead_log(connection)
        connection.execute("BEGIN IMMEDIATE")
        for statements in self._migrations[self._version(connection) :]:  # another process may have been quicker
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {_MARK}")
        connection.execute(f"PRAGMA user_version = {len(self._migrations)}")
        connection.execute("COMMIT")

    def _version(self, connection: sqlite3.Connection) -> int:
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        mark = int(connection.execute("PRAGMA application_id").fetchone()[0])
        tables = connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        if mark != _MARK and (version or mark or tables):
            raise QueueUnusable(f"{self._path} is not a queue of ours; name another file for it.")
        if version > len(self._migrations):
            raise QueueUnusable(f"The queue {self._path} was written by a newer version; update this one to use it.")
        return version

    def _told(self, error: OSError | sqlite3.Error) -> QueueUnusable:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in _BROKEN:
            return QueueUnusable(f"The queue {self._path} is damaged or no queue; move it away.")
        if code == sqlite3.SQLITE_BUSY:
            return QueueUnusable(f"Another process holds the queue {self._path} for too long; end it.")
        words = error.strerror if isinstance(error, OSError) else str(error)
        return QueueUnusable(
            f"The queue {self._path} cannot be used: {words}. Check its folder, its owner and the disk."
        )


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """SQLite does not wait for other processes here, whatever its timeout says."""
    until = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(_TRY_AGAIN_S)
