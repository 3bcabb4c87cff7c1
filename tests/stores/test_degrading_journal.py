"""A journal that goes on in memory when its file cannot be written (S2)."""

import os
from pathlib import Path

import pytest

from hummingbird.adapters.stores.degrading import DegradingJournal
from hummingbird.adapters.stores.journal import FileJournal
from hummingbird.domain.errors import JournalTaken
from hummingbird.domain.journal import RunStarted, UserSaid

FIRST, SECOND, THIRD = RunStarted(run_id="r", model="m"), UserSaid(text="two"), UserSaid(text="three")


async def test_it_is_a_file_as_long_as_it_can_be(tmp_path: Path) -> None:
    told: list[str] = []
    journal = DegradingJournal(tmp_path / "j", told.append)
    journal.append(FIRST)
    await journal.commit()
    journal.close()
    again = FileJournal(tmp_path / "j")
    again.close()
    assert (list(again.entries()), told) == ([FIRST], [])
    assert list(journal.entries()) == [FIRST]


async def test_a_line_that_cannot_be_written_is_kept_in_memory_and_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    journal = DegradingJournal(tmp_path / "j", told.append)
    journal.append(FIRST)
    with monkeypatch.context() as full:
        full.setattr(os, "write", _full)
        journal.append(SECOND)
    journal.append(THIRD)
    await journal.commit()
    assert list(journal.entries()) == [FIRST, SECOND, THIRD]
    assert len(told) == 1
    assert "No space left" in told[0]
    kept = FileJournal(tmp_path / "j")  # the lock is free again, and what was written is whole
    kept.close()
    assert list(kept.entries()) == [FIRST]


async def test_a_disk_that_loses_what_it_took_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    journal = DegradingJournal(tmp_path / "j", told.append)
    journal.append(FIRST)
    monkeypatch.setattr(os, "fdatasync", _full)
    await journal.commit()
    assert (list(journal.entries()), len(told)) == ([FIRST], 1)


def test_a_place_where_nothing_can_be_kept_is_told_at_once(tmp_path: Path) -> None:
    told: list[str] = []
    (tmp_path / "file").write_text("")
    journal = DegradingJournal(tmp_path / "file" / "j", told.append)
    journal.append(FIRST)
    assert (list(journal.entries()), len(told)) == ([FIRST], 1)


def test_a_session_that_somebody_has_is_refused(tmp_path: Path) -> None:
    """E2: two must not go on with it."""
    held = FileJournal(tmp_path / "j")
    try:
        with pytest.raises(JournalTaken):
            DegradingJournal(tmp_path / "j", print)
    finally:
        held.close()


def _full(*_: object) -> int:
    raise OSError(28, "No space left on device")
