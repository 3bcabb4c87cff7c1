"""How long a message is with whoever received it, and whose receipt counts."""

import pytest

from hummingbird.core.errors import InvalidRequest, ReceiptExpired
from hummingbird.core.limits import QUEUE_HELD_S
from tests.contracts.queues.stage import Stage, bodies, nothing, one, sent


async def after_its_time_the_same_message_is_first_again(stage: Stage) -> None:
    queue = await stage.queue(visibility_s=1)
    await sent(queue, "a", "1", "2")
    first = await one(queue)
    again = await one(queue)
    assert (again.id, again.body, again.receives) == (first.id, "1", 2)
    assert again.receipt != first.receipt


async def a_heart_beat_keeps_a_message(stage: Stage) -> None:
    queue = await stage.queue(visibility_s=2)
    await sent(queue, "a", "1")
    held = await one(queue)
    await queue.extend_lease(held, 60)
    assert not await queue.receive(1, 3)
    await queue.delete(held)


async def a_heart_beat_counts_from_now_and_may_shorten(stage: Stage) -> None:
    queue = await stage.queue()
    await sent(queue, "a", "1")
    await queue.extend_lease(await one(queue), 1)
    assert (await one(queue)).receives == 2


async def what_is_postponed_holds_up_its_group_and_counts_when_it_comes_again(stage: Stage) -> None:
    queue = await stage.queue()
    await sent(queue, "a", "1", "2")
    await queue.postpone(await one(queue), 2)
    await nothing(queue)
    again = await one(queue)
    assert (again.body, again.receives) == ("1", 2)


async def what_is_given_back_at_once_is_there_at_once_and_in_order(stage: Stage) -> None:
    queue = await stage.queue()
    await sent(queue, "a", "1", "2")
    for message in reversed(await queue.receive(2, 0)):
        await queue.postpone(message, 0)
    assert bodies(await queue.receive(2, 0)) == ["1", "2"]


async def only_the_latest_receipt_is_of_use(stage: Stage) -> None:
    queue = await stage.queue()
    await sent(queue, "a", "1")
    first = await one(queue)
    await queue.postpone(first, 0)
    second = await one(queue)
    for verb in (queue.delete(first), queue.extend_lease(first, 5), queue.postpone(first, 0)):
        with pytest.raises(ReceiptExpired, match=r"held for too long.*next\.$"):
            await verb
    await nothing(queue)
    await queue.delete(second)


async def an_expired_receipt_deletes_nothing_even_if_nobody_has_the_message(stage: Stage) -> None:
    if not stage.backend.refuses_expired:
        pytest.skip("ministack lets an expired receipt delete until somebody receives the message again; AWS does not")
    queue = await stage.queue()
    await sent(queue, "a", "1")
    held = await one(queue)
    await queue.postpone(held, 0)
    for verb in (queue.delete(held), queue.extend_lease(held, 5)):
        with pytest.raises(ReceiptExpired, match="held for too long"):
            await verb
    assert (await one(queue)).receives == 2


async def nobody_holds_a_message_for_a_time_that_makes_no_sense(stage: Stage) -> None:
    queue = await stage.queue()
    await sent(queue, "a", "1")
    held = await one(queue)
    for verb in (queue.extend_lease(held, 0), queue.extend_lease(held, QUEUE_HELD_S + 1), queue.postpone(held, -1)):
        with pytest.raises(InvalidRequest, match=r"is held for .* successor"):
            await verb
    await queue.delete(held)


async def messages_are_counted_until_they_are_done(stage: Stage) -> None:
    queue = await stage.queue()
    assert await queue.count_messages() == 0
    await sent(queue, "a", "1", "2")
    await sent(queue, "b", "3")
    held = await one(queue)
    assert await queue.count_messages() == 3, "one of them is in flight"
    await queue.delete(held)
    assert await queue.count_messages() == 2
