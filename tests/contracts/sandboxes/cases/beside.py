"""Side by side: commands of one sandbox do not mix, and two sandboxes do not know of each other."""

import asyncio

import pytest

from hummingbird.core.errors import SandboxBroken
from tests.contracts.sandboxes.questions import at, content, pieces, running, said, there
from tests.contracts.sandboxes.stage import Stage


async def eight_commands_at_once_do_not_mix(stage: Stage) -> None:
    async def one(number: int) -> None:
        word = b"%d" % number * 100_000
        done = await stage.sandbox.exec(f"cat; echo {number} >&2; exit {number}", pieces(word, 7000))
        assert (done.exit_code, done.stdout, done.stderr) == (number, word, b"%d\n" % number)

    await asyncio.gather(*map(one, range(8)))


async def different_verbs_work_at_once(stage: Stage) -> None:
    whole = b"0123456789" * 200_000

    async def copied() -> bytes:
        return b"".join([chunk async for chunk in stage.sandbox.stream_exec("cat", pieces(whole, 50_000))])

    await stage.sandbox.write_file(at("read-beside"), whole)
    size, executed, read, copy = await asyncio.gather(
        stage.sandbox.stream_to_file(at("written-beside"), pieces(whole, 50_000)),
        stage.sandbox.exec("wc -c", whole),
        content(stage.sandbox, at("read-beside")),
        copied(),
    )
    assert (size, executed.stdout, read == whole, copy == whole) == (len(whole), b"2000000\n", True, True)


async def the_end_of_one_command_does_not_end_another(stage: Stage) -> None:
    """Not even when the one kills its supervisor."""
    slow = asyncio.create_task(stage.sandbox.exec("touch slow; until [ -e ready ]; do sleep 0.02; done; echo slow"))
    await there(stage.sandbox, at("slow"))
    await stage.sandbox.exec("sleep 7701 & kill -9 $PPID; sleep 7701")
    await stage.sandbox.write_file(at("ready"), b"")
    assert (await slow).stdout == b"slow\n"


async def two_writers_of_one_file_leave_one_of_their_contents(stage: Stage) -> None:
    contents = [bytes([letter]) * 3_000_000 for letter in b"ab"]
    await asyncio.gather(*(stage.sandbox.stream_to_file(at("raced"), pieces(held, 70_000)) for held in contents))
    assert await content(stage.sandbox, at("raced")) in contents


async def two_sandboxes_see_neither_files_nor_processes_of_each_other(stage: Stage) -> None:
    """Nor does the end of one matter to the other."""
    slow = asyncio.create_task(stage.sandbox.exec("until [ -e over ]; do sleep 0.02; done; echo slow"))
    async with stage.fresh() as other:
        task = asyncio.create_task(other.exec("echo theirs > /tmp/data/theirs; echo x > /tmp/x-theirs; sleep 7702"))
        await there(other, at("theirs"))
        assert await running(other, "7702")
        assert await running(stage.sandbox, "7702") == []
        seen = await said(stage.sandbox, "ls -A /tmp /tmp/data /dev/shm 2>/dev/null || true")
        assert b"theirs" not in seen
    with pytest.raises(SandboxBroken):
        await task
    await stage.sandbox.write_file(at("over"), b"")
    assert (await slow).stdout == b"slow\n"
