"""Many at once: nothing twice, nothing lost, order kept, and one holder of a group at a time."""

import asyncio

from hummingbird.core.protocols.queues import Queue
from tests.contracts.queues.stage import Stage, sent

_GROUPS, _EACH, _RECEIVERS = 10, 4, 8


async def eight_receivers_share_the_work_without_double_delivery(stage: Stage) -> None:
    queue = await stage.queue()
    for number in range(_EACH):
        for group in range(_GROUPS):
            await sent(queue, f"g{group}", str(number))
    race = _Race()
    receivers = [asyncio.create_task(_receive(queue, race)) for _ in range(_RECEIVERS)]
    await race.finished.wait()
    await queue.close()
    await asyncio.gather(*receivers)
    done = race.done
    assert len(done) == len(set(done)) == _GROUPS * _EACH
    for group in range(_GROUPS):
        assert [body for name, body in done if name == f"g{group}"] == [str(number) for number in range(_EACH)]


class _Race:
    def __init__(self) -> None:
        self.held: set[str] = set()
        self.done: list[tuple[str, str]] = []
        self.deleted = 0
        self.finished = asyncio.Event()


async def _receive(queue: Queue, race: _Race) -> None:
    while messages := await queue.receive(2, 20):
        groups = {message.group for message in messages}
        assert not race.held & groups, "two receivers hold one group"
        assert {message.receives for message in messages} == {1}
        race.held |= groups
        race.done.extend((message.group, message.body) for message in messages)
        await asyncio.sleep(0)  # so that others have a chance to be wrong
        race.held -= groups  # before the deletes that free them
        for message in messages:
            await queue.delete(message)
        race.deleted += len(messages)
        if race.deleted >= _GROUPS * _EACH:
            race.finished.set()
