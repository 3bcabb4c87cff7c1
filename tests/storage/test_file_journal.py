"""A journal in a file: opening, locking, permissions, and files that cannot be read."""

import os
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from hummingbird.core.errors import JournalDamaged, JournalUnwritable, SessionUnreadable
from hummingbird.core.journal import JournalEntry, SessionOpened, UserSaid, dump_entry
from hummingbird.core.limits import JOURNAL_FORMAT
from hummingbird.storage.journals import FileJournal
from tests.storage.other_process import hold, open_as_nobody, try_to_open
from tests.storage.samples import OPENED, SAID, SAMPLES, start, told_by


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions" / "deep" / "j.jsonl"


def write(path: Path, *lines: bytes) -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(lines))
    return path.read_bytes()


def entries_in(path: Path) -> list[JournalEntry]:
    journal = FileJournal(path)
    journal.close()
    return list(journal.entries())


async def test_what_was_appended_is_there_when_the_file_is_opened_again(path: Path) -> None:
    for number, entry in enumerate(SAMPLES):
        journal = FileJournal(path)
        assert list(journal.entries()) == SAMPLES[:number]
        journal.append(entry)
        await journal.commit()
        journal.close()
    assert entries_in(path) == SAMPLES


def test_an_entry_is_one_line_of_json_in_the_file(path: Path) -> None:
    journal = FileJournal(path)
    for entry in SAMPLES:
        journal.append(entry)
    assert path.read_bytes() == b"".join(map(dump_entry, SAMPLES))
    journal.close()


def test_only_its_owner_may_read_a_journal(path: Path) -> None:
    """It holds whatever the tools saw."""
    before = os.umask(0)
    try:
        FileJournal(path).close()
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_lock_is_not_inherited_by_programs_that_tools_start(path: Path) -> None:
    """One that outlives us would keep it."""
    journal = FileJournal(path)
    program = [sys.executable, "-c", "print('running', flush=True); input()"]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, close_fds=False) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"running\n"
        journal.close()
        assert entries_in(path) == []
        running.communicate(b"\n")


def test_a_second_process_is_told_that_the_journal_is_in_use(path: Path) -> None:
    journal = FileJournal(path)
    journal.append(OPENED)
    sentence = f"Another process is using {path}; wait for it, or use another session."
    assert told_by(try_to_open, path) == [sentence]
    journal.close()
    assert told_by(try_to_open, path) == ["opened"]


@pytest.mark.thorough
def test_this_process_is_told_that_another_one_uses_the_journal(path: Path) -> None:
    """Also when that process is killed, the lock goes with it."""
    with start(hold, path) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        with pytest.raises(JournalUnwritable, match="Another process is using"):
            FileJournal(path)
        other.kill()
        other.wait()
        assert entries_in(path) == []


def test_a_closed_journal_is_free_although_a_program_being_started_still_has_its_file(tmp_path: Path) -> None:
    """Between fork and exec a child has all our files, and with them the lock."""
    path = tmp_path / "j.jsonl"
    journal = FileJournal(path)
    held = [int(fd.name) for fd in Path("/proc/self/fd").iterdir() if _leads_to(fd, path)]
    childs = [os.dup(fd) for fd in held]
    try:
        journal.close()
        FileJournal(path).close()
    finally:
        for fd in childs:
            os.close(fd)
    assert childs


def _leads_to(fd: Path, path: Path) -> bool:
    with suppress(OSError):
        return fd.readlink() == path
    return False


def test_a_journal_that_is_in_use_is_not_touched(path: Path) -> None:
    """What looks torn may be a line that is being written."""
    journal = FileJournal(path)
    torn = write(path, dump_entry(OPENED), dump_entry(SAID)[:-5])
    with pytest.raises(JournalUnwritable):
        FileJournal(path)
    assert path.read_bytes() == torn
    journal.close()


@pytest.mark.thorough
def test_a_directory_that_is_read_only_is_told_as_such(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    locked = tmp_path / "locked"
    locked.mkdir()
    locked.chmod(0o555)
    assert told_by(open_as_nobody, locked / "j.jsonl") == [
        "The journal locked/j.jsonl cannot be opened: Permission denied."
    ]


def test_a_path_that_leads_nowhere_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path, tmp_path / "file" / "j.jsonl", tmp_path / ("x" * 300)):
        with pytest.raises(JournalUnwritable, match="cannot be opened"):
            FileJournal(path)


def test_a_file_that_was_refused_is_free_again(path: Path) -> None:
    """The lock is not kept by an object that nobody has."""
    write(path, b"not a journal\n")
    with pytest.raises(JournalDamaged):
        FileJournal(path)
    write(path, dump_entry(OPENED))
    assert entries_in(path) == [OPENED]


@pytest.mark.parametrize("damage", [b"", b"{}", b"[]", b"not json", b'{"kind":"user_said"', b"\0" * 30, b"\xff\xfe"])
@pytest.mark.parametrize("number", [1, 3])
def test_a_damaged_line_in_the_middle_is_told_with_its_number(path: Path, damage: bytes, number: int) -> None:
    """Nothing is thrown away on suspicion."""
    lines = [dump_entry(entry) for entry in SAMPLES[:5]]
    lines[number - 1] = damage + b"\n"
    before = write(path, *lines)
    with pytest.raises(JournalDamaged, match=rf"^Line {number} of the journal "):
        FileJournal(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "last", [b'{"kind":"from_the_future","x":1}\n', b"{}\n", b"[1]\n", b"7\n", b"half a line\n", b"\n"]
)
def test_a_last_line_that_was_written_whole_is_never_cut_off(path: Path, last: bytes) -> None:
    """It has its line end, so it may be what a later version wrote, or what an editor broke."""
    before = write(path, dump_entry(OPENED), last)
    with pytest.raises(JournalDamaged, match=r"^Line 2 of the journal "):
        FileJournal(path)
    assert path.read_bytes() == before


def test_a_journal_of_a_newer_format_is_told_as_such_and_left_alone(path: Path) -> None:
    newer = dump_entry(SessionOpened(session_id="s", system="", format=JOURNAL_FORMAT + 1))
    before = write(path, newer, b'{"kind":"something new"}\n', b"and a line that looks torn to us")
    with pytest.raises(SessionUnreadable, match="update Hummingbird to open it"):
        FileJournal(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content",
    [b"precious", b"precious\nnotes", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b'{"my": "settings"}', b"kind: x\n", b"%PDF\0"],
)
def test_a_file_that_is_no_journal_is_left_as_it_is(path: Path, content: bytes) -> None:
    """A wrong path must not cost anybody a file."""
    write(path, content)
    with pytest.raises((SessionUnreadable, JournalDamaged)):
        FileJournal(path)
    assert path.read_bytes() == content


def test_an_entry_that_cannot_be_encoded_leaves_the_journal_as_it_was(path: Path) -> None:
    journal = FileJournal(path)
    journal.append(OPENED)
    with pytest.raises(UnicodeEncodeError):
        journal.append(UserSaid(text="\ud83d"))
    journal.append(SAID)
    journal.close()
    assert entries_in(path) == [OPENED, SAID]


def test_a_closed_journal_takes_no_more_entries(path: Path) -> None:
    journal = FileJournal(path)
    journal.close()
    with pytest.raises(JournalUnwritable):
        journal.append(OPENED)
    assert list(journal.entries()) == []
    assert path.read_bytes() == b""
