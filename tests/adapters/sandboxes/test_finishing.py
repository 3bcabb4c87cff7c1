"""Work that is done to its end even when whoever waits for it is cancelled, again and again."""

import asyncio

import pytest

from hummingbird.adapters.sandboxes.finishing import finished
from hummingbird.domain.errors import SandboxBroken


async def test_an_outcome_is_handed_on() -> None:
    async def work() -> int:
        return 7

    async def fail() -> None:
        raise SandboxBroken("It broke. Try again.")

    assert await finished(work()) == 7
    with pytest.raises(SandboxBroken):
        await finished(fail())


async def test_cancelled_work_ends_first_and_is_undone_then() -> None:
    going, steps = asyncio.Event(), list[str]()

    async def work() -> str:
        await going.wait()
        steps.append("done")
        return "it"

    async def undo(what: str) -> None:
        await asyncio.sleep(0)
        steps.append(f"undone {what}")

    task = asyncio.create_task(finished(work(), undo))
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

    task = asyncio.create_task(finished(work(), undo))
    await asyncio.sleep(0)
    task.cancel()
    going.set()
    await asyncio.wait({task})
    assert task.cancelled()
    assert undone == []
