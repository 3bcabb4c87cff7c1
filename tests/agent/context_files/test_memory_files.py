"""MEMORY.md and USER.md on disk, which people edit and several processes write to."""

import asyncio
import errno
import fcntl
import os
import resource
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hummingbird.agent.context_files.instruction_files import PAPER_BYTES
from hummingbird.agent.context_files.memory_files import LOCK_FILE_NAME, FileMemory
from hummingbird.agent.context_files.memory_pages import MemoryKind, MemoryPage
from hummingbird.core.errors import ArgumentsInvalid, JournalUnwritable, UsageError

DAY = "2026-11-16"


def adding(text: str) -> Callable[[MemoryPage], MemoryPage]:
    return lambda page: page.add(text, DAY)


def change(memory: FileMemory, paper: MemoryKind, to: Callable[[MemoryPage], MemoryPage]) -> MemoryPage:
    return asyncio.run(memory.edit(paper, to))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "not" / "yet"


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A MEMORY.md that somebody has written something into."""
    path = tmp_path / "MEMORY.md"
    path.write_text("- old\n")
    return path


def test_what_was_kept_is_there_for_the_next_session_and_is_nobody_elses(folder: Path) -> None:
    assert FileMemory(folder).read().faults == ()
    assert not folder.exists()
    change(FileMemory(folder), MemoryKind.MEMORY, adding("otter"))
    change(FileMemory(folder), MemoryKind.USER, adding("Ada"))
    seen = FileMemory(folder).read()
    assert (seen.memory.entries, seen.user.entries) == ((f"{DAY}: otter",), (f"{DAY}: Ada",))
    assert (folder / "MEMORY.md").read_text() == f"- {DAY}: otter\n"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert {path.name for path in folder.iterdir()} == {"MEMORY.md", "USER.md", LOCK_FILE_NAME}


def test_a_project_has_a_memory_of_its_own(folder: Path) -> None:
    """Also projects whose names look alike on a disk, or want to be elsewhere."""
    memory = FileMemory(folder)
    for project in ("a/b", "a-b", "../../b", ""):
        assert memory.for_project(project).read().memory.entries == ()
        change(memory.for_project(project), MemoryKind.MEMORY, adding(f"of {project}"))
    assert [memory.for_project(p).read().memory.entries for p in ("a/b", "a-b")] == [
        (f"{DAY}: of a/b",),
        (f"{DAY}: of a-b",),
    ]
    assert len(list((folder / "projects").iterdir())) == 4
    assert memory.read().memory.entries == ()


@pytest.mark.thorough
def test_processes_that_write_at_once_lose_nothing(folder: Path) -> None:
    """Real processes, while a reader never sees half a file."""
    code = (
        "import asyncio, sys; from pathlib import Path;"
        "from hummingbird.agent.context_files.memory_files import FileMemory;"
        "from hummingbird.agent.context_files.memory_files import MemoryKind;"
        "memory = FileMemory(Path(sys.argv[1])); name = sys.argv[2];"
        "[asyncio.run(memory.edit(MemoryKind.MEMORY, lambda page: page.add(f'{name}-{n}', 'day'))) for n in range(20)]"
    )
    others = [subprocess.Popen([sys.executable, "-c", code, str(folder), str(n)]) for n in range(3)]
    sizes = [0]
    while any(other.poll() is None for other in others):
        seen = FileMemory(folder).read()
        assert seen.faults == ()
        sizes.append(len(seen.memory.entries))
        time.sleep(0.005)
    assert [other.returncode for other in others] == [0, 0, 0]
    assert sizes == sorted(sizes)
    assert set(FileMemory(folder).read().memory.entries) == {f"day: {n}-{m}" for n in range(3) for m in range(20)}


def test_what_a_person_wrote_meanwhile_is_kept(written: Path) -> None:
    """Nothing is remembered that is not in the file."""
    memory = FileMemory(written.parent)
    memory.read()
    written.write_text("# Mine\n- old\n- by hand\n")
    change(memory, MemoryKind.MEMORY, adding("new"))
    assert written.read_text() == f"# Mine\n- old\n- by hand\n- {DAY}: new\n"
    assert not list(written.parent.glob("*.bak"))


@pytest.mark.parametrize(
    ("content", "fault", "entries"),
    [
        (b"- caf\xe9\n- fine\n", "not all UTF-8", ("caf\ufffd", "fine")),
        (b"- one\njust prose\n", "Line 2 of", ("one", "just prose")),
        (b'{"json": 1}', "Line 1 of", ('{"json": 1}',)),
    ],
)
def test_a_file_that_cannot_be_read_fully_is_copied_before_it_is_written(
    written: Path, content: bytes, fault: str, entries: tuple[str, ...]
) -> None:
    """Bad input is said in a sentence, gives what can be read, and is never lost."""
    written.write_bytes(content)
    memory = FileMemory(written.parent)
    seen = memory.read()
    assert seen.memory.entries == entries
    assert len(seen.faults) == 1
    assert fault in seen.faults[0]
    change(memory, MemoryKind.MEMORY, adding("new"))
    assert written.with_name("MEMORY.md.bak").read_bytes() == content
    assert memory.read().memory.entries == (*entries, f"{DAY}: new")
    assert memory.read().faults == ()
    written.write_bytes(b"broken again\n")
    change(memory, MemoryKind.MEMORY, adding("new"))
    assert written.with_name("MEMORY.md.bak").read_bytes() == content
    assert written.with_name("MEMORY.md.2.bak").read_bytes() == b"broken again\n"


def test_a_change_that_fails_leaves_a_broken_file_as_it_is(written: Path) -> None:
    """No copy either, for nothing was written."""
    written.write_bytes(b"prose \xff\n")
    with pytest.raises(ArgumentsInvalid):
        change(FileMemory(written.parent), MemoryKind.MEMORY, lambda page: page.remove("nothing like it"))
    assert written.read_bytes() == b"prose \xff\n"
    assert not list(written.parent.glob("*.bak"))


def test_a_file_that_a_person_made_huge_is_read_from_its_beginning_and_never_written(written: Path) -> None:
    """To rewrite it would cut it off."""
    content = b"- a line of it\n" * (PAPER_BYTES // 10)
    written.write_bytes(content)
    seen = FileMemory(written.parent).read()
    assert len(seen.memory.entries) > 4000
    assert "more than 65536 bytes" in seen.faults[0]
    with pytest.raises(UsageError, match="Shorten it"):
        change(FileMemory(written.parent), MemoryKind.MEMORY, adding("new"))
    assert written.read_bytes() == content


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_no_file_is_said_and_the_other_page_still_works(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """A directory or a pipe in its place."""
    make(tmp_path / "MEMORY.md")
    memory = FileMemory(tmp_path)
    assert "MEMORY.md is not a file: move away" in memory.read().faults[0] or "directory" in memory.read().faults[0]
    with pytest.raises(UsageError, match=r"MEMORY\.md"):
        change(memory, MemoryKind.MEMORY, adding("new"))
    change(memory, MemoryKind.USER, adding("Ada"))
    assert memory.read().user.entries == (f"{DAY}: Ada",)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """People keep such files in a repository of their own."""
    kept = tmp_path / "dotfiles.md"
    kept.write_text("- old\n")
    folder = tmp_path / "memory"
    folder.mkdir()
    (folder / "MEMORY.md").symlink_to(kept)
    change(FileMemory(folder), MemoryKind.MEMORY, adding("new"))
    assert (folder / "MEMORY.md").is_symlink()
    assert kept.read_text() == f"- old\n- {DAY}: new\n"


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    memory = FileMemory(tmp_path / "file" / "memory")
    assert memory.read().memory.entries == ()
    with pytest.raises(JournalUnwritable, match="cannot be written"):
        change(memory, MemoryKind.MEMORY, adding("new"))


def test_a_full_disk_is_said_and_what_was_there_is_still_there(written: Path) -> None:
    """Nothing half-written is left behind either."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    was = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        with pytest.raises(JournalUnwritable, match=r"cannot be written \(File too large\); nothing was changed"):
            change(FileMemory(written.parent), MemoryKind.MEMORY, adding("new"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, was)
    assert written.read_text() == "- old\n"
    assert {path.name for path in written.parent.iterdir()} == {"MEMORY.md", LOCK_FILE_NAME}


@pytest.mark.parametrize("fails", ["fsync", "replace"])
def test_a_disk_that_breaks_at_any_step_leaves_the_old_file(
    written: Path, fails: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when a copy of a broken file was to be made first."""

    def broken(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    written.write_bytes(b"prose \xff\n")
    with monkeypatch.context() as patched:
        patched.setattr(os if fails == "fsync" else Path, fails, broken)
        with pytest.raises(JournalUnwritable, match="Input/output error"):
            change(FileMemory(written.parent), MemoryKind.MEMORY, adding("new"))
    assert written.read_bytes() == b"prose \xff\n"
    assert {path.name for path in written.parent.iterdir()} == {"MEMORY.md", LOCK_FILE_NAME}


def test_a_memory_that_another_process_holds_is_waited_for_but_not_for_ever(
    written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading goes on meanwhile."""
    monkeypatch.setattr("hummingbird.clients.sqlite_files.LOCK_WAIT_S", 0.05)
    memory = FileMemory(written.parent)
    with (written.parent / LOCK_FILE_NAME).open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(JournalUnwritable, match="Another process holds the memory"):
            change(memory, MemoryKind.MEMORY, adding("new"))
        assert memory.read().memory.entries == ("old",)
    change(memory, MemoryKind.MEMORY, adding("new"))
    assert written.read_text() == f"- old\n- {DAY}: new\n"
