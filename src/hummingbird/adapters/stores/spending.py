"""What each project spent each day (L6), in a SQLite file that all processes of a machine share."""

import asyncio
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from hummingbird.domain.errors import JournalUnwritable

_MICRO = Decimal(1_000_000)  # money is stored as whole millionths of a dollar: SQLite can add those exactly


class SqliteSpending:
    """Days are UTC days of `now`. Each call opens the file: runs are far apart, and threads may differ."""

    def __init__(self, path: Path, now: Callable[[], float]) -> None:
        self._path = path
        self._now = now

    async def spent_today(self, project: str) -> Decimal:
        return await asyncio.to_thread(self._read, project)

    async def add(self, project: str, usd: Decimal) -> None:
        await asyncio.to_thread(self._write, project, usd)

    def _read(self, project: str) -> Decimal:
        query = "SELECT micro_usd FROM spending WHERE project = ? AND day = ?"
        row = self._execute(query, (project, self._day()))
        return Decimal(row[0]) / _MICRO if row else Decimal(0)

    def _write(self, project: str, usd: Decimal) -> None:
        micro = int((usd * _MICRO).to_integral_value(rounding="ROUND_UP"))
        query = (
            "INSERT INTO spending VALUES (?, ?, ?) "
            "ON CONFLICT (project, day) DO UPDATE SET micro_usd = micro_usd + excluded.micro_usd"
        )
        self._execute(query, (project, self._day(), micro))

    def _execute(self, query: str, values: tuple[str | int, ...]) -> tuple[int] | None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(self._path, timeout=30)
            try:
                with connection:
                    connection.execute(
                        "CREATE TABLE IF NOT EXISTS spending "
                        "(project TEXT, day TEXT, micro_usd INTEGER, PRIMARY KEY (project, day))"
                    )
                    row: tuple[int] | None = connection.execute(query, values).fetchone()
                    return row
            finally:
                connection.close()
        except (OSError, sqlite3.Error) as error:
            raise JournalUnwritable(f"The record of spending {self._path} cannot be used: {error}.") from error

    def _day(self) -> str:
        return datetime.fromtimestamp(self._now(), UTC).date().isoformat()
