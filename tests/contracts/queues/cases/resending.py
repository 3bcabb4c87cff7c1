"""What is sent twice counts once (E2, E3)."""

import asyncio

from tests.contracts.queues.stage import Stage, bodies, nothing, one


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
