"""A session as weeks of work leave it: thousands of entries, most of which a summary stands for."""

from pathlib import Path

import msgspec

from benchmarks.sessions.journals import entries
from hummingbird.core.journal import Compacted, JournalEntry, SessionOpened
from hummingbird.storage.journals import FileJournal

ENTRIES = 7_000
SESSION = "long"
_KEPT = 20  # entries that the model still sees


def write(state: Path) -> int:
    """In the store of that home. How many bytes its journal has."""
    path = state / "sessions" / SESSION / "journal.jsonl"
    journal = FileJournal(path)
    for entry in _all():
        journal.append(entry)
    journal.close()
    return path.stat().st_size


def _all() -> list[JournalEntry]:
    found = [
        msgspec.structs.replace(entry, session_id=SESSION) if isinstance(entry, SessionOpened) else entry
        for entry in entries(ENTRIES - 1)
    ]
    until = len(found) - _KEPT
    taken = Compacted(first=1, last=ENTRIES, summary="Much was done.", since=4, until=until, at=found[-1].at)
    return [*found, taken]
