"""What an agent keeps of its sessions, and where: journals, checkpoints of sandboxes, what was spent. Nothing at all
where there is no folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from hummingbird.adapters.stores.archives import FolderArchives
from hummingbird.adapters.stores.degrading import NOT_KEPT, DegradingJournal
from hummingbird.adapters.stores.journal import FileJournal, MemoryJournal, read
from hummingbird.adapters.stores.spending import SqliteSpending
from hummingbird.domain.errors import JournalTaken, JournalUnwritable
from hummingbird.domain.journal import Entry
from hummingbird.domain.sessions import JOURNAL, check_session_id
from hummingbird.ports.archives import Archives
from hummingbird.ports.clock import Clock
from hummingbird.ports.journal import Journal
from hummingbird.ports.spending import Spending

SPENDING = "spending.sqlite"


class Keeping(Protocol):
    """Where an agent's sessions are."""

    @property
    def archives(self) -> Archives | None: ...

    @property
    def spending(self) -> Spending | None: ...

    def journal(self, session_id: str) -> Journal:
        """Raises UsageFault, JournalUnwritable, JournalDamaged, SessionUnreadable."""
        ...

    def give_back(self, journal: Journal) -> None:
        """The agent has no more use for it."""
        ...


class FolderKeeping:
    """`on_trouble`: with one, a journal that cannot be written is told to it and no reason to stop (S2)."""

    def __init__(self, folder: Path | None, clock: Clock, on_trouble: Callable[[str], None] | None = None) -> None:
        self._folder, self._on_trouble = folder, on_trouble
        self.archives = None if folder is None else FolderArchives(folder)
        self.spending = None if folder is None else SqliteSpending(folder / SPENDING, clock.now)

    def journal(self, session_id: str) -> Journal:
        if self._folder is None:
            return MemoryJournal()
        path = session_folder(self._folder, session_id) / JOURNAL
        if self._on_trouble is None:
            return FileJournal(path)
        try:
            return DegradingJournal(FileJournal(path), self._on_trouble)
        except JournalTaken:
            raise
        except JournalUnwritable as error:
            self._on_trouble(f"{NOT_KEPT} {error}")
            return DegradingJournal(None, self._on_trouble, _readable(path))

    def give_back(self, journal: Journal) -> None:
        journal.close()


def _readable(path: Path) -> list[Entry]:
    """What can be read of a session that cannot be written. Raises JournalDamaged, SessionUnreadable."""
    try:
        return read(path)
    except OSError:
        return []


class HeldKeeping:
    """One session that somebody else has opened, and will release."""

    def __init__(self, journal: Journal, archives: Archives | None, spending: Spending | None) -> None:
        self._journal = journal
        self.archives, self.spending = archives, spending

    def journal(self, session_id: str) -> Journal:
        return self._journal

    def give_back(self, journal: Journal) -> None:
        """Whoever opened it has more to write beside it."""


def session_folder(sessions: Path, session_id: str) -> Path:
    """Raises UsageFault."""
    return sessions / check_session_id(session_id)
