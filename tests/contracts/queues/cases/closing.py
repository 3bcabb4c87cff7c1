"""Closing ends all waiting, and a closed queue says so."""

import asyncio

import pytest

from hummingbird.core.errors import QueueUnusable
from tests.contracts.queues.stage import PATIENCE_S, Stage, one, sent


async def closing_ends_receives_that_wait(stage: Stage) -> None:
    queue = await stage.queue()
    await sent(queue, "a", "1")
    await queue.delete(await one(queue))
    waiting = [asyncio.create_task(queue.receive(1, 20)) for _ in range(3)]
    await asyncio.sleep(0.2)  # so that they are well under way; the case holds however far they came
    async with asyncio.timeout(PATIENCE_S):
        await queue.close()
        assert [list(found) for found in await asyncio.gather(*waiting)] == [[], [], []]


async def what_is_sent_while_another_closes_is_not_lost_with_it(stage: Stage) -> None:
    site = await stage.backend.site()
    queue, other = stage.opened(site), stage.opened(site)
    waiting = asyncio.create_task(queue.receive(1, 20))
    await asyncio.sleep(0.2)
    closing = asyncio.create_task(queue.close())
    await sent(other, "a", "1")
    await closing
    if not await waiting:
        assert (await one(other)).body == "1"


async def a_closed_queue_says_so(stage: Stage) -> None:
    queue = await stage.queue()
    await sent(queue, "a", "1", "2")
    held = await one(queue)
    await queue.close()
    verbs = (
        queue.check(),
        queue.send("3", group="a", dedup_id="3"),
        queue.receive(1, 0),
        queue.extend_lease(held, 5),
        queue.delete(held),
        queue.list_dead_letters(),
    )
    for verb in verbs:
        with pytest.raises(QueueUnusable, match=r"closed; open it again"):
            await verb


async def closing_twice_or_unused_is_fine_and_the_messages_stay(stage: Stage) -> None:
    site = await stage.backend.site()
    await stage.opened(site).close()
    queue = stage.opened(site)
    await sent(queue, "a", "1")
    await queue.close()
    await queue.close()
    assert (await one(stage.opened(site))).body == "1"
