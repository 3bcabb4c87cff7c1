"""What a service stands on: where its queue, its sessions and its home are. One site a journey."""

import os
import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

from hummingbird.core.journal import JournalEntry, load_entry
from hummingbird.core.limits import QUEUE_TAKEN_S


class Site(Protocol):
    @property
    def settings(self) -> Mapping[str, str]:
        """What the configuration says of it."""
        ...

    @property
    def environment(self) -> Mapping[str, str]: ...

    @property
    def hurry(self) -> Mapping[str, Any]:
        """Limits that are shorter here, by where they are used."""
        ...

    @property
    def visibility_s(self) -> int:
        """How long whoever died still holds a message, unless `let_go` helps."""
        ...

    def home(self, number: int) -> Path:
        """Of the first, the second … service."""
        ...

    def let_go(self) -> None:
        """Whoever died holds no message any more."""
        ...

    def left(self) -> int:
        """Messages that are alive."""
        ...

    def dead(self) -> int: ...

    async def entries(self, session_id: str) -> Sequence[JournalEntry]: ...


class LocalSite:
    """A SQLite queue and folders, which every service of the machine shares."""

    visibility_s = QUEUE_TAKEN_S
    settings: Mapping[str, str] = {}
    hurry: Mapping[str, Any] = {}
    environment: Mapping[str, str] = {"PATH": os.environ["PATH"]}

    def __init__(self, folder: Path) -> None:
        self._state = folder / "state"

    def home(self, number: int) -> Path:
        return self._state

    def let_go(self) -> None:
        self._asked("UPDATE messages SET visible_at = 1 WHERE dead = 0 AND visible_at > ?", time.time())

    def left(self) -> int:
        return self._asked("SELECT count(*) FROM messages WHERE dead = 0")

    def dead(self) -> int:
        return self._asked("SELECT count(*) FROM messages WHERE dead = 1")

    async def entries(self, session_id: str) -> Sequence[JournalEntry]:
        """A last line that is torn is none."""
        path = self._state / "sessions" / session_id / "journal.jsonl"
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        return [load_entry(line, number) for number, line in enumerate(lines, 1)]

    def _asked(self, query: str, *values: float) -> int:
        with closing(sqlite3.connect(self._state / "queue.sqlite", timeout=10)) as file:
            try:
                found = file.execute(query, values).fetchone()
                file.commit()
            except sqlite3.OperationalError as error:
                if "no such table" not in str(error):  # nobody has sent anything yet
                    raise
                return 0
        return int(found[0]) if found else 0
