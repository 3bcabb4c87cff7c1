"""What every journal promises (ports.journal)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hummingbird.adapters.stores.journal import FileJournal, MemoryJournal
from hummingbird.ports.journal import Journal
from tests.stores.samples import OPENED, SAID, SAMPLES


@pytest.fixture(params=["file", "memory"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Journal]:
    opened: Journal = FileJournal(tmp_path / "j.jsonl") if request.param == "file" else MemoryJournal()
    yield opened
    opened.close()


def test_a_new_journal_is_empty(journal: Journal) -> None:
    """L1."""
    assert list(journal.entries()) == []


def test_entries_come_back_in_the_order_they_were_appended(journal: Journal) -> None:
    """L1."""
    for entry in SAMPLES:
        journal.append(entry)
    assert list(journal.entries()) == SAMPLES


async def test_a_commit_with_nothing_to_commit_returns(journal: Journal) -> None:
    """L2."""
    await journal.commit()
    journal.append(OPENED)
    await journal.commit()
    await journal.commit()
    assert list(journal.entries()) == [OPENED]


async def test_entries_can_follow_a_commit(journal: Journal) -> None:
    """L2."""
    journal.append(OPENED)
    await journal.commit()
    journal.append(SAID)
    await journal.commit()
    assert list(journal.entries()) == [OPENED, SAID]


def test_a_journal_can_be_closed_twice(journal: Journal) -> None:
    """L19. Whoever cleans up need not know who did so before."""
    journal.append(OPENED)
    journal.close()
    journal.close()
    assert list(journal.entries()) == [OPENED]


def test_a_journal_in_memory_can_go_on_from_other_entries() -> None:
    """L2."""
    given = [OPENED]
    journal = MemoryJournal(given)
    journal.append(SAID)
    assert list(journal.entries()) == [OPENED, SAID]
    assert given == [OPENED]
