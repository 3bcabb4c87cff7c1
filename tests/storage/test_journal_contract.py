"""What every journal promises (ports.journal)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hummingbird.core.protocols.sessions import Journal
from hummingbird.storage.journals import FileJournal, MemoryJournal
from tests.storage.samples import OPENED, SAID, SAMPLES


@pytest.fixture(params=["file", "memory"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Journal]:
    opened: Journal = FileJournal(tmp_path / "j.jsonl") if request.param == "file" else MemoryJournal()
    yield opened
    opened.close()


def test_a_new_journal_is_empty(journal: Journal) -> None:
    assert list(journal.entries()) == []


def test_entries_come_back_in_the_order_they_were_appended(journal: Journal) -> None:
    for entry in SAMPLES:
        journal.append(entry)
    assert list(journal.entries()) == SAMPLES


async def test_a_commit_with_nothing_to_commit_returns(journal: Journal) -> None:
    await journal.commit()
    journal.append(OPENED)
    await journal.commit()
    await journal.commit()
    assert list(journal.entries()) == [OPENED]


async def test_entries_can_follow_a_commit(journal: Journal) -> None:
    journal.append(OPENED)
    await journal.commit()
    journal.append(SAID)
    await journal.commit()
    assert list(journal.entries()) == [OPENED, SAID]


def test_a_journal_can_be_closed_twice(journal: Journal) -> None:
    """Whoever cleans up need not know who did so before."""
    journal.append(OPENED)
    journal.close()
    journal.close()
    assert list(journal.entries()) == [OPENED]


def test_a_journal_in_memory_can_go_on_from_other_entries() -> None:
    given = [OPENED]
    journal = MemoryJournal(given)
    journal.append(SAID)
    assert list(journal.entries()) == [OPENED, SAID]
    assert given == [OPENED]
