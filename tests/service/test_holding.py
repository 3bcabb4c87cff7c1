"""E3: how messages of a group are let go of, where a worker would take long to get there."""

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hummingbird.adapters.queues.sqlite import SqliteQueue
from hummingbird.domain.limits import QUEUE_RECEIVES
from hummingbird.ports.queue import Message
from hummingbird.service.envelopes import opened, successor_of
from hummingbird.service.holding import Holding
from hummingbird.service.outages import Outage
from tests.service.working import LONG_S, order, sent


@pytest.fixture
async def queue(tmp_path: Path) -> AsyncIterator[SqliteQueue]:
    queue = SqliteQueue(tmp_path / "queue.sqlite", LONG_S)
    yield queue
    await queue.close()


def held(queue: SqliteQueue, messages: list[Message], *, whole: bool = True) -> Holding:
    return Holding(queue, Outage("The queue"), messages, whole=whole, visibility_s=LONG_S)


async def received(queue: SqliteQueue, times: int, most: int = 10) -> list[Message]:
    """Those that were received that often in all."""
    for _ in range(times - 1):
        for message in await queue.receive(most, 0):
            await queue.postpone(message, 0)
    return list(await queue.receive(most, 0))


async def names(queue: SqliteQueue) -> list[tuple[str, int]]:
    found = [(opened(message.body), message.receives) for message in await queue.receive(10, 0)]
    return [(getattr(one, "id", ""), receives) for one, receives in found]


async def test_what_may_have_more_behind_it_keeps_its_place_as_long_as_it_can_e3(queue: SqliteQueue) -> None:
    """A receive that was full may have left some of the group in the queue; a successor would go behind those."""
    await sent(queue, *(order(name) for name in "123"))
    async with held(queue, await received(queue, 2, most=2), whole=False) as holding:
        assert await holding.wait(0, successor_of(order("1"), 0))
    assert await names(queue) == [("1", 3), ("2", 3), ("3", 1)]


async def test_what_would_die_of_waiting_gets_a_successor_all_the_same_e3(queue: SqliteQueue) -> None:
    await sent(queue, *(order(name) for name in "123"))
    async with held(queue, await received(queue, QUEUE_RECEIVES, most=2), whole=False) as holding:
        assert not await holding.wait(0, successor_of(order("1"), 0))
    assert await names(queue) == [("3", 1), ("1", 1), ("2", 1)]
    assert not await queue.dead()


async def test_what_was_sent_after_a_message_that_waits_gets_behind_its_successor_e3(queue: SqliteQueue) -> None:
    await sent(queue, order("1"))
    (first,) = await queue.receive(10, 0)
    await queue.postpone(first, 0)
    await sent(queue, order("2"))
    async with held(queue, list(await queue.receive(10, 0))) as holding:
        assert not await holding.wait(0, successor_of(order("1"), 0))
    assert await names(queue) == [("1", 1), ("2", 1)]


async def test_all_that_is_given_back_keeps_its_order_whatever_it_has_behind_it_e3(queue: SqliteQueue) -> None:
    """The second was received more often than the first, as after a first that was sent anew."""
    await sent(queue, *(order(name) for name in "123"))
    first, second, third = await received(queue, 1)
    again = [first, Message(second.id, second.group, second.body, 2, second.receipt), third]
    async with held(queue, again) as holding:
        await holding.give_back()
        assert holding.first is None
    assert [name for name, _ in await names(queue)] == ["1", "2", "3"]


async def test_nothing_is_done_to_a_message_that_somebody_else_has_e3(queue: SqliteQueue) -> None:
    await sent(queue, order("1"), order("2"))
    messages = await received(queue, 1)
    for message in messages:
        await queue.postpone(message, 0)
    theirs = list(await queue.receive(10, 0))
    async with held(queue, messages) as holding:
        assert not await holding.done()
        assert holding.lost.is_set()
        await holding.replace(successor_of(order("1"), 0))
        await holding.give_back()
    for message in theirs:
        await queue.delete(message)
    assert not await queue.receive(10, 0)


async def test_who_dies_while_it_sends_anew_leaves_all_in_their_order_e3(queue: SqliteQueue, tmp_path: Path) -> None:
    """What is on the queue twice is done once; but nothing may come before what was there first."""
    await sent(queue, *(order(name) for name in "123"))

    async def die(message: Message) -> None:
        await SqliteQueue.delete(queue, message)
        raise RuntimeError("killed")

    queue.delete = die  # type: ignore[method-assign] # the process ends with the first of them
    async with held(queue, await received(queue, 2)) as holding:
        with pytest.raises(RuntimeError, match="killed"):
            await holding.replace(successor_of(order("1"), 0))
    later = SqliteQueue(tmp_path / "queue.sqlite", LONG_S, now=lambda: time.time() + 2 * LONG_S)
    assert [name for name, _ in await names(later)] == ["1", "2", "1", "2", "3"]
    await later.close()
