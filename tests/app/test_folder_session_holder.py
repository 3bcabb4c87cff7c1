"""What an agent keeps by itself, in a folder or nowhere."""

from pathlib import Path

import pytest

from hummingbird.app.console import SystemClock
from hummingbird.app.session_holder import FolderSessionHolder, OpenSessionHolder
from hummingbird.core.errors import JournalUnwritable, SessionTaken, UsageError
from hummingbird.core.journal import RunStarted
from hummingbird.storage.journals import FileJournal, MemoryJournal

FIRST = RunStarted(run_id="r", model="m")


def test_a_journal_is_in_its_sessions_folder_and_free_when_given_back(tmp_path: Path) -> None:
    keeping = FolderSessionHolder(tmp_path, SystemClock())
    journal = keeping.open_journal("abc")
    journal.append(FIRST)
    keeping.release_journal(journal)
    again = FileJournal(tmp_path / "abc" / "journal.jsonl")
    again.close()
    assert list(again.entries()) == [FIRST]


def test_without_a_folder_nothing_is_kept() -> None:
    keeping = FolderSessionHolder(None, SystemClock())
    assert (keeping.archives, keeping.spending) == (None, None)
    keeping.open_journal("abc").append(FIRST)
    assert list(keeping.open_journal("abc").entries()) == []


def test_an_id_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        FolderSessionHolder(tmp_path / "sessions", SystemClock()).open_journal("../abc")


def test_a_place_where_nothing_can_be_kept_is_told_at_once_to_whoever_listens(tmp_path: Path) -> None:
    """To everybody else it is an error."""
    told: list[str] = []
    (tmp_path / "abc").write_text("a file where a folder should be")
    journal = FolderSessionHolder(tmp_path, SystemClock(), told.append).open_journal("abc")
    journal.append(FIRST)
    assert (list(journal.entries()), len(told)) == ([FIRST], 1)
    assert "not saved" in told[0]
    with pytest.raises(JournalUnwritable):
        FolderSessionHolder(tmp_path, SystemClock()).open_journal("abc")


def test_a_session_that_somebody_has_is_refused(tmp_path: Path) -> None:
    """Two must not go on with it, whoever listens."""
    held = FileJournal(tmp_path / "abc" / "journal.jsonl")
    try:
        with pytest.raises(SessionTaken):
            FolderSessionHolder(tmp_path, SystemClock(), print).open_journal("abc")
    finally:
        held.close()


def test_a_session_that_somebody_else_opened_is_left_open() -> None:
    """Whoever did has more to write beside it."""

    class Watched(MemoryJournal):
        closed = False

        def close(self) -> None:
            self.closed = True

    journal = Watched()
    keeping = OpenSessionHolder(journal, None, None)
    assert keeping.open_journal("abc") is journal
    keeping.release_journal(journal)
    assert not journal.closed
