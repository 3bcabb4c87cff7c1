"""What an agent keeps by itself, in a folder or nowhere (S1, S2)."""

from pathlib import Path

import pytest

from hummingbird.adapters.stores.journal import FileJournal, MemoryJournal
from hummingbird.assembly.clock import SystemClock
from hummingbird.assembly.keeping import FolderKeeping, HeldKeeping
from hummingbird.domain.errors import JournalTaken, JournalUnwritable, UsageFault
from hummingbird.domain.journal import RunStarted

FIRST = RunStarted(run_id="r", model="m")


def test_a_journal_is_in_its_sessions_folder_and_free_when_given_back(tmp_path: Path) -> None:
    keeping = FolderKeeping(tmp_path, SystemClock())
    journal = keeping.journal("abc")
    journal.append(FIRST)
    keeping.give_back(journal)
    again = FileJournal(tmp_path / "abc" / "journal.jsonl")
    again.close()
    assert list(again.entries()) == [FIRST]


def test_without_a_folder_nothing_is_kept() -> None:
    keeping = FolderKeeping(None, SystemClock())
    assert (keeping.archives, keeping.spending) == (None, None)
    keeping.journal("abc").append(FIRST)
    assert list(keeping.journal("abc").entries()) == []


def test_an_id_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageFault):
        FolderKeeping(tmp_path / "sessions", SystemClock()).journal("../abc")


def test_a_place_where_nothing_can_be_kept_is_told_at_once_to_whoever_listens(tmp_path: Path) -> None:
    """S2: to everybody else it is an error."""
    told: list[str] = []
    (tmp_path / "abc").write_text("a file where a folder should be")
    journal = FolderKeeping(tmp_path, SystemClock(), told.append).journal("abc")
    journal.append(FIRST)
    assert (list(journal.entries()), len(told)) == ([FIRST], 1)
    assert "not kept" in told[0]
    with pytest.raises(JournalUnwritable):
        FolderKeeping(tmp_path, SystemClock()).journal("abc")


def test_a_session_that_somebody_has_is_refused(tmp_path: Path) -> None:
    """E2: two must not go on with it, whoever listens."""
    held = FileJournal(tmp_path / "abc" / "journal.jsonl")
    try:
        with pytest.raises(JournalTaken):
            FolderKeeping(tmp_path, SystemClock(), print).journal("abc")
    finally:
        held.close()


def test_a_session_that_somebody_else_opened_is_left_open() -> None:
    """Whoever did has more to write beside it."""

    class Watched(MemoryJournal):
        closed = False

        def close(self) -> None:
            self.closed = True

    journal = Watched()
    keeping = HeldKeeping(journal, None, None)
    assert keeping.journal("abc") is journal
    keeping.give_back(journal)
    assert not journal.closed
