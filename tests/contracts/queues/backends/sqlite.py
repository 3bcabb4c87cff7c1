"""The embedded queue: a file in a scratch folder."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hummingbird.queues.sqlite_queue import SqliteQueue


@dataclass(frozen=True)
class SqliteSite:
    path: Path

    def open(self, visibility_s: int) -> SqliteQueue:
        return SqliteQueue(self.path, visibility_s)

    def words(self) -> Sequence[str]:
        return ("sqlite", str(self.path))


class SqliteBackend:
    refuses_expired = True

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0

    async def site(self) -> SqliteSite:
        self._count += 1
        return SqliteSite(self._folder / "queues" / f"{self._count}.sqlite")
