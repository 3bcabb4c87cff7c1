"""Reading files below the start directory, and nothing else."""

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from hummingbird.core.errors import CommandFailed
from hummingbird.core.shell.values import READ_LINE_CHARS, READ_LINES
from hummingbird.core.tool_spec import ToolEffect
from hummingbird.sandboxes.host.safe_path import SafeFolder
from hummingbird.sandboxes.host.workspace import Workspace
from tests.sandboxes.host.hosting import called, written


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (tmp_path / "secret").write_text("TOP SECRET\n")
    return folder


async def read(root: Path, path: str, **arguments: Any) -> str:
    return (await called(Workspace(root).tools[0], path=path, **arguments))[1]


async def test_a_file_is_read_with_the_numbers_of_its_lines(root: Path) -> None:
    (root / "a.txt").write_text("one\ntwo\nthree\n")
    assert await read(root, "a.txt") == "[a.txt, all 3 lines.]\n     1\tone\n     2\ttwo\n     3\tthree"
    assert await read(root, str(root / "a.txt"), offset=2, limit=1) == (
        "[a.txt, lines 2 to 2 of 3. Go on with offset 3.]\n     2\ttwo"
    )
    assert await read(root, "a.txt", offset=9) == "[a.txt has 3 lines, none from 9 on.]"


async def test_long_files_and_long_lines_are_cut_and_say_so(root: Path) -> None:
    (root / "long").write_text("x\n" * 50_000)
    text = await read(root, "long")
    assert text.count("\n") == READ_LINES
    assert f"Go on with offset {READ_LINES + 1}." in text
    (root / "wide").write_text("y" * 1_000_000)
    text = await read(root, "wide")
    assert len(text) < READ_LINE_CHARS + 200
    assert f"{1_000_000 - READ_LINE_CHARS} more characters" in text


async def test_a_read_weighs_no_more_than_it_may(root: Path) -> None:
    (root / "heavy").write_text(("z" * 1_900 + "\n") * 2_000)
    text = await read(root, "heavy")
    assert len(text) < 300_000
    assert "Go on with offset" in text


async def test_what_is_no_text_is_named_or_replaced(root: Path) -> None:
    (root / "binary").write_bytes(b"\x7fELF\0\0")
    assert "6 bytes that are not text" in await read(root, "binary")
    (root / "latin").write_bytes(b"gr\xfc\xdfe\r\n")
    text = await read(root, "latin")
    assert "gr\ufffd\ufffde" in text
    assert "not UTF-8" in text
    assert "CR LF" in text
    (root / "empty").touch()
    assert await read(root, "empty") == "[empty is empty.]"


async def test_a_folder_is_listed_without_what_git_keeps(root: Path) -> None:
    (root / "sub").mkdir()
    (root / ".git").mkdir()
    (root / "b.txt").write_text("12345")
    (root / "link").symlink_to("b.txt")
    text = await read(root, ".")
    assert text == "[., a folder with 3 names.]\nb.txt  5\nlink -> b.txt\nsub/"
    assert ".git" not in text


async def test_names_that_are_no_text_are_shown_and_can_be_read(root: Path) -> None:
    written(os.fsencode(root) + b"/bad\xff\nname", "found\n")
    assert "bad\\xff\\nname" in await read(root, ".")
    written(os.fsencode(root) + b"/bad\xff", "found\n")
    assert "found" in await read(root, "bad\\xff")


@pytest.mark.parametrize(
    "path", ["../secret", "/etc/passwd", "a/../../secret", "out", "out_folder/secret", "~/../x", "\0"]
)
async def test_there_is_no_way_out(root: Path, path: str) -> None:
    (root / "a").mkdir()
    (root / "out").symlink_to(root.parent / "secret")
    (root / "out_folder").symlink_to("..")
    with pytest.raises(CommandFailed) as refused:
        await read(root, path)
    assert "SECRET" not in str(refused.value)


