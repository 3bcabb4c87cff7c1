"""Changing files with a diff and undo: whole or not at all, and nobody's work written over unseen."""

import os
import stat
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hummingbird.core.errors import CommandFailed, UsageError
from hummingbird.core.shell.values import EDIT_BYTES, UNDO_CHANGES
from hummingbird.sandboxes.host.file_changes import read_content, write_content
from hummingbird.sandboxes.host.safe_path import SafeFolder
from hummingbird.sandboxes.host.workspace import Workspace
from tests.sandboxes.host.hosting import called


class Desk:
    def __init__(self, root: Path) -> None:
        self.workspace = Workspace(root)

    async def read(self, path: str) -> str:
        return (await called(self.workspace.tools[0], path=path))[1]

    async def edit(self, path: str, **arguments: Any) -> str:
        return (await called(self.workspace.tools[2], path=path, **arguments))[1]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def drafts(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob(".hummingbird-*")]


async def test_an_exact_text_is_replaced_and_the_diff_returned(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("".join(f"line {n}\n" for n in range(1, 21)))
    (tmp_path / "a.py").chmod(0o750)
    assert await desk.edit("a.py", old="line 10\n", new="line ten\n") == (
        "--- a.py\n+++ a.py\n@@ -7,7 +7,7 @@\n line 7\n line 8\n line 9\n-line 10\n+line ten\n"
        " line 11\n line 12\n line 13\n"
    )
    assert "line ten\n" in (tmp_path / "a.py").read_text()
    assert stat.S_IMODE((tmp_path / "a.py").stat().st_mode) == 0o750
    assert desk.workspace.list_changed_files() == ("a.py",)
    assert not drafts(tmp_path)


async def test_a_diff_is_one_that_patch_takes(desk: Desk, tmp_path: Path) -> None:
    before = "".join(f"{n}\n" for n in range(300))
    (tmp_path / "f").write_text(before)
    await desk.read("f")
    after = before.replace("17\n", "seventeen\n", 1).replace("\n250\n", "\n").replace("99\n", "99\nnew\n", 1)
    text = await desk.edit("f", new=after)
    rebuilt = patched(before.splitlines(), text.splitlines()[2:])
    assert rebuilt == after.splitlines()


def patched(lines: list[str], hunks: list[str]) -> list[str]:
    """What a unified diff makes of the lines, strictly."""
    result: list[str] = []
    at = 0
    for line in hunks:
        if line.startswith("@@"):
            begins = int(line.split()[1][1:].split(",")[0]) - 1
            result += lines[at:begins]
            at = begins
        elif line.startswith("+"):
            result.append(line[1:])
        else:
            assert lines[at] == line[1:]
            at += 1
            if line.startswith(" "):
                result.append(line[1:])
    return result + lines[at:]


async def test_a_file_is_created_with_its_folders_and_undone_with_them(desk: Desk, tmp_path: Path) -> None:
    text = await desk.edit("new/deep/a.txt", new="hello\n")
    assert text.startswith("--- /dev/null\n+++ new/deep/a.txt\n")
    assert (tmp_path / "new/deep/a.txt").read_text() == "hello\n"
    assert desk.workspace.undo() == "new/deep/a.txt was new and is gone again."
    assert not (tmp_path / "new").exists()
    assert desk.workspace.list_changed_files() == ()


async def test_an_empty_old_text_means_a_new_file_and_never_the_whole_of_one(desk: Desk, tmp_path: Path) -> None:
    assert "+made\n" in await desk.edit("a.txt", old="", new="made\n")
    with pytest.raises(CommandFailed, match="exists, and `old` is empty"):
        await desk.edit("a.txt", old="", new="other\n")
    assert (tmp_path / "a.txt").read_text() == "made\n"


async def test_undo_takes_back_one_change_after_the_other(desk: Desk, tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"one\r\n\xff")
    file.chmod(0o604)
    await desk.edit("a", old="one", new="two")
    await desk.edit("a", old="two", new="three")
    assert file.read_bytes() == b"three\r\n\xff"
    desk.workspace.undo()
    assert file.read_bytes() == b"two\r\n\xff"
    assert desk.workspace.list_changed_files() == ("a",)
    assert desk.workspace.undo() == "a is again as it was before the last change."
    assert file.read_bytes() == b"one\r\n\xff"
    assert stat.S_IMODE(file.stat().st_mode) == 0o604
    assert desk.workspace.list_changed_files() == ()
    with pytest.raises(UsageError, match="no file change to undo"):
        desk.workspace.undo()


async def test_undo_leaves_a_file_alone_that_somebody_changed_since(desk: Desk, tmp_path: Path) -> None:
    await desk.edit("a", new="ours\n")
    await desk.edit("b", new="ours\n")
    (tmp_path / "b").write_text("somebody's\n")
    with pytest.raises(UsageError, match="b has changed since: put it right by hand"):
        desk.workspace.undo()
    assert (tmp_path / "b").read_text() == "somebody's\n"
    assert desk.workspace.undo() == "a was new and is gone again."
    (tmp_path / "b").write_text("ours\n")
    assert desk.workspace.undo() == "b was new and is gone again."


async def test_only_so_many_changes_are_remembered(desk: Desk, tmp_path: Path) -> None:
    for turn in range(UNDO_CHANGES + 5):
        await desk.edit("a", new=f"{turn}\n")
    for _ in range(UNDO_CHANGES):
        desk.workspace.undo()
    assert (tmp_path / "a").read_text() == "4\n"
    with pytest.raises(UsageError):
        desk.workspace.undo()


async def test_a_file_that_changed_since_it_was_read_is_not_edited(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\ntwo\n")
    await desk.read("a")
    (tmp_path / "a").write_text("one\ntwo\nthree\n")
    for arguments in ({"old": "one", "new": "1"}, {"new": "all\n"}):
        with pytest.raises(CommandFailed, match=r"changed on disk after you last read it. Read it again"):
            await desk.edit("a", **arguments)
    assert (tmp_path / "a").read_text() == "one\ntwo\nthree\n"
    await desk.read("a")
    await desk.edit("a", old="one", new="1")
    os.utime(tmp_path / "a")  # touched, not changed
    await desk.edit("a", old="two", new="2")
    assert (tmp_path / "a").read_text() == "1\n2\nthree\n"


async def test_a_file_that_was_never_read_is_not_written_over(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("precious\n")
    with pytest.raises(CommandFailed, match="Read it first"):
        await desk.edit("a", new="x\n")
    assert (tmp_path / "a").read_text() == "precious\n"


@pytest.mark.parametrize(
    ("old", "sentence"),
    [("absent", "not in a, letter by letter"), ("x", "3 times in a"), ("y\n", "would stay as it is")],
)
async def test_an_edit_that_means_nothing_says_so(desk: Desk, tmp_path: Path, old: str, sentence: str) -> None:
    (tmp_path / "a").write_text("x x x\ny\n")
    with pytest.raises(CommandFailed, match=sentence):
        await desk.edit("a", old=old, new="y\n")
    assert (tmp_path / "a").read_text() == "x x x\ny\n"


async def test_lines_keep_their_ends(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\r\ntwo\r\n")
    await desk.edit("a", old="one\ntwo\n", new="1\n2\n")
    assert (tmp_path / "a").read_bytes() == b"1\r\n2\r\n"


async def test_a_link_stays_a_link_and_leads_nowhere_else(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "real").write_text("a\n")
    (tmp_path / "link").symlink_to("real")
    await desk.edit("link", old="a", new="b")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "b\n"
    (tmp_path / "dangling").symlink_to("/nonexistent/x")
    with pytest.raises(CommandFailed, match="not below"):
        await desk.edit("dangling", new="x")


@pytest.mark.parametrize("path", ["../x", ".git/hooks/pre-commit", "folder", "fifo", "."])
async def test_what_is_no_file_of_the_workspace_is_left_alone(desk: Desk, tmp_path: Path, path: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(CommandFailed):
        await desk.edit(path, new="x")
    assert not (tmp_path / ".git" / "hooks").exists()
    assert stat.S_ISFIFO((tmp_path / "fifo").stat().st_mode)


async def test_too_much_is_refused_before_anything_is_written(desk: Desk, tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="would be larger"):
        await desk.edit("a", new="x" * (EDIT_BYTES + 1))
    (tmp_path / "large").write_bytes(b"x" * (EDIT_BYTES + 1))
    with pytest.raises(CommandFailed, match="is larger than"):
        await desk.edit("large", old="x", new="y")
    assert not (tmp_path / "a").exists()


def test_somebody_who_writes_at_the_same_moment_is_not_written_over(tmp_path: Path) -> None:
    below = SafeFolder(tmp_path)
    (tmp_path / "a").write_text("old\n")
    spot = below.resolve("a")
    before = read_content(below, spot)
    (tmp_path / "a").write_text("theirs\n")
    with pytest.raises(CommandFailed, match="changed by somebody else just now"):
        write_content(below, spot, b"ours\n", before)
    with pytest.raises(CommandFailed, match="File exists"):
        write_content(below, spot, b"ours\n", None)
    assert (tmp_path / "a").read_text() == "theirs\n"
    assert not drafts(tmp_path)


@pytest.mark.thorough
def test_whoever_reads_sees_the_old_or_the_new_file_and_no_half(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    sizes, over = {400_000}, threading.Event()
    workspace.edit("a", None, "0" * 400_000)

    def look() -> None:
        while not over.is_set():
            content = (tmp_path / "a").read_bytes()
            sizes.add(len(content) if len(set(content)) == 1 else -1)

    looking = threading.Thread(target=look)
    looking.start()
    for turn in range(1, 25):
        workspace.edit("a", None, str(turn % 10) * 400_000)
    over.set()
    looking.join()
    assert sizes == {400_000}


def test_a_folder_that_may_not_be_written_says_so() -> None:
    """As somebody who is not root, for root may write anywhere."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "ro").mkdir()
        (folder / "ro" / "a").write_text("x\n")
        (folder / "ro").chmod(0o555)
        folder.chmod(0o755)
        ourselves = os.geteuid()
        os.seteuid(ourselves or 65534)
        try:
            with pytest.raises(CommandFailed, match="was not changed: Permission denied"):
                Workspace(folder).edit("ro/a", "x", "y")
        finally:
            os.seteuid(ourselves)
            (folder / "ro").chmod(0o755)
        assert (folder / "ro" / "a").read_text() == "x\n"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], check=False, capture_output=True
    ).returncode:
        pytest.skip("nothing can be mounted here")
    yield disk
    subprocess.run(["umount", disk], check=True)


async def test_a_full_disk_loses_nothing(small_disk: Path) -> None:
    desk = Desk(small_disk)
    await desk.edit("a", new="precious\n")
    with pytest.raises(CommandFailed, match="a was not changed: No space left on device"):
        await desk.edit("a", new="x" * 200_000)
    with pytest.raises(CommandFailed, match="was not changed: No space left on device"):
        await desk.edit("b/c", new="x" * 200_000)
    assert (small_disk / "a").read_text() == "precious\n"
    assert os.listdir(small_disk) == ["a"]  # noqa: PTH208 - a disk in memory
    assert desk.workspace.list_changed_files() == ("a",)


def test_a_read_only_disk_says_so(small_disk: Path) -> None:
    (small_disk / "a").write_text("x\n")
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with pytest.raises(CommandFailed, match="a was not changed: Read-only file system"):
        Workspace(small_disk).edit("a", "x", "y")


@pytest.mark.thorough
async def test_two_long_files_are_compared_at_all(desk: Desk) -> None:
    """Line by line it would take longer than any test may."""
    await desk.edit("a", new="".join(f"{n}\n" for n in range(200_000)))
    text = await desk.edit("a", new="".join(f"{n * 3}\n" for n in range(200_000)))
    assert len(text) < 20_000
    assert "more lines of the diff" in text


def test_files_of_others_keep_their_owner(tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can give files away")
    (tmp_path / "a").write_text("x\n")
    os.chown(tmp_path / "a", 12345, 23456)
    Workspace(tmp_path).edit("a", "x", "y")
    found = (tmp_path / "a").stat()
    assert (found.st_uid, found.st_gid) == (12345, 23456)
