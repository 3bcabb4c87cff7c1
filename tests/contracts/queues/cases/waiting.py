"""A receive that waits returns as soon as there is something (E3). Bounds are wide: they tell waking from waiting."""

import asyncio
import time

from hummingbird.ports.queue import Message, Queue
from tests.contracts.queues.stage import Stage, one, sent

_WAIT_S = 20.0
_SOON_S = 12.0  # far below the wait, far above what any queue needs


async def a_receive_without_a_wait_returns_at_once(stage: Stage) -> None:
    queue = await stage.queue()
    began = time.monotonic()
    assert not await queue.receive(1, 0)
    assert time.monotonic() - began < _SOON_S


async def a_wait_that_was_in_vain_ends(stage: Stage) -> None:
    queue = await stage.queue()
    began = time.monotonic()
    assert not await queue.receive(1, 1.0)
    assert 0.9 < time.monotonic() - began < _SOON_S


async def a_message_that_is_sent_wakes_whoever_waits(stage: Stage) -> None:
    queue = await stage.queue()
    waiting = await _waiting(queue)
    await sent(queue, "a", "1")
    assert await _woken(waiting) == "1"


async def a_message_that_somebody_else_sends_does_too(stage: Stage) -> None:
    site = await stage.backend.site()
    queue, other = stage.opened(site), stage.opened(site)
    waiting = await _waiting(queue)
    await sent(other, "a", "1")
    assert await _woken(waiting) == "1"


async def a_delete_that_frees_a_group_wakes_whoever_waits(stage: Stage) -> None:
    queue = await stage.queue()
    await sent(queue, "a", "1", "2")
    held = await one(queue)
    waiting = await _waiting(queue)
    await queue.delete(held)
    assert await _woken(waiting) == "2"


async def a_message_whose_time_is_over_wakes_whoever_waits(stage: Stage) -> None:
    queue = await stage.queue(visibility_s=1)
    await sent(queue, "a", "1")
    await one(queue)
    assert await _woken(await _waiting(queue)) == "1"


async def a_receive_that_is_cancelled_leaves_the_message_to_others(stage: Stage) -> None:
    queue = await stage.queue()
    waiting = await _waiting(queue)
    waiting.cancel()
    await asyncio.wait((waiting,))
    assert waiting.cancelled()
    await sent(queue, "a", "1")
    assert (await one(queue)).body == "1"


async def a_receive_that_is_cancelled_while_it_takes_gives_back(stage: Stage) -> None:
    queue = await stage.queue()
    await sent(queue, "a", "1")
    for _ in range(2):
        taking = await _waiting(queue)  # under way, and most likely in a thread
        taking.cancel()
        await asyncio.wait((taking,))
    assert (await one(queue)).body == "1"


async def _waiting(queue: Queue) -> "asyncio.Task[Message]":
    """One that has begun."""
    task = asyncio.create_task(one(queue, _WAIT_S))
    for _ in range(5):
        await asyncio.sleep(0)
    return task


async def _woken(waiting: "asyncio.Task[Message]") -> str:
    async with asyncio.timeout(_SOON_S):
        return (await waiting).body


async def a_check_takes_nothing(stage: Stage) -> None:
    queue = await stage.queue()
    await queue.check()
    await sent(queue, "a", "1")
    await queue.check()
    assert (await one(queue)).receives == 1
