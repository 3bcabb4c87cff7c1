"""Searching files below the start directory, whatever the pattern makes of it."""

import asyncio
import gc
import os
import signal
import subprocess
import threading
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hummingbird.core.errors import ArgumentsInvalid, CommandFailed
from hummingbird.core.shell.values import SEARCH_JUDGED, SEARCH_MATCHES
from hummingbird.sandboxes.host.safe_path import SafeFolder
from hummingbird.sandboxes.host.workspace import FileSearchTool, Workspace
from tests.sandboxes.host.hosting import ENVIRONMENT, called, processes_with, seen_soon, started, started_with, written

EVIL = r"(a+)+$"


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


async def search(root: Path, **arguments: Any) -> list[str]:
    workspace = Workspace(root, forbidden=[root / "state"], environment=ENVIRONMENT)
    return (await called(workspace.tools[1], **arguments))[1].split("\n")


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", root, *arguments], check=True, capture_output=True)


async def test_lines_are_found_by_pattern_or_as_they_are_written(tmp_path: Path) -> None:
    write(tmp_path, a_py="x = 1\nprint(x)\n", sub__b_py="print(y)\n", c_txt="print\n")
    assert await search(tmp_path, pattern=r"print\(.\)") == [
        "[2 matches in 3 files.]",
        "a.py:2: print(x)",
        "sub/b.py:1: print(y)",
    ]
    assert await search(tmp_path, pattern="print(", literal=True, glob="*.py", path="sub") == [
        "[1 matches in 1 files.]",
        "sub/b.py:1: print(y)",
    ]
    assert await search(tmp_path, pattern="(?i)PRINT", path="c.txt") == ["[1 matches in 1 files.]", "c.txt:1: print"]
    assert await search(tmp_path, glob="s*/**/*.py") == ["[1 matches in 1 files.]", "sub/b.py"]
    assert await search(tmp_path, pattern="nowhere") == ["[0 matches in 3 files.]"]


