"""How a SQLite file of ours is made, recognised and brought up to date, also while other processes do the same.

Sentences are for whoever knows what the file is: they translate the two refusals. Knows nothing of what is in it.
"""

import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hummingbird.domain.limits import LOCK_WAIT_S

BROKEN = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_TRY_AGAIN_S = 0.02


class Foreign(Exception):
    """The file is somebody else's."""


class Newer(Exception):
    """A newer version of us wrote it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """`mark` tells our files from others'. `migrations` holds the statements that lead to version 1, to version 2, …;
    one that was published is never changed, the next one is added."""

    mark: int
    migrations: Sequence[Sequence[str]]


def make(path: Path) -> None:
    """Ours alone: SQLite would let others read it."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)


def bring_up_to_date(connection: sqlite3.Connection, plan: Plan) -> None:
    """Raises Foreign, Newer, and what SQLite raises."""
    connection.execute("BEGIN")  # so that mark and version belong together
    version = _version(connection, plan)
    connection.execute("ROLLBACK")
    if version == len(plan.migrations):
        return
    _use_write_ahead_log(connection)
    connection.execute("BEGIN IMMEDIATE")
    for statements in plan.migrations[_version(connection, plan) :]:  # another process may have been quicker
        for statement in statements:
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {plan.mark}")
    connection.execute(f"PRAGMA user_version = {len(plan.migrations)}")
    connection.execute("COMMIT")


def _version(connection: sqlite3.Connection, plan: Plan) -> int:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    mark = int(connection.execute("PRAGMA application_id").fetchone()[0])
    tables = connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    if mark != plan.mark and (version or mark or tables):
        raise Foreign
    if version > len(plan.migrations):
        raise Newer
    return version


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """SQLite does not wait for other processes here, whatever its timeout says: two that change the mode at once
    would wait for each other."""
    until = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(_TRY_AGAIN_S)
