"""Journals whose process or machine died while it was writing."""

import signal
from pathlib import Path

import pytest

from hummingbird.core.errors import JournalDamaged
from hummingbird.core.journal import JournalEntry, dump_entry
from hummingbird.storage.bucket_journal import parse_tail
from hummingbird.storage.journals import FileJournal
from tests.storage.other_process import said, write_on, write_once_and_die
from tests.storage.samples import OPENED, SAID, SAMPLES, start
from tests.thoroughly import ALL

BLOCK = 4096


def entries_in(path: Path) -> list[JournalEntry]:
    journal = FileJournal(path)
    journal.close()
    return list(journal.entries())


def goes_on(path: Path) -> list[JournalEntry]:
    """What is there after opening, once it is proved that the journal can be written to and read again."""
    journal = FileJournal(path)
    found = list(journal.entries())
    journal.append(SAID)
    journal.close()
    assert entries_in(path) == [*found, SAID]
    return found


def test_a_journal_torn_at_any_byte_has_all_entries_before_that_and_goes_on(tmp_path: Path) -> None:
    """All lines of all kinds; thoroughly, each offset."""
    path = tmp_path / "j.jsonl"
    lines = [dump_entry(entry) for entry in SAMPLES]
    content = b"".join(lines)
    ends = [sum(map(len, lines[: number + 1])) for number in range(len(lines))]
    for offset in range(0, len(content) + 1, 1 if ALL else 7):
        path.write_bytes(content[:offset])
        whole = sum(end <= offset for end in ends)
        assert goes_on(path) == SAMPLES[:whole], f"torn at byte {offset}"


@pytest.mark.parametrize("before", [[], [OPENED], SAMPLES])
@pytest.mark.parametrize(
    "tail",
    [
        b"\0",
        b"\0" * BLOCK,
        b"\0" * BLOCK + b"\n",
        b"\0" * BLOCK + dump_entry(SAID)[5:],
        b"\0" * BLOCK + dump_entry(SAID)[5:-1],
        dump_entry(SAID)[:20] + b"\0" * BLOCK,
        dump_entry(SAID)[:20] + b"\0" * BLOCK + b"\n",
        dump_entry(SAID)[:20] + b"\0" * BLOCK + dump_entry(SAID)[40:],
    ],
)
def test_blocks_of_zeros_at_the_end_are_cut_off(tmp_path: Path, before: list[JournalEntry], tail: bytes) -> None:
    """A file system that had grown the file but not yet written to it leaves them after a power cut."""
    path = tmp_path / "j.jsonl"
    path.write_bytes(b"".join(map(dump_entry, before)) + tail)
    assert goes_on(path) == before


@pytest.mark.thorough
@pytest.mark.parametrize("told", [1, 2, 5, 6, 23])
def test_a_process_that_is_killed_leaves_a_journal_with_all_that_it_had_appended(tmp_path: Path, told: int) -> None:
    """Killed at the next instant, which may be in the middle of a long line."""
    path = tmp_path / "j.jsonl"
    with start(write_on, path) as other:
        assert other.stdout is not None
        for number in range(told):
            assert other.stdout.readline() == f"{number}\n"
        other.kill()
        assert other.wait() == -signal.SIGKILL
    found = goes_on(path)
    assert len(found) >= told
    assert found == [said(number) for number in range(len(found))]


@pytest.mark.thorough
def test_an_entry_outlives_a_process_that_neither_committed_nor_closed(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with start(write_once_and_die, path) as other:
        assert other.wait() == -signal.SIGKILL
    assert entries_in(path) == [said(0)]


@pytest.mark.parametrize("head", [b'{"tail":1', b'{"tail":"x"}', b'{"x":' + b"[" * 200_000, b"\xff"])
def test_a_tail_in_the_bucket_that_cannot_be_read_is_damaged(head: bytes) -> None:
    with pytest.raises(JournalDamaged, match="has no valid head"):
        parse_tail(head + b"\n")
