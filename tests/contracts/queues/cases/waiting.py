"""A receive that waits returns as soon as there is something. Bounds are wide: they tell waking from waiting."""

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, TypeVar
from unittest.mock import patch

from hummingbird.core.limits import QUEUE_RECEIVES
from hummingbird.core.protocols.queues import Queue, QueueMessage
from hummingbird.queues import queue_rules
from tests.contracts.queues.stage import PATIENCE_S, Stage, bodies, one, sent

Received = TypeVar("Received")
_WAIT_S = 90.0  # longer than the product allows: a busy machine wakes in less
_SOON_S = 30.0  # far below the wait, far above what any queue needs


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


async def many_who_leave_while_they_take_bury_nothing_and_keep_the_order(stage: Stage) -> None:
    """As when all replicas of a service stop at once."""
    site = await stage.backend.site()
    queue = stage.opened(site)
    await sent(queue, "a", "1", "2", "3")
    await sent(queue, "b", "4")
    for number in range(2 * QUEUE_RECEIVES):
        leaving = stage.opened(site)
        await leaving.check()  # so that it is the receive that is under way
        taking = await _begun(leaving.receive(10, _WAIT_S))
        taking.cancel()
        await asyncio.wait((taking,))
        for message in () if taking.cancelled() else taking.result():  # it was quicker, as happens on a busy machine
            await leaving.send(message.body, group=message.group, dedup_id=f"{number}/{message.body}")
            await leaving.delete(message)
        await leaving.close()
    left = await queue.receive(10, PATIENCE_S)
    assert sorted(bodies(left)) == ["1", "2", "3", "4"]
    assert [message.body for message in left if message.group == "a"] == ["1", "2", "3"]
    assert not await queue.list_dead_letters()


async def _waiting(queue: Queue) -> "asyncio.Task[QueueMessage]":
    return await _begun(one(queue, _WAIT_S))


async def _begun(receiving: Coroutine[Any, Any, Received]) -> "asyncio.Task[Received]":
    with patch.object(queue_rules, "QUEUE_WAIT_S", _WAIT_S):
        task = asyncio.create_task(receiving)
        for _ in range(5):
            await asyncio.sleep(0)
    return task


async def _woken(waiting: "asyncio.Task[QueueMessage]") -> str:
    async with asyncio.timeout(_SOON_S):
        return (await waiting).body


async def a_check_takes_nothing(stage: Stage) -> None:
    queue = await stage.queue()
    await queue.check()
    await sent(queue, "a", "1")
    await queue.check()
    assert (await one(queue)).receives == 1
