"""The SQLite file of a queue: opened once, made durable, and its faults told in sentences. Knows no message.

One connection for all threads of a queue, one thread at a time; other processes have their own. Writers queue up.
"""

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hummingbird.adapters.tables.upkeep import BROKEN, Foreign, Newer, Plan, bring_up_to_date, make
from hummingbird.domain.errors import QueueUnusable
from hummingbird.domain.limits import LOCK_WAIT_S

_MARK = 0x48425155  # "HBQU"


class QueueFile:
    """`migrations` holds the statements that lead to version 1, to version 2, …; one that was published is never
    changed, the next one is added. Everything raises QueueUnusable."""

    def __init__(self, path: Path, migrations: Sequence[Sequence[str]]) -> None:
        self._path = path
        self._plan = Plan(_MARK, migrations)
        self._turn = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._opened_file: tuple[int, int] | None = None
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
            self._check_place()
            try:
                yield self._connection or self._open()
            except (OSError, sqlite3.Error) as error:
                self._forget()  # whatever ails it, the next one starts afresh
                raise self._told(error) from error

    def _check_place(self) -> None:
        """What is written into a file that somebody has deleted is lost when we end, and nobody would notice."""
        if self._connection is None or _identity(self._path) == self._opened_file:
            return
        self._forget()
        raise QueueUnusable(
            f"The queue {self._path} was deleted or replaced while it was used; what was in it is lost unless it is "
            "brought back. It is opened anew."
        )

    def _forget(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _open(self) -> sqlite3.Connection:
        make(self._path)
        self._opened_file = _identity(self._path)
        connection = sqlite3.connect(self._path, timeout=LOCK_WAIT_S, isolation_level=None, check_same_thread=False)
        self._connection = connection
        connection.row_factory = sqlite3.Row
        try:
            bring_up_to_date(connection, self._plan)
        except Foreign:
            self._forget()
            raise QueueUnusable(f"{self._path} is not a queue of ours; name another file for it.") from None
        except Newer:
            self._forget()
            raise QueueUnusable(
                f"The queue {self._path} was written by a newer version; update this one to use it."
            ) from None
        connection.execute("PRAGMA synchronous = FULL")  # who was told that it is sent may forget it
        connection.execute("PRAGMA secure_delete = ON")  # what people wrote does not outlive its message
        return connection

    def _told(self, error: OSError | sqlite3.Error) -> QueueUnusable:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in BROKEN:
            return QueueUnusable(f"The queue {self._path} is damaged or no queue; move it away.")
        if code == sqlite3.SQLITE_BUSY:
            return QueueUnusable(f"Another process holds the queue {self._path} for too long; end it.")
        words = error.strerror if isinstance(error, OSError) else str(error)
        return QueueUnusable(
            f"The queue {self._path} cannot be used: {words}. Check its folder, its owner and the disk."
        )


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
