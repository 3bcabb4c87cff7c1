"""Queues that were there before: the worker counts tries itself, whatever their redrive policy says."""

from pathlib import Path

import pytest

from hummingbird.core.protocols.queues import Queue
from hummingbird.queues.sqs import SqsQueue
from tests.contracts.queues.backends.ministack import Ministack
from tests.service.worker.deeds import done, down
from tests.service.working import LONG_S, Play, at_work, left, made, order, sent, waits
from tests.thoroughly import also

POLICIES = [0, 1, also(2), 10]


async def opened(ministack: Ministack, max_receives: int) -> SqsQueue:
    """As the documents' template describes one: nothing is set but what a FIFO queue needs."""
    grouped = {"DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"}
    return ministack.site_with(max_receives, VisibilityTimeout="1800", **grouped).open(LONG_S)


@pytest.mark.parametrize("max_receives", POLICIES)
async def test_work_is_tried_three_times_and_given_up(
    ministack: Ministack, play: Play, tmp_path: Path, max_receives: int, caplog: pytest.LogCaptureFixture
) -> None:
    queue = await opened(ministack, max_receives)
    play.deeds["1"], play.deeds["2"] = [down], [down, down, done]
    try:
        await sent(queue, *(order(name) for name in "123"))
        async with at_work(made(queue, play, tmp_path)):
            await play.until(lambda play: len(play.done) == 2)
        assert sorted(play.done) == ["2", "3"]
        for name in "12":
            assert [last for begun, _, last in play.begun if begun == name] == [False, False, True]
        assert not await left(queue)
        assert len(await queue.list_dead_letters()) == (1 if max_receives else 0)
    finally:
        await queue.close()
    kept = "becomes a dead letter" if max_receives else "is deleted, because its queue keeps no dead letters"
    assert f"Order 1 of session s failed for the last time and {kept}: The cluster is away" in caplog.text


@pytest.mark.parametrize("max_receives", POLICIES)
async def test_waiting_costs_no_try(ministack: Ministack, play: Play, tmp_path: Path, max_receives: int) -> None:
    queue = await opened(ministack, max_receives)
    play.deeds["1"] = [waits, waits, done]
    try:
        await sent(queue, order("1"), order("2"))
        async with at_work(made(queue, play, tmp_path)):
            await play.until(lambda play: len(play.done) == 2)
        assert play.done == ["1", "2"]
        assert not any(last for *_, last in play.begun)
        assert not await queue.list_dead_letters()
    finally:
        await queue.close()


async def test_work_that_kills_its_process_is_given_up_too(ministack: Ministack, play: Play, tmp_path: Path) -> None:
    """Nobody lived to count these receives but the queue, which would go on for ever."""
    queue: Queue = await opened(ministack, 0)
    try:
        await sent(queue, order("1"))
        for _ in range(3):
            (held,) = await queue.receive(1, 5)
            await queue.postpone(held, 0)
        await sent(queue, order("2"))
        async with at_work(made(queue, play, tmp_path)):
            await play.until(lambda play: "2" in play.done)
        assert "1" not in [name for name, *_ in play.begun]
    finally:
        await queue.close()
