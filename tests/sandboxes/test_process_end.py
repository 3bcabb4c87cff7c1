"""Work that is done to its end even when whoever waits for it is cancelled, again and again; the end of streams."""

import asyncio
import gc
import os
import time
import warnings
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from typing import Any

import pytest

from hummingbird.core.errors import SandboxBroken
from hummingbird.sandboxes import local_process
from hummingbird.sandboxes.bubblewrap import BubblewrapBackend
from hummingbird.sandboxes.command_sandbox import LinkEnd
from hummingbird.sandboxes.local_process import run_program, run_to_completion, stream_program
from hummingbird.sandboxes.runner_client import open_subprocess_link

ENVIRONMENT = {"PATH": os.environ["PATH"]}


async def test_an_outcome_is_handed_on() -> None:
    async def work() -> int:
        return 7

    async def fail() -> None:
        raise SandboxBroken("It broke. Try again.")

    assert await run_to_completion(work()) == 7
    with pytest.raises(SandboxBroken):
        await run_to_completion(fail())


async def test_cancelled_work_ends_first_and_is_undone_then() -> None:
    going, steps = asyncio.Event(), list[str]()

    async def work() -> str:
        await going.wait()
        steps.append("done")
        return "it"

    async def undo(what: str) -> None:
        await asyncio.sleep(0)
        steps.append(f"undone {what}")

    task = asyncio.create_task(run_to_completion(work(), undo))
    for _ in range(3):
        await asyncio.sleep(0)
        task.cancel()
    going.set()
    await asyncio.wait({task})
    assert task.cancelled()
    assert steps == ["done", "undone it"]


async def test_cancelled_work_that_fails_is_a_cancellation_and_nothing_is_undone() -> None:
    going, undone = asyncio.Event(), list[None]()

    async def work() -> None:
        await going.wait()
        raise SandboxBroken("It broke. Try again.")

    async def undo(_: None) -> None:
        undone.append(None)

    task = asyncio.create_task(run_to_completion(work(), undo))
    await asyncio.sleep(0)
    task.cancel()
    going.set()
    await asyncio.wait({task})
    assert task.cancelled()
    assert undone == []


async def _killed_sandbox(patience: pytest.MonkeyPatch, held: ExitStack) -> None:
    """On a busy machine what was inside lives a little longer than bubblewrap; here we hold its stderr instead."""
    patience.setattr(local_process, "CLIENT_LEAVING_S", 0.1)
    place = BubblewrapBackend()
    await place.start()
    process = place._process
    assert process is not None
    held.callback(os.close, os.open(f"/proc/{process.pid}/fd/2", os.O_WRONLY))
    process.kill()
    while process.returncode is None:  # noqa: ASYNC110 - asyncio would wait for the stream, too
        await asyncio.sleep(0.01)
    await place.remove()


async def _deaf_with_held_output(patience: pytest.MonkeyPatch, held: ExitStack) -> None:
    patience.setattr(local_process, "PROGRAM_LEAVING_S", 0.1)
    with pytest.raises(SandboxBroken, match="wrote nothing"):
        await stream_program(["sh", "-c", "trap '' TERM; setsid sleep 45 & sleep 60"], ENVIRONMENT, lambda _: None, 0.3)


async def _held_output(patience: pytest.MonkeyPatch, held: ExitStack) -> None:
    with pytest.raises(SandboxBroken, match="did not end"):
        await run_program(["sh", "-c", "setsid sleep 45 &"], ENVIRONMENT, 0.3)


async def _held_streams_of_a_client(patience: pytest.MonkeyPatch, held: ExitStack) -> None:
    patience.setattr(local_process, "CLIENT_LEAVING_S", 0.1)
    link = await open_subprocess_link(["sh", "-c", "sleep 45 <&0 >/dev/null & exit 3"], ENVIRONMENT)
    link.writer.write(b"x" * 300_000)  # more than a pipe holds
    assert await link.close() == LinkEnd(killed=False, error_output="")


@pytest.mark.parametrize("life", [_killed_sandbox, _deaf_with_held_output, _held_output, _held_streams_of_a_client])
def test_of_a_program_that_has_ended_no_stream_stays_open(
    life: Callable[[pytest.MonkeyPatch, ExitStack], Coroutine[Any, Any, None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor when something that it started lives on and holds them."""
    gc.collect()
    with ExitStack() as held, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        began = time.monotonic()
        asyncio.run(life(monkeypatch, held))
        took_s = time.monotonic() - began
        gc.collect()
    assert [str(each.message) for each in caught] == []
    assert took_s < 30  # it would be 45 if anybody waited for what holds them
