"""A SQLite file of ours: opened, brought up to date, and its faults told in sentences. Knows nothing of what is in it.

Each use opens the file: threads and processes come and go, and SQLite keeps them apart. Writers queue up for it.
"""

import sqlite3
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hummingbird.adapters.tables.upkeep import BROKEN, Foreign, Newer, Plan, bring_up_to_date, make
from hummingbird.domain.errors import JournalDamaged, JournalUnwritable, SessionUnreadable
from hummingbird.domain.limits import LOCK_WAIT_S


class LedgerFile:
    """`what` is its name in sentences. `mark` tells our files from others'. `migrations` holds the statements that lead
    to version 1, to version 2, …; one that was published is never changed, the next one is added."""

    def __init__(self, path: Path, what: str, mark: int, migrations: Sequence[Sequence[str]]) -> None:
        self._path = path
        self._what = what
        self._plan = Plan(mark, migrations)
        self._staying: sqlite3.Connection | None = None
        self._arriving = threading.Lock()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """All that its block reads belongs to one moment."""
        with self._open() as connection:
            connection.execute("BEGIN")
            yield connection
            connection.execute("ROLLBACK")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """All that its block wrote is there afterwards, or nothing of it."""
        with self._open() as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            make(self._path)
            connection = sqlite3.connect(self._path, timeout=LOCK_WAIT_S, isolation_level=None)
            connection.row_factory = sqlite3.Row
            try:
                self._bring_up_to_date(connection)
                self._stay()
                connection.execute("PRAGMA synchronous = NORMAL")  # what a power cut takes is seen again
                connection.execute("PRAGMA secure_delete = ON")  # what was removed is not left in the file
                yield connection
            finally:
                connection.close()  # takes back what was not committed
        except (OSError, sqlite3.Error) as error:
            raise self._told(error) from error

    def _stay(self) -> None:
        """Whoever closes the file last has to tidy it up, which takes far longer than a write. So one of us stays."""
        with self._arriving:
            if self._staying is None:
                self._staying = sqlite3.connect(self._path, timeout=LOCK_WAIT_S, check_same_thread=False)
                weakref.finalize(self, self._staying.close)
                self._staying.execute("PRAGMA user_version").fetchone()  # only who has read is counted

    def _bring_up_to_date(self, connection: sqlite3.Connection) -> None:
        try:
            bring_up_to_date(connection, self._plan)
        except Foreign:
            raise SessionUnreadable(f"{self._path} is not {self._what}; name another file for it.") from None
        except Newer:
            raise SessionUnreadable(
                f"{self._path} was written by a newer version; update this one to use {self._what}."
            ) from None

    def _told(self, error: OSError | sqlite3.Error) -> JournalUnwritable | JournalDamaged:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in BROKEN:
            return JournalDamaged(f"{self._path} is damaged and cannot be used as {self._what}; move it away.")
        if code == sqlite3.SQLITE_BUSY:
            return JournalUnwritable(f"Another process holds {self._what} {self._path} for too long; end it.")
        words = error.strerror if isinstance(error, OSError) else str(error)
        return JournalUnwritable(f"{self._path} cannot be used as {self._what}: {words}.")