async def test_a_link_within_the_folder_is_followed(root: Path) -> None:
    (root / "real").mkdir()
    (root / "real" / "a").write_text("here\n")
    (root / "link").symlink_to(root / "real")
    assert "here" in await read(root, "link/a")


@pytest.mark.parametrize("path", [".git/config", "sub/.git", ".GIT/config", "sneaky/config"])
async def test_what_git_keeps_is_not_read(root: Path, path: str) -> None:
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("[core]\n")
    (root / "sneaky").symlink_to(".git")
    with pytest.raises(CommandFailed, match="belongs to git"):
        await read(root, path)


async def test_what_the_agent_keeps_is_not_read_by_any_name(root: Path) -> None:
    (root / "state").mkdir()
    (root / "state" / "journal").write_text("x")
    (root / "alias").symlink_to("state")
    workspace = Workspace(root, forbidden=[root / "state"])
    for path in ("state", "state/journal", "alias/journal", "./x/../state/journal"):
        with pytest.raises(CommandFailed, match="Hummingbird itself"):
            await called(workspace.tools[0], path=path)


async def test_what_waits_for_ever_is_not_opened(root: Path) -> None:
    os.mkfifo(root / "fifo")
    (root / "null").symlink_to("/dev/zero")
    async with asyncio.timeout(60):
        with pytest.raises(CommandFailed, match="a FIFO"):
            await read(root, "fifo")
        with pytest.raises(CommandFailed, match="not below"):
            await read(root, "null")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a device")
async def test_devices_are_left_alone(root: Path) -> None:
    os.mknod(root / "zero", 0o666 | 0o020000, os.makedev(1, 5))
    with pytest.raises(CommandFailed, match="a device"):
        await read(root, "zero")


async def test_a_missing_file_says_what_to_do(root: Path) -> None:
    with pytest.raises(CommandFailed, match=r"There is no nowhere/x\. Look for it with file_search"):
        await read(root, "nowhere/x")


async def test_a_link_that_comes_after_the_judgement_is_not_followed(root: Path) -> None:
    """Between resolving and opening, somebody puts a link in the place of a folder."""
    (root / "a").mkdir()
    (root / "a" / "secret").write_text("harmless\n")
    below = SafeFolder(root)
    spot = below.resolve("a/secret")
    (root / "a").rename(root / "b")
    (root / "a").symlink_to(root.parent)
    with pytest.raises(OSError, match=r".") as refused, below.open_file(spot):
        pass
    assert refused.value.errno in (20, 40)


async def test_swapping_links_all_the_time_leaks_nothing(root: Path) -> None:
    (root / "inside").mkdir()
    (root / "inside" / "secret").write_text("harmless\n")
    (root / "spot").symlink_to("inside")
    over = threading.Event()

    def swap() -> None:
        for turn in range(1_000_000):
            if over.is_set():
                return
            draft = root / f"draft{turn % 7}"
            draft.symlink_to(".." if turn % 2 else "inside")
            draft.rename(root / "spot")

    swapping = threading.Thread(target=swap)
    swapping.start()
    workspace, seen = Workspace(root), {"harmless": 0, "refused": 0}
    try:
        for _ in range(1_500):
            try:
                text = workspace.read("spot/secret", 1, None)
                assert "SECRET" not in text
                seen["harmless"] += 1
            except CommandFailed:
                seen["refused"] += 1
    finally:
        over.set()
        swapping.join()
    assert all(seen.values()), seen


def test_reading_and_searching_only_read_and_editing_writes(root: Path) -> None:
    specs = [tool.spec for tool in Workspace(root).tools]
    assert [spec.name for spec in specs] == ["file_read", "file_search", "file_edit"]
    assert [set(spec.effects) for spec in specs] == [{ToolEffect.READ}, {ToolEffect.READ}, {ToolEffect.WRITE}]
    assert {spec.toolset for spec in specs} == {"workspace"}
