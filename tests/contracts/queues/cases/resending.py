"""What is sent twice counts once."""

import asyncio

import pytest

from hummingbird.core.errors import InvalidRequest, ReceiptExpired
from hummingbird.core.limits import QUEUE_BODY_BYTES
from hummingbird.core.protocols.queues import SuccessorMessage
from tests.contracts.queues.stage import Stage, bodies, nothing, one, sent


async def a_duplicate_is_not_sent_and_gets_the_id_of_the_first(stage: Stage) -> None:
    queue = await stage.queue()
    first = await queue.send("1", group="a", dedup_id="same")
    assert await queue.send("1", group="a", dedup_id="same") == first
    assert bodies(await queue.receive(10, 0)) == ["1"]


async def a_duplicate_is_one_in_another_group_and_with_another_body_too(stage: Stage) -> None:
    """Redeliveries by SNS come with another message id, which is their group."""
    queue = await stage.queue()
    first = await queue.send("1", group="a", dedup_id="same")
    assert await queue.send("2", group="b", dedup_id="same") == first
    assert bodies(await queue.receive(10, 0)) == ["1"]


async def a_duplicate_is_remembered_after_the_first_was_deleted(stage: Stage) -> None:
    queue = await stage.queue()
    first = await queue.send("1", group="a", dedup_id="same")
    await queue.delete(await one(queue))
    assert await queue.send("1", group="a", dedup_id="same") == first
    await nothing(queue)


async def equal_bodies_with_ids_of_their_own_are_two_messages(stage: Stage) -> None:
    queue = await stage.queue()
    ids = {await queue.send("same", group="a", dedup_id=dedup_id) for dedup_id in ("1", "2")}
    assert {message.id for message in await queue.receive(10, 0)} == ids
    assert len(ids) == 2


async def of_many_who_send_the_same_at_once_one_does(stage: Stage) -> None:
    queue = await stage.queue()
    ids = await asyncio.gather(*(queue.send("1", group="a", dedup_id="same") for _ in range(8)))
    assert len(set(ids)) == 1
    assert bodies(await queue.receive(10, 0)) == ["1"]


async def what_is_replaced_is_gone_and_its_successors_come_last_in_their_order(stage: Stage) -> None:
    queue = await stage.queue()
    await sent(queue, "a", "1", "2", "3")
    first, second = await queue.receive(2, 0)
    await queue.replace((first, second), (SuccessorMessage("1 again", "1b"), SuccessorMessage("2 again", "2b")))
    found = await queue.receive(10, 0)
    assert [(message.body, message.receives) for message in found] == [("3", 1), ("1 again", 1), ("2 again", 1)]
    assert {message.group for message in found} == {"a"}


async def successors_that_are_too_large_for_one_request_keep_their_order(stage: Stage) -> None:
    queue = await stage.queue()
    await sent(queue, "a", "1", "2", "3")
    large = [letter * (QUEUE_BODY_BYTES // 2) for letter in "xyz"]
    await queue.replace(await queue.receive(10, 0), [SuccessorMessage(body, body[:1]) for body in large])
    assert bodies(await queue.receive(10, 0)) == large


async def nothing_is_sent_for_messages_that_somebody_else_has(stage: Stage) -> None:
    queue = await stage.queue()
    await sent(queue, "a", "1", "2")
    before = await queue.receive(10, 0)
    for message in before:
        await queue.postpone(message, 0)
    theirs = await queue.receive(10, 0)
    with pytest.raises(ReceiptExpired):
        await queue.replace(before, [SuccessorMessage("1 again", "1b"), SuccessorMessage("2 again", "2b")])
    for message in theirs:
        await queue.delete(message)
    await nothing(queue)


async def a_successor_that_no_queue_carries_costs_nothing(stage: Stage) -> None:
    queue = await stage.queue()
    await sent(queue, "a", "1")
    held = await one(queue)
    with pytest.raises(InvalidRequest):
        await queue.replace((held,), (SuccessorMessage("", "empty"),))
    await queue.delete(held)
