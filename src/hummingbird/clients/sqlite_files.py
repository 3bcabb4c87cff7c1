"""Create, recognise and migrate our SQLite files, safely while other processes do the same.

Callers know what the file is for, so they translate ForeignSqliteFile and NewerSqliteFile into sentences.
"""

import fcntl
import os
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hummingbird.core.errors import JournalUnwritable
from hummingbird.core.limits import LOCK_WAIT_S

LOCK_POLL_S = 0.02


def wait_for_lock(fd: int, otherwise: str) -> None:
    """Lock the file until it is closed.

    The wait is bounded, because a thread that hangs in the kernel cannot be interrupted. Raises JournalUnwritable with
    the sentence `otherwise`.
    """
    until = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > until:
                raise JournalUnwritable(otherwise) from error
            time.sleep(LOCK_POLL_S)


def sync_directory(path: Path) -> None:
    """Make the names in a directory survive a power cut."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


CORRUPTION_CODES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_WAL_POLL_S = 0.02


class ForeignSqliteFile(Exception):
    """The file belongs to another program."""


class NewerSqliteFile(Exception):
    """A newer version of Hummingbird wrote the file."""


@dataclass(frozen=True, slots=True)
class SqliteSchema:
    """The schema of one kind of file.

    `mark` tells our files from others. `migrations` holds the statements that lead to version 1, to version 2, and so
    on; a published migration is never changed, only followed by another.
    """

    mark: int
    migrations: Sequence[Sequence[str]]


def create_private_file(path: Path) -> None:
    """Create the file so that only its owner can read it; SQLite itself would let others read it."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)


def migrate_schema(connection: sqlite3.Connection, plan: SqliteSchema) -> None:
    """Bring the file to the latest version.

    Raises ForeignSqliteFile, NewerSqliteFile, and what SQLite raises.
    """
    connection.execute("BEGIN")  # read mark and version of the same state
    version = _schema_version(connection, plan)
    connection.execute("ROLLBACK")
    if version == len(plan.migrations):
        return
    _use_write_ahead_log(connection)
    connection.execute("BEGIN IMMEDIATE")
    for statements in plan.migrations[_schema_version(connection, plan) :]:  # another process may have been faster
        for statement in statements:
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {plan.mark}")
    connection.execute(f"PRAGMA user_version = {len(plan.migrations)}")
    connection.execute("COMMIT")


def _schema_version(connection: sqlite3.Connection, plan: SqliteSchema) -> int:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    mark = int(connection.execute("PRAGMA application_id").fetchone()[0])
    tables = connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    if mark != plan.mark and (version or mark or tables):
        raise ForeignSqliteFile
    if version > len(plan.migrations):
        raise NewerSqliteFile
    return version


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Switch to the write-ahead log, retrying while the file is busy.

    SQLite does not wait for other processes here, whatever its timeout: two that change the mode at once would wait for
    each other.
    """
    until = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(_WAL_POLL_S)
