"""When entries are on the disk: shared flushes, failing ones, and ones that outlive their journal."""

import asyncio
import errno
import os
import threading
from pathlib import Path

import pytest

import hummingbird.storage.journals as room
from hummingbird.core.errors import JournalUnwritable
from hummingbird.core.journal import UserSaid
from hummingbird.storage.journals import FileJournal
from tests.storage.samples import OPENED, SAID


class Disk:
    """Counts and delays what the journal asks of the disk, and remembers how much was safe when."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._fdatasync, self._fsync = os.fdatasync, os.fsync
        self.open = threading.Event()
        self.open.set()
        self.started = threading.Event()
        self.flushes = 0
        self.safe_bytes = 0
        self.directories: list[str] = []
        self.error: OSError | None = None
        monkeypatch.setattr(os, "fdatasync", self._flush)
        monkeypatch.setattr(os, "fsync", self._flush_directory)

    def _flush(self, fd: int) -> None:
        self.flushes += 1
        size = os.fstat(fd).st_size
        self.started.set()
        assert self.open.wait(60)
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        self._fdatasync(fd)
        self.safe_bytes = max(self.safe_bytes, size)

    def _flush_directory(self, fd: int) -> None:
        self.directories.append(str(Path(f"/proc/self/fd/{fd}").readlink()))
        self._fsync(fd)

    async def flush_has_started(self) -> None:
        assert await asyncio.to_thread(self.started.wait, 60)
        self.started.clear()


def size_of(path: Path) -> int:
    return path.stat().st_size


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    """A slow one: no flush holds the event loop."""
    monkeypatch.setattr(room, "QUICK_FLUSH_S", 0.0)
    return Disk(monkeypatch)


@pytest.fixture
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    """Quick, whatever the machine that runs the tests is doing."""
    monkeypatch.setattr(room, "QUICK_FLUSH_S", 1_000.0)
    return Disk(monkeypatch)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "j.jsonl"


async def test_what_was_appended_before_a_commit_is_on_the_disk_when_it_returns(path: Path, disk: Disk) -> None:
    journal = FileJournal(path)
    for number in range(5):
        journal.append(UserSaid(text=str(number)))
        size = size_of(path)
        assert disk.safe_bytes < size
        await journal.commit()
        assert disk.safe_bytes == size
    journal.close()


async def test_commits_that_come_while_one_is_under_way_share_the_next(path: Path, disk: Disk) -> None:
    """Fifty runs in one session wait for two flushes, not for fifty."""
    journal = FileJournal(path)
    journal.append(OPENED)
    disk.open.clear()
    commits = [asyncio.create_task(journal.commit())]
    await disk.flush_has_started()
    for number in range(50):
        journal.append(UserSaid(text=str(number)))
        commits.append(asyncio.create_task(journal.commit()))
    disk.open.set()
    await asyncio.gather(*commits)
    assert disk.flushes == 2
    assert disk.safe_bytes == size_of(path)
    journal.close()


async def test_an_entry_that_came_during_a_flush_waits_for_one_of_its_own(path: Path, disk: Disk) -> None:
    """The flush under way may have passed it already."""
    journal = FileJournal(path)
    journal.append(OPENED)
    disk.open.clear()
    first = asyncio.create_task(journal.commit())
    await disk.flush_has_started()
    journal.append(SAID)
    second = asyncio.create_task(journal.commit())
    await asyncio.sleep(0)
    disk.open.set()
    await first
    assert not second.done()
    await second
    assert disk.safe_bytes == size_of(path)
    journal.close()


async def test_a_second_commit_with_nothing_new_costs_nothing(path: Path, disk: Disk) -> None:
    journal = FileJournal(path)
    journal.append(OPENED)
    await journal.commit()
    await journal.commit()
    assert disk.flushes == 1
    journal.close()


async def test_what_an_earlier_process_did_not_commit_is_committed_now(path: Path, disk: Disk) -> None:
    """It was read from the kernel's memory; the disk may not have it."""
    earlier = FileJournal(path)
    earlier.append(OPENED)
    earlier.close()
    journal = FileJournal(path)
    await journal.commit()
    assert disk.safe_bytes == size_of(path)
    journal.close()


async def test_the_directories_know_the_file_too(tmp_path: Path, disk: Disk) -> None:
    """A file in a directory that is gone after a power cut is gone as well."""
    journal = FileJournal(tmp_path / "new" / "deep" / "j.jsonl")
    journal.append(OPENED)
    await journal.commit()
    assert sorted(disk.directories) == sorted(map(str, (tmp_path, tmp_path / "new", tmp_path / "new" / "deep")))
    journal.append(SAID)
    await journal.commit()
    assert len(disk.directories) == 3
    journal.close()


