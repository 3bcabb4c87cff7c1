"""Programs of this machine: their words, their time, and that none is left behind."""

import asyncio
import os
from pathlib import Path

import pytest

from hummingbird.core.errors import SandboxBroken
from hummingbird.sandboxes.local_process import run_program, stream_program

ENVIRONMENT = {"PATH": os.environ["PATH"]}


def _shell(text: str) -> list[str]:
    return ["sh", "-c", text]


async def test_output_words_and_exit_code_are_kept_apart() -> None:
    done = await run_program(_shell("echo out; echo one >&2; echo two >&2; exit 7"), ENVIRONMENT, 30)
    assert (done.code, done.out, done.error_summary) == (7, b"out\n", "one two")


async def test_a_program_that_is_not_there_or_does_not_end_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(SandboxBroken, match="Is it still installed"):
        await run_program([str(tmp_path / "none")], ENVIRONMENT, 30)
    with pytest.raises(SandboxBroken, match=r"`sleep 600` did not end within 0\.05 s"):
        await run_program(["sleep", "600"], ENVIRONMENT, 0.05)


async def test_every_line_is_told_as_it_comes_also_the_last_without_an_end_and_those_that_overwrite_each_other() -> (
    None
):
    lines: list[str] = []
    done = await stream_program(
        _shell(r"printf 'one\n10%%\r20%%\r\n'; printf 'two\nthree' >&2"), ENVIRONMENT, lines.append, 30
    )
    assert (done.code, lines) == (0, ["one", "10%", "20%", "two", "three"])


async def test_the_words_of_a_failure_are_its_complaints_and_not_what_was_said_after_them() -> None:
    text = "echo 'I: getting packages'; echo 'E: no such package'; echo 'I: removing what was made'; exit 25"
    assert (await stream_program(_shell(text), ENVIRONMENT, lambda _: None, 30)).error_summary == "E: no such package"
    assert (
        await stream_program(_shell("echo a; echo b; exit 1"), ENVIRONMENT, lambda _: None, 30)
    ).error_summary == "a b"


async def test_a_program_that_falls_silent_is_ended_with_its_children(tmp_path: Path) -> None:
    with pytest.raises(SandboxBroken, match="wrote nothing"):
        await stream_program(_shell(f"sleep 600 & echo $! > {tmp_path}/child; wait"), ENVIRONMENT, lambda _: None, 2.0)
    await _has_ended(int((tmp_path / "child").read_text()))


async def test_a_program_whose_follower_is_cancelled_is_ended_with_its_children() -> None:
    lines: asyncio.Queue[str] = asyncio.Queue()
    following = asyncio.create_task(
        stream_program(_shell("sleep 600 & echo $!; wait"), ENVIRONMENT, lines.put_nowait, 60)
    )
    child = int(await lines.get())
    following.cancel()
    with pytest.raises(asyncio.CancelledError):
        await following
    await _has_ended(child)


async def _has_ended(pid: int) -> None:
    """Returns once it is dead; whoever collects the dead of this machine may not have been round yet."""
    while _state(pid) not in ("", "Z"):  # noqa: ASYNC110 - nothing tells of the end of another's child
        await asyncio.sleep(0.01)


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""
