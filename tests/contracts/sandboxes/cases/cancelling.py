"""Cancelling any verb ends what it started inside, and the sandbox goes on."""

import asyncio
from collections.abc import Coroutine
from contextlib import aclosing
from typing import Any

import pytest

from hummingbird.core.protocols.sandbox import Chunks
from tests.contracts.sandboxes.questions import MIB, Endless, at, running, said, there
from tests.contracts.sandboxes.stage import Stage

_STUBBORN = "trap '' TERM; touch {1}; setsid sleep {0} & while :; do sleep {0}; done"


async def _cancelled(task: "asyncio.Task[Any]") -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def _begun(verb: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
    return asyncio.create_task(verb)


async def _exhaust(chunks: Chunks) -> None:
    async for _ in chunks:
        pass


async def a_cancelled_command_is_ended_with_all_it_started(stage: Stage) -> None:
    task = _begun(stage.sandbox.exec(_STUBBORN.format(7601, "begun-1")))
    await there(stage.sandbox, at("begun-1"))
    await _cancelled(task)
    assert await running(stage.sandbox, "7601") == []


async def a_command_cancelled_by_a_time_limit_of_the_caller_is_ended(stage: Stage) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await stage.sandbox.exec(_STUBBORN.format(7602, "begun-2"))
    assert await running(stage.sandbox, "7602") == []


async def a_command_cancelled_while_it_floods_us_is_ended(stage: Stage) -> None:
    task = _begun(stage.sandbox.exec("touch begun-3; yes 7603"))
    await there(stage.sandbox, at("begun-3"))
    await _cancelled(task)
    assert await running(stage.sandbox, "7603") == []


async def a_command_cancelled_while_it_is_fed_is_ended(stage: Stage) -> None:
    source = Endless(most=8 * MIB)
    task = _begun(stage.sandbox.exec("cat > /dev/null; sleep 7604", source()))
    await source.stuck.wait()
    await _cancelled(task)
    assert source.left
    assert await running(stage.sandbox, "7604") == []


async def a_cancelled_stream_ends_its_command(stage: Stage) -> None:
    task = _begun(_exhaust(stage.sandbox.stream_exec(f"echo first; {_STUBBORN.format(7605, 'begun-5')}")))
    await there(stage.sandbox, at("begun-5"))
    await _cancelled(task)
    assert await running(stage.sandbox, "7605") == []


async def a_cancelled_file_leaves_no_part_of_it(stage: Stage) -> None:
    await said(stage.sandbox, "mkdir half; echo old > half/old")
    for name in ("half/old", "half/new"):
        source = Endless(most=3 * MIB)
        task = _begun(stage.sandbox.stream_to_file(at(name), source()))
        await source.stuck.wait()
        await _cancelled(task)
        assert source.left
    assert await said(stage.sandbox, "ls -A half; cat half/old") == b"old\nold\n"


async def a_cancelled_reader_leaves_a_usable_sandbox(stage: Stage) -> None:
    await said(stage.sandbox, f"head -c {30 * MIB} /dev/zero > long-read")
    first = asyncio.Event()

    async def slowly() -> None:
        async with aclosing(stage.sandbox.read_file_iter(at("long-read"))) as reading:
            async for _ in reading:
                first.set()
                await asyncio.Event().wait()

    task = _begun(slowly())
    await first.wait()
    await _cancelled(task)
    assert len(await running(stage.sandbox, "exec(r(int(r(")) <= 2  # process 1, and what answers this question


async def a_command_cancelled_at_once_does_no_harm(stage: Stage) -> None:
    """Before it was sent, while it is sent, just after: none is left, and the next one works."""
    tasks = [_begun(stage.sandbox.exec("exec sleep 7608")) for _ in range(3)]
    for task in tasks:
        await asyncio.sleep(0)
        task.cancel()
    done = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(outcome, asyncio.CancelledError) for outcome in done), done
    assert await running(stage.sandbox, "7608") == []


async def cancelling_one_command_leaves_the_others_alone(stage: Stage) -> None:
    kept = _begun(stage.sandbox.exec("until [ -e go-on ]; do sleep 0.02; done; echo kept"))
    task = _begun(stage.sandbox.exec(_STUBBORN.format(7609, "begun-9")))
    await there(stage.sandbox, at("begun-9"))
    await _cancelled(task)
    await stage.sandbox.write_file(at("go-on"), b"")
    assert (await kept).stdout == b"kept\n"
