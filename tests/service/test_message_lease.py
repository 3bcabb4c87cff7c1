"""How messages of a group are let go of, where a worker would take long to get there."""

import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hummingbird.core.errors import ReceiptExpired
from hummingbird.core.limits import QUEUE_RECEIVES
from hummingbird.core.protocols.queues import QueueMessage
from hummingbird.queues.sqlite_queue import SqliteQueue
from hummingbird.service.envelopes import create_successor, parse_envelope
from hummingbird.service.message_lease import MessageLease
from hummingbird.service.outage_retry import OutageRetry
from tests.service.working import LONG_S, order, sent


@pytest.fixture
async def queue(tmp_path: Path) -> AsyncIterator[SqliteQueue]:
    queue = SqliteQueue(tmp_path / "queue.sqlite", LONG_S)
    yield queue
    await queue.close()


def held(
    queue: SqliteQueue, messages: list[QueueMessage], *, whole: bool = True, asked_s_ago: float = 0.0
) -> MessageLease:
    return MessageLease(
        queue,
        OutageRetry("The queue"),
        messages,
        whole=whole,
        visibility_s=LONG_S,
        asked_at=time.monotonic() - asked_s_ago,
    )


async def received(queue: SqliteQueue, times: int, most: int = 10) -> list[QueueMessage]:
    """Those that were received that often in all."""
    for _ in range(times - 1):
        for message in await queue.receive(most, 0):
            await queue.postpone(message, 0)
    return list(await queue.receive(most, 0))


async def names(queue: SqliteQueue) -> list[tuple[str, int]]:
    found = [(parse_envelope(message.body), message.receives) for message in await queue.receive(10, 0)]
    return [(getattr(one, "id", ""), receives) for one, receives in found]


async def test_what_may_have_more_behind_it_keeps_its_place_as_long_as_it_can(queue: SqliteQueue) -> None:
    """A receive that was full may have left some of the group in the queue; a successor would go behind those."""
    await sent(queue, *(order(name) for name in "123"))
    async with held(queue, await received(queue, 2, most=2), whole=False) as holding:
        assert await holding.postpone(0, create_successor(order("1"), 0))
    assert await names(queue) == [("1", 3), ("2", 3), ("3", 1)]


async def test_what_would_die_of_waiting_gets_a_successor_all_the_same(queue: SqliteQueue) -> None:
    await sent(queue, *(order(name) for name in "123"))
    async with held(queue, await received(queue, QUEUE_RECEIVES, most=2), whole=False) as holding:
        assert not await holding.postpone(0, create_successor(order("1"), 0))
    assert await names(queue) == [("3", 1), ("1", 1), ("2", 1)]
    assert not await queue.list_dead_letters()


async def test_what_was_sent_after_a_message_that_waits_gets_behind_its_successor(queue: SqliteQueue) -> None:
    await sent(queue, order("1"))
    (first,) = await queue.receive(10, 0)
    await queue.postpone(first, 0)
    await sent(queue, order("2"))
    async with held(queue, list(await queue.receive(10, 0))) as holding:
        assert not await holding.postpone(0, create_successor(order("1"), 0))
    assert await names(queue) == [("1", 1), ("2", 1)]


async def test_all_that_is_given_back_keeps_its_order_whatever_it_has_behind_it(queue: SqliteQueue) -> None:
    """The second was received more often than the first, as after a first that was sent anew."""
    await sent(queue, *(order(name) for name in "123"))
    first, second, third = await received(queue, 1)
    again = [first, QueueMessage(second.id, second.group, second.body, 2, second.receipt), third]
    async with held(queue, again) as holding:
        await holding.release()
        assert holding.first is None
    assert [name for name, _ in await names(queue)] == ["1", "2", "3"]


async def test_a_lease_that_may_have_ended_is_extended_before_a_write(queue: SqliteQueue) -> None:
    await sent(queue, order("1"))
    async with held(queue, await received(queue, 1), asked_s_ago=LONG_S) as holding:
        await holding.ensure()
        assert await holding.complete()


async def test_nobody_writes_for_a_message_that_somebody_else_has(queue: SqliteQueue) -> None:
    await sent(queue, order("1"))
    messages = await received(queue, 1)
    await queue.postpone(messages[0], 0)
    (theirs,) = await queue.receive(10, 0)
    async with held(queue, messages, asked_s_ago=LONG_S) as holding:
        with pytest.raises(ReceiptExpired, match="nothing is written"):
            await holding.ensure()
    await queue.delete(theirs)


async def test_nothing_is_done_to_a_message_that_somebody_else_has(queue: SqliteQueue) -> None:
    await sent(queue, order("1"), order("2"))
    messages = await received(queue, 1)
    for message in messages:
        await queue.postpone(message, 0)
    theirs = list(await queue.receive(10, 0))
    async with held(queue, messages) as holding:
        assert not await holding.complete()
        assert holding.lost.is_set()
        await holding.replace(create_successor(order("1"), 0))
        await holding.release()
    for message in theirs:
        await queue.delete(message)
    assert not await queue.receive(10, 0)


class MortalQueue:
    """A queue whose process is killed right after so many calls."""

    def __init__(self, queue: SqliteQueue, calls: int) -> None:
        self._queue = queue
        self._calls = calls
        self.most_receives = queue.most_receives

    def __getattr__(self, name: str) -> Any:
        async def call(*given: Any, **named: Any) -> Any:
            answer = await getattr(self._queue, name)(*given, **named)
            self._calls -= 1
            if not self._calls:
                raise RuntimeError("killed")
            return answer

        return call


@pytest.mark.parametrize("calls", range(1, 7))
async def test_death_while_sending_anew_keeps_the_order(queue: SqliteQueue, tmp_path: Path, calls: int) -> None:
    """Also when the next receive is lost with its process: it is the last one of the first message, and not of those
    behind it, which were received less often."""
    await sent(queue, *(order(name) for name in "123"))
    await queue.postpone((await queue.receive(1, 0))[0], 0)
    mortal: Any = MortalQueue(queue, calls)
    async with held(mortal, list(await queue.receive(10, 0))) as holding:
        with suppress(RuntimeError):
            await holding.replace(create_successor(order("1"), 0))
    passed_s = 0.0
    later = SqliteQueue(tmp_path / "queue.sqlite", LONG_S, now=lambda: time.time() + passed_s)
    found: list[tuple[str, int]] = []
    for _ in range(2):
        passed_s += 2 * LONG_S
        found = await names(later)
    assert list(dict.fromkeys(name for name, _ in found)) == ["1", "2", "3"]
    await later.close()