async def test_what_git_ignores_is_not_searched_unless_it_is_named(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    write(tmp_path, _gitignore="build/\n*.log\n", a_py="word\n", build__b_py="word\n", c_log="word\n")
    (tmp_path / ".git" / "word").write_text("word\n")
    assert (await search(tmp_path, pattern="word"))[1:] == ["a.py:1: word"]
    assert (await search(tmp_path, pattern="word", path="build"))[1:] == ["build/b.py:1: word"]


async def test_a_repository_cannot_make_the_search_run_a_program(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    write(tmp_path, a_py="word\n", hook_sh="#!/bin/sh\ntouch ran\n")
    (tmp_path / "hook.sh").chmod(0o755)
    git(tmp_path, "config", "core.fsmonitor", str(tmp_path / "hook.sh"))
    (tmp_path / "re.py").write_text("open('imported', 'w')\n")
    assert "a.py:1: word" in await search(tmp_path, pattern="word")
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "imported").exists()


@pytest.mark.thorough
async def test_what_is_outside_forbidden_or_no_file_is_not_searched(tmp_path: Path) -> None:
    root = tmp_path / "work"
    write(root, a="word\n", state__journal="word\n")
    (tmp_path / "secret").write_text("word\n")
    (root / "link").symlink_to(tmp_path / "secret")
    (root / "folder").symlink_to(tmp_path)
    os.mkfifo(root / "fifo")
    (root / "binary").write_bytes(b"word\0word\n")
    found = await search(root, pattern="word")
    assert found[1:] == ["a:1: word"]
    assert "files are binary, too large or not readable" in found[0]
    with pytest.raises(CommandFailed, match="not below"):
        await search(root, pattern="word", path="..")
    with pytest.raises(CommandFailed, match="no nowhere"):
        await search(root, pattern="word", path="nowhere")


@pytest.mark.thorough
async def test_a_pattern_that_takes_for_ever_is_stopped_and_what_was_found_is_told(tmp_path: Path) -> None:
    write(tmp_path, a="aaa\n", b="a" * 5_000 + "b\n")
    search = FileSearchTool(
        SafeFolder(tmp_path), (), ENVIRONMENT, time_s=2.0
    )  # a busy machine takes half a second to start it
    async with asyncio.timeout(60):
        said = (await called(search, pattern=EVIL))[1].split("\n")
    assert said[0].startswith("[The search was stopped after 2 s; 1 matches until then.")
    assert said[1] == "a:1: aaa"
    assert await seen_soon(lambda: not started_with("search_program", os.getpid()))


async def test_an_interrupted_search_is_gone_at_once(tmp_path: Path) -> None:
    write(tmp_path, b="a" * 5_000 + "b\n")
    task = asyncio.ensure_future(called(Workspace(tmp_path).tools[1], pattern=EVIL))
    assert await seen_soon(lambda: bool(started_with("search_program", os.getpid())))
    task.cancel()
    async with asyncio.timeout(60):
        with pytest.raises(asyncio.CancelledError):
            await task
    assert not started_with("search_program", os.getpid())


def test_a_search_interrupted_before_a_thread_was_free_leaves_no_pipe_open(tmp_path: Path) -> None:
    free = threading.Event()

    async def interrupted() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        busy = asyncio.ensure_future(asyncio.to_thread(free.wait))
        task = asyncio.ensure_future(called(Workspace(tmp_path).tools[1], pattern="x"))
        assert await seen_soon(lambda: bool(started_with("search_program", os.getpid())))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        free.set()
        await busy

    gc.collect()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asyncio.run(interrupted())
        gc.collect()
    assert [str(each.message) for each in caught] == []


@pytest.mark.thorough
async def test_a_search_does_not_outlive_us(tmp_path: Path) -> None:
    write(tmp_path, b="a" * 5_000 + "b\n")
    program = (
        "import asyncio, sys; from pathlib import Path; from hummingbird.sandboxes.host.workspace import Workspace\n"
        "from hummingbird.core.protocols.tools import ToolContext\n"
        "tool = Workspace(Path(sys.argv[1])).tools[1]\n"
        f"asyncio.run(tool({{'pattern': {EVIL!r}}}, ToolContext('s', 'c')))"
    )
    ours = started(program, tmp_path)
    try:
        assert await seen_soon(lambda: bool(started_with("search_program", ours.pid)))
        searching = started_with("search_program", ours.pid)
    finally:
        ours.send_signal(signal.SIGKILL)
        ours.wait()
    assert searching
    assert await seen_soon(lambda: not set(searching) & set(processes_with("search_program")), 1)


@pytest.mark.thorough
@pytest.mark.parametrize("pattern", ["(", "a{99999999999}", "(?P<x>", "*"])
async def test_a_pattern_that_is_none_says_so(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(CommandFailed, match=r"The pattern is (not a regular expression|too large)"):
        await search(tmp_path, pattern=pattern)
    with pytest.raises(ArgumentsInvalid, match="Give a pattern"):
        await search(tmp_path)


@pytest.mark.thorough
async def test_ten_thousand_files_are_searched_and_the_answer_is_bounded(tmp_path: Path) -> None:
    for folder in range(100):
        (tmp_path / f"f{folder}").mkdir()
        for number in range(100):
            (tmp_path / f"f{folder}" / f"{number}.txt").write_text(f"some text\nneedle {folder * 100 + number}\n")
    assert (await search(tmp_path, pattern="needle 9876$"))[1:] == ["f98/76.txt:2: needle 9876"]
    many = await search(tmp_path, pattern="needle")
    assert len(many) == SEARCH_MATCHES + 1
    assert "there are more" in many[0]


@pytest.mark.thorough
async def test_what_may_not_be_shown_is_judged_once_and_takes_nothing_from_the_rest(tmp_path: Path) -> None:
    """Neither do its lines count as matches, nor is it opened."""
    for number in range(SEARCH_JUDGED + 100):
        write(tmp_path, **{f"a__{number}_txt": "needle\n"})
    write(tmp_path, b_txt="needle\n")
    judged: list[str] = []

    def showing(arguments: Mapping[str, Any], start: str) -> Callable[[str], bool]:
        assert (arguments, start) == ({"pattern": "needle"}, ".")

        def shows(path: str) -> bool:
            judged.append(path)
            return not path.startswith("a/")

        return shows

    tool = FileSearchTool(SafeFolder(tmp_path), (), ENVIRONMENT, showing=showing)
    said = (await called(tool, pattern="needle"))[1].split("\n")
    assert said[0].startswith(f"[1 matches in 1 files. {SEARCH_JUDGED + 100} files are left out because of rules")
    assert said[1:] == ["b.txt:1: needle"]
    assert len(judged) == len(set(judged)) == SEARCH_JUDGED + 102


@pytest.mark.thorough
async def test_nothing_is_searched_where_the_start_itself_may_not_be_read(tmp_path: Path) -> None:
    write(tmp_path, a__b_txt="needle\n")
    tool = FileSearchTool(SafeFolder(tmp_path), (), ENVIRONMENT, showing=lambda _, start: lambda path: path != "a")
    with pytest.raises(CommandFailed, match="Rules do not let a be read"):
        await called(tool, pattern="needle", path="a")
    assert "needle" in (await called(tool, pattern="needle"))[1]


@pytest.mark.thorough
async def test_lines_without_end_and_bytes_that_are_no_text_stay_small(tmp_path: Path) -> None:
    (tmp_path / "min.js").write_text("x" * 1_000_000 + "needle" + "y" * 1_000_000)
    (tmp_path / "latin").write_bytes(b"gr\xfc\xdfe needle\x1b[31m\n")
    written(os.fsencode(tmp_path) + b"/bad\xff", "needle\n")
    found = await search(tmp_path, pattern="needle")
    assert "bad\\xff:1: needle" in found
    assert "latin:1: gr\ufffd\ufffde needle\ufffd[31m" in found
    assert all(len(line) < 400 for line in found)
    assert any(line.startswith("min.js:1: …") and "needle" in line for line in found)
