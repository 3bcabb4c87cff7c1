"""Order within a group, and groups beside each other: the FIFO rules of SQS."""

from tests.contracts.queues.stage import Stage, bodies, nothing, one, sent


async def one_receive_gives_several_of_a_group_in_their_order(stage: Stage) -> None:
    queue = await stage.queue()
    await sent(queue, "a", *map(str, range(12)))
    assert bodies(await queue.receive(10, 0)) == [str(number) for number in range(10)]


async def groups_come_in_the_order_in_which_they_were_sent(stage: Stage) -> None:
    queue = await stage.queue()
    for body in ("1", "2", "3"):
        await sent(queue, "a", body)
        await sent(queue, "b", body)
    found = await queue.receive(10, 0)
    assert [(message.group, message.body) for message in found] == [(g, b) for b in "123" for g in "ab"]


async def a_group_with_something_in_flight_gives_out_nothing_more(stage: Stage) -> None:
    queue = await stage.queue()
    await sent(queue, "a", "1", "2")
    held = await one(queue)
    await sent(queue, "a", "3")
    await nothing(queue)
    await queue.delete(held)
    assert bodies(await queue.receive(10, 0)) == ["2", "3"]


async def a_group_stays_locked_until_the_last_of_a_batch_is_deleted(stage: Stage) -> None:
    queue = await stage.queue()
    await sent(queue, "a", "1", "2", "3")
    first, second = await queue.receive(2, 0)
    await queue.delete(first)
    await nothing(queue)
    await queue.delete(second)
    assert (await one(queue)).body == "3"


async def other_groups_are_not_held_up(stage: Stage) -> None:
    queue = await stage.queue()
    await sent(queue, "a", "1", "2")
    await one(queue)
    await sent(queue, "b", "3")
    found = await one(queue)
    assert (found.group, found.body) == ("b", "3")


async def a_message_is_what_was_sent(stage: Stage) -> None:
    queue = await stage.queue()
    (message_id,) = await sent(queue, "some/group:1", "hello")
    found = await one(queue)
    assert (found.id, found.group, found.body, found.receives) == (message_id, "some/group:1", "hello", 1)
    assert found.receipt


async def what_is_deleted_never_comes_again(stage: Stage) -> None:
    queue = await stage.queue(visibility_s=1)
    await sent(queue, "a", "1")
    await queue.delete(await one(queue))
    assert not await queue.receive(1, 1.5)
