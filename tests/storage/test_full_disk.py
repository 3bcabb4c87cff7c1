"""Journals on a disk that is full or broken."""

import errno
import os
import subprocess
from pathlib import Path

import pytest

from hummingbird.core.errors import JournalUnwritable
from hummingbird.core.journal import JournalEntry, dump_entry
from hummingbird.storage.journals import FileJournal
from tests.real_parts import missing
from tests.storage.other_process import fill, write_with_a_limit
from tests.storage.samples import OPENED, SAID, SAMPLES, command, told_by

# in a mount namespace of its own, so that nothing is left behind
TINY_DISK = ("unshare", "-m" if os.getuid() == 0 else "-Urm", "sh", "-c")
MOUNT = 'mount -t tmpfs -o size=1m none "$0" && exec "$@"'

AFTERWARDS = ["no partial line: True", "all there: True, more than one: True"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "j.jsonl"


def entries_in(path: Path) -> list[JournalEntry]:
    journal = FileJournal(path)
    journal.close()
    return list(journal.entries())


def test_a_file_that_may_not_grow_keeps_what_it_has(path: Path) -> None:
    sentence, *rest = told_by(write_with_a_limit, path)
    assert sentence == f"The journal {path} cannot be written: File too large. Free space or fix it."
    assert rest == AFTERWARDS


@pytest.mark.thorough
def test_a_full_disk_leaves_no_partial_line_and_the_journal_goes_on_when_there_is_room(path: Path) -> None:
    try:
        subprocess.run([*TINY_DISK, MOUNT, str(path.parent), "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        missing(f"this machine does not let us mount a small disk ({error})")
    tiny = [*TINY_DISK, MOUNT, str(path.parent), *command(fill, path)]
    sentence, *rest = subprocess.run(tiny, check=True, capture_output=True, text=True).stdout.splitlines()
    assert sentence == f"The journal {path} cannot be written: No space left on device. Free space or fix it."
    assert rest == AFTERWARDS


class Disk:
    """Stands between the journal and the kernel, and fails when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._write, self._truncate = os.write, os.ftruncate
        self.room: int | None = None
        self.may_truncate = True
        self.most_at_once = 1 << 30
        monkeypatch.setattr(os, "write", self._write_some)
        monkeypatch.setattr(os, "ftruncate", self._truncate_maybe)

    def _write_some(self, fd: int, content: bytes) -> int:
        if self.room == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        wanted = min(len(content), self.most_at_once, len(content) if self.room is None else self.room)
        if self.room is not None:
            self.room -= wanted
        return self._write(fd, content[:wanted])

    def _truncate_maybe(self, fd: int, size: int) -> None:
        if not self.may_truncate:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._truncate(fd, size)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def test_a_kernel_that_takes_few_bytes_at_a_time_gets_them_all(path: Path, disk: Disk) -> None:
    disk.most_at_once = 7
    journal = FileJournal(path)
    for entry in SAMPLES:
        journal.append(entry)
    journal.close()
    assert entries_in(path) == SAMPLES


def test_an_entry_that_did_not_fit_at_any_byte_is_as_if_it_had_never_been(path: Path, disk: Disk) -> None:
    journal = FileJournal(path)
    journal.append(OPENED)
    for room in range(len(dump_entry(SAID))):
        disk.room = room
        with pytest.raises(JournalUnwritable, match="No space left on device"):
            journal.append(SAID)
        assert path.read_bytes() == dump_entry(OPENED)
        assert list(journal.entries()) == [OPENED]
    disk.room = None
    journal.append(SAID)
    journal.close()
    assert entries_in(path) == [OPENED, SAID]


def test_a_partial_line_that_could_not_be_cut_off_is_never_written_behind(path: Path, disk: Disk) -> None:
    """Otherwise it would become a damaged line in the middle, and the session unreadable."""
    journal = FileJournal(path)
    journal.append(OPENED)
    disk.room, disk.may_truncate = 10, False
    with pytest.raises(JournalUnwritable):
        journal.append(SAID)
    disk.room = None
    with pytest.raises(JournalUnwritable):
        journal.append(SAID)
    assert path.read_bytes() == dump_entry(OPENED) + dump_entry(SAID)[:10]
    disk.may_truncate = True
    journal.append(SAID)
    journal.close()
    assert entries_in(path) == [OPENED, SAID]


def test_a_torn_line_that_cannot_be_cut_off_is_told_when_opening(path: Path, disk: Disk) -> None:
    """Without losing the lock to an object that nobody has."""
    path.write_bytes(dump_entry(OPENED) + dump_entry(SAID)[:10])
    disk.may_truncate = False
    with pytest.raises(JournalUnwritable, match=r"cannot be opened: Input/output error"):
        FileJournal(path)
    disk.may_truncate = True
    assert entries_in(path) == [OPENED]
