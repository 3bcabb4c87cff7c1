"""A journal that goes on in memory when its file cannot be written any more (S2): a run is worth more than its record.

What was written stays as it is, and a session that another process has is still refused: two must not go on with it.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from hummingbird.adapters.stores.journal import FileJournal
from hummingbird.domain.errors import JournalTaken, JournalUnwritable
from hummingbird.domain.journal import Entry


class DegradingJournal:
    """`on_trouble` hears once, in a sentence, that the rest is not kept. Raises JournalTaken, JournalDamaged and
    SessionUnreadable when it is opened."""

    def __init__(self, path: Path, on_trouble: Callable[[str], None]) -> None:
        self._on_trouble = on_trouble
        self._file: FileJournal | None = None
        self._kept: list[Entry] = []
        try:
            self._file = FileJournal(path)
        except JournalTaken:
            raise
        except JournalUnwritable as error:
            self._degrade(error)

    def entries(self) -> Sequence[Entry]:
        return self._kept if self._file is None else self._file.entries()

    def append(self, entry: Entry) -> None:
        if self._file is not None:
            try:
                self._file.append(entry)
                return
            except JournalUnwritable as error:
                self._degrade(error)
        self._kept.append(entry)

    async def commit(self) -> None:
        if self._file is not None:
            try:
                await self._file.commit()
            except JournalUnwritable as error:
                self._degrade(error)

    def close(self) -> None:
        if self._file is not None:
            self._kept = list(self._file.entries())
            self._file.close()
            self._file = None

    def _degrade(self, error: JournalUnwritable) -> None:
        self.close()
        self._on_trouble(f"This session is not kept from here on, so nobody can go on with it. {error}")
