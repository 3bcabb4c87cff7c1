"""A journal that goes on in memory when its file cannot be written."""

import os
from pathlib import Path

import pytest

from hummingbird.core.errors import JournalWriteDelayed, SessionTaken
from hummingbird.core.journal import RunStarted, UserSaid
from hummingbird.storage.journals import DegradingJournal, FileJournal, MemoryJournal

FIRST, SECOND, THIRD = RunStarted(run_id="r", model="m"), UserSaid(text="two"), UserSaid(text="three")


async def test_it_is_a_file_as_long_as_it_can_be(tmp_path: Path) -> None:
    told: list[str] = []
    journal = DegradingJournal(FileJournal(tmp_path / "j"), told.append)
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
    journal = DegradingJournal(FileJournal(tmp_path / "j"), told.append)
    journal.append(FIRST)
    with monkeypatch.context() as full:
        full.setattr(os, "write", _full)
        journal.append(SECOND)
    journal.append(THIRD)
    await journal.commit()
    assert list(journal.entries()) == [FIRST, SECOND, THIRD]
    assert len(told) == 1
    assert "No space left" in told[0]
    with pytest.raises(SessionTaken):  # it is still ours, though nothing more is written
        FileJournal(tmp_path / "j")
    journal.close()
    assert list(journal.entries()) == [FIRST, SECOND, THIRD]
    kept = FileJournal(tmp_path / "j")
    kept.close()
    assert list(kept.entries()) == [FIRST]


async def test_a_disk_that_loses_what_it_took_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    journal = DegradingJournal(FileJournal(tmp_path / "j"), told.append)
    journal.append(FIRST)
    monkeypatch.setattr(os, "fdatasync", _full)
    await journal.commit()
    assert (list(journal.entries()), len(told)) == ([FIRST], 1)


async def test_without_a_place_it_is_what_could_be_read_and_what_comes() -> None:
    """Whoever could not open one has told that already."""
    told: list[str] = []
    journal = DegradingJournal(None, told.append, earlier=[FIRST])
    journal.append(SECOND)
    await journal.commit()
    assert (list(journal.entries()), told) == ([FIRST, SECOND], [])
    assert not journal.is_complete


class _Away(MemoryJournal):
    """One whose commits raise what they are told to."""

    error: Exception | None = None

    async def flush(self) -> None:
        await self.commit()

    async def commit(self) -> None:
        if self.error:
            raise self.error


async def test_a_store_that_is_away_is_told_once_and_may_be_whole_again() -> None:
    """What is missing goes along with a later commit."""
    told: list[str] = []
    away = _Away()
    journal = DegradingJournal(away, told.append)
    journal.append(FIRST)
    away.error = JournalWriteDelayed("It is away.")
    await journal.commit()
    await journal.commit()
    whole = [journal.is_complete]
    away.error = None
    journal.append(SECOND)
    await journal.commit()
    assert [*whole, journal.is_complete] == [False, True]
    assert (list(away.entries()), told) == ([FIRST, SECOND], ["It is away."])


async def test_a_session_that_somebody_else_has_by_now_is_not_gone_on_with_in_memory() -> None:
    """Two must not go on with it."""
    away = _Away()
    journal = DegradingJournal(away, print)
    away.error = SessionTaken("Somebody has it.")
    with pytest.raises(SessionTaken):
        await journal.commit()


def _full(*_: object) -> int:
    raise OSError(28, "No space left on device")