async def test_an_interrupted_commit_leaves_the_flush_to_the_others(path: Path, disk: Disk) -> None:
    journal = FileJournal(path)
    journal.append(OPENED)
    disk.open.clear()
    interrupted, other = (asyncio.create_task(journal.commit()) for _ in range(2))
    await disk.flush_has_started()
    interrupted.cancel()
    with pytest.raises(asyncio.CancelledError):
        await interrupted
    disk.open.set()
    await other
    assert disk.flushes == 1
    journal.close()


async def test_a_flush_that_failed_fails_all_who_wait_for_it(path: Path, disk: Disk) -> None:
    journal = FileJournal(path)
    journal.append(OPENED)
    disk.error = OSError(errno.EIO, os.strerror(errno.EIO))
    outcomes = await asyncio.gather(*(journal.commit() for _ in range(3)), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [JournalUnwritable] * 3
    assert f"The journal {path} cannot be written: Input/output error." in str(outcomes[0])
    journal.close()


async def test_after_a_flush_that_failed_none_is_believed(path: Path, disk: Disk) -> None:
    """The kernel reports a lost page once and then takes it for written."""
    journal = FileJournal(path)
    journal.append(OPENED)
    disk.error = OSError(errno.EIO, os.strerror(errno.EIO))
    with pytest.raises(JournalUnwritable):
        await journal.commit()
    journal.append(SAID)
    with pytest.raises(JournalUnwritable):
        await journal.commit()
    journal.close()


async def test_a_flush_that_nobody_waits_for_any_more_fails_quietly_but_is_remembered(path: Path, disk: Disk) -> None:
    journal = FileJournal(path)
    journal.append(OPENED)
    disk.open.clear()
    disk.error = OSError(errno.EIO, os.strerror(errno.EIO))
    interrupted = asyncio.create_task(journal.commit())
    await disk.flush_has_started()
    interrupted.cancel()
    with pytest.raises(asyncio.CancelledError):
        await interrupted
    disk.open.set()
    with pytest.raises(JournalUnwritable):
        await journal.commit()
    assert disk.flushes == 1
    journal.close()


async def test_closing_while_a_flush_is_under_way_lets_it_finish(path: Path, disk: Disk) -> None:
    """And the file is free when it has."""
    journal = FileJournal(path)
    journal.append(OPENED)
    disk.open.clear()
    commit = asyncio.create_task(journal.commit())
    await disk.flush_has_started()
    journal.close()
    disk.open.set()
    await commit
    assert disk.safe_bytes == size_of(path)
    await _is_free(path)


async def test_closing_before_a_flush_has_begun_lets_it_finish_too(path: Path, disk: Disk) -> None:
    journal = FileJournal(path)
    journal.append(OPENED)
    commit = asyncio.create_task(journal.commit())
    await asyncio.sleep(0)  # the flush is on its way to its thread
    journal.close()
    await commit
    assert disk.safe_bytes == size_of(path)
    await _is_free(path)


async def _is_free(path: Path) -> None:
    await asyncio.sleep(0)  # the file is closed by a callback of the flush
    again = FileJournal(path)
    assert list(again.entries()) == [OPENED]
    again.close()


def test_a_journal_outlives_the_event_loop_it_was_used_in(path: Path, disk: Disk) -> None:
    """Library users call `asyncio.run` once for each question."""
    journal = FileJournal(path)
    for entry in (OPENED, SAID):
        journal.append(entry)
        asyncio.run(journal.commit())
    assert disk.flushes == 2
    journal.close()


async def test_a_disk_that_was_quick_is_waited_for_without_a_thread(path: Path, quick_disk: Disk) -> None:
    """The first flush tells how quick it is, the next one is durable when `commit` returns at once."""
    journal = FileJournal(path)
    journal.append(OPENED)
    await journal.commit()
    journal.append(SAID)
    with pytest.raises(StopIteration):
        journal.commit().send(None)
    assert quick_disk.flushes == 2
    assert quick_disk.safe_bytes == size_of(path)
    journal.close()


async def test_a_disk_that_was_slow_does_not_hold_the_event_loop(path: Path, disk: Disk) -> None:
    """Other runs go on while this one waits."""
    journal = FileJournal(path)
    for entry in (OPENED, SAID):
        journal.append(entry)
        disk.open.clear()
        commit = asyncio.create_task(journal.commit())
        await disk.flush_has_started()
        disk.open.set()
        await commit
    assert disk.safe_bytes == size_of(path)
    journal.close()


async def test_a_quick_disk_that_fails_is_not_believed_again(path: Path, quick_disk: Disk) -> None:
    journal = FileJournal(path)
    journal.append(OPENED)
    await journal.commit()
    journal.append(SAID)
    quick_disk.error = OSError(5, "Input/output error")
    for _ in range(2):
        with pytest.raises(JournalUnwritable, match="Input/output error"):
            await journal.commit()
    journal.close()
