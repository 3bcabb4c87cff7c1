"""Several processes at one queue, and one that is killed."""

import asyncio
from asyncio.subprocess import Process
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack

from tests.contracts.queues.stage import PATIENCE_S, Stage, nothing, one, sent

_NAMES, _EACH = ("p", "q", "r", "s"), 15


async def what_another_process_sends_is_received_in_its_order(stage: Stage) -> None:
    site = await stage.backend.site()
    queue = stage.opened(site)
    async with stage.worker(site, "send", 60, "p", "5") as process:
        told = [await _line(process) for _ in range(5)]
        found = await queue.receive(10, PATIENCE_S)
        assert [message.body for message in found] == told == [f"p.{number}" for number in range(5)]


async def a_process_that_is_killed_loses_nothing(stage: Stage) -> None:
    site = await stage.backend.site()
    queue = stage.opened(site)
    await sent(queue, "a", "1", "2")
    async with stage.worker(site, "hold", 2) as process:
        assert await _line(process) == "1"
        process.kill()
        await process.wait()
    again = await one(queue)
    assert (again.body, again.receives) == ("1", 2)
    await nothing(queue)


async def four_processes_at_one_queue_do_everything_once(stage: Stage) -> None:
    site = await stage.backend.site()
    queue = stage.opened(site)
    async with AsyncExitStack() as all_of_them:
        workers = [
            await all_of_them.enter_async_context(stage.worker(site, "work", 60, name, str(_EACH))) for name in _NAMES
        ]
        done = await _done(workers)
    assert Counter(done) == Counter(f"{name}.{number}" for name in _NAMES for number in range(_EACH))
    await nothing(queue)


async def _done(workers: Sequence[Process]) -> list[str]:
    """What they have deleted, once that is as much as was sent; each of them keeps to the order of a group."""
    done: dict[int, list[str]] = {index: [] for index in range(len(workers))}
    enough = asyncio.Event()

    async def listen(index: int) -> None:
        while line := await _line(workers[index]):
            if line.startswith("done "):
                done[index].append(line.removeprefix("done "))
            if sum(map(len, done.values())) >= len(_NAMES) * _EACH:
                enough.set()

    listeners = [asyncio.create_task(listen(index)) for index in done]
    await enough.wait()
    for listener in listeners:
        listener.cancel()
    await asyncio.wait(listeners)
    for found in done.values():
        for name in _NAMES:
            numbers = [int(body.partition(".")[2]) for body in found if body.startswith(f"{name}.")]
            assert numbers == sorted(numbers)
    return [body for found in done.values() for body in found]


async def _line(process: Process) -> str:
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().rstrip("\n")
