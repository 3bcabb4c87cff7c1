"""What an agent keeps of its sessions, and where: journals, checkpoints of sandboxes, what was spent. Nothing at all
where there is no folder."""

from collections.abc import Callable
from pathlib import Path

from hummingbird.adapters.stores.archives import FolderArchives
from hummingbird.adapters.stores.degrading import DegradingJournal
from hummingbird.adapters.stores.journal import FileJournal, MemoryJournal
from hummingbird.adapters.stores.spending import SqliteSpending
from hummingbird.domain.errors import UsageFault
from hummingbird.ports.clock import Clock
from hummingbird.ports.journal import Journal

JOURNAL = "journal.jsonl"


class Keeping:
    """`on_trouble`: with one, a journal that cannot be written is told to it and no reason to stop (S2)."""

    def __init__(self, folder: Path | None, clock: Clock, on_trouble: Callable[[str], None] | None = None) -> None:
        self._folder, self._on_trouble = folder, on_trouble
        self.archives = None if folder is None else FolderArchives(folder)
        self.spending = None if folder is None else SqliteSpending(folder / "spending.sqlite", clock.now)

    def journal(self, session_id: str) -> Journal:
        """Raises UsageFault, JournalUnwritable, JournalDamaged, SessionUnreadable."""
        if self._folder is None:
            return MemoryJournal()
        path = session_folder(self._folder, session_id) / JOURNAL
        return FileJournal(path) if self._on_trouble is None else DegradingJournal(path, self._on_trouble)


def session_folder(sessions: Path, session_id: str) -> Path:
    """Raises UsageFault."""
    if not session_id.replace("-", "").replace("_", "").isalnum():
        raise UsageFault(f"Session id {session_id[:80]!r} is not usable: letters, digits, - and _ only.")
    return sessions / session_id
