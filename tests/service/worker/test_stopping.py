"""A stop loses nothing and holds nobody up; many workers at one queue do everything once."""

import asyncio
import logging
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from hummingbird.core.errors import QueueUnusable
from hummingbird.core.orders import EventEnvelope, encode_envelope
from hummingbird.core.protocols.queues import Queue
from hummingbird.queues.sqlite_queue import SqliteQueue
from hummingbird.service.envelopes import parse_envelope
from hummingbird.storage.folder_objects import FolderObjectStore
from tests.service.worker.deeds import bodies, forever, held_by
from tests.service.working import LONG_S, PATIENCE_S, Play, Seen, at_work, left, made, order, sent


async def test_a_stop_takes_nothing_more_and_lets_runs_end(queue: SqliteQueue, play: Play, tmp_path: Path) -> None:
    release = asyncio.Event()
    play.deeds["1"] = [held_by(release)]
    await sent(queue, order("1"), order("2"))
    async with at_work(made(queue, play, tmp_path)) as worker:
        await play.until(lambda play: bool(play.begun))
        worker.stop()
        release.set()
    assert play.done == ["1"]
    assert bodies(await left(queue)) == [("2", 0, 2)]


@pytest.mark.parametrize("stops", [1, 2])
async def test_what_does_not_end_in_time_is_parked_in_order_for_another_process(
    either: Queue, play: Play, tmp_path: Path, stops: int
) -> None:
    """A second stop does not wait for the time to be over."""
    play.deeds["1"] = [forever]
    await sent(either, order("1"), order("2"))
    async with at_work(made(either, play, tmp_path, grace_s=0 if stops == 1 else 1_000)) as worker:
        await play.until(lambda play: bool(play.begun))
        for _ in range(stops):
            worker.stop()
    found = bodies(list(await either.receive(10, PATIENCE_S / 2)))
    assert [(name, waited) for name, waited, _ in found] == [("1", 0), ("2", 0)]
    # a poll that SQS still had from us may have got them, and gave them back
    assert {receives for *_, receives in found} <= ({2} if isinstance(either, SqliteQueue) else {2, 3})
    assert not play.done


async def test_what_is_sent_while_a_run_goes_on_does_not_overtake_it_when_it_is_parked(
    either: Queue, play: Play, tmp_path: Path
) -> None:
    play.deeds["1"] = [forever]
    await sent(either, order("1"))
    async with at_work(made(either, play, tmp_path, grace_s=0)) as worker:
        await play.until(lambda play: bool(play.begun))
        await sent(either, order("2"))
        worker.stop()
    found = bodies(list(await either.receive(10, PATIENCE_S / 2)))
    assert [name for name, *_ in found] == ["1", "2"]


async def test_an_event_in_the_middle_of_its_work_is_given_back(queue: SqliteQueue, play: Play, tmp_path: Path) -> None:
    play.on_event = forever
    await queue.send(encode_envelope(EventEnvelope(identity="i", body="{}")), group="i", dedup_id="i")
    async with at_work(made(queue, play, tmp_path, grace_s=0)) as worker:
        await play.until(lambda play: bool(play.events))
        worker.stop()
    (message,) = await left(queue)
    assert parse_envelope(message.body) == EventEnvelope(identity="i", body="{}")


async def test_cancelling_the_worker_parks_everything(queue: SqliteQueue, play: Play, tmp_path: Path) -> None:
    play.deeds["1"] = [forever]
    await sent(queue, order("1"))
    running = asyncio.create_task(made(queue, play, tmp_path).run())
    await play.until(lambda play: bool(play.begun))
    running.cancel()
    await asyncio.wait((running,))
    assert running.cancelled()
    assert bodies(await left(queue)) == [("1", 0, 2)]


async def test_a_queue_that_cannot_be_reached_is_told_once_and_asked_again(
    queue: SqliteQueue, play: Play, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await sent(queue, order("1"))
    seen = Seen(queue, faults=[QueueUnusable("It is away; wait."), QueueUnusable("It is still away; wait.")])
    async with at_work(made(seen, play, tmp_path)):
        await play.until(lambda play: play.done == ["1"])
    told = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert told == [
        "The queue is not available and will be retried until it is: It is away; wait.",
        "The queue is available again.",
    ]


async def test_the_body_of_a_large_event_is_forgotten_when_it_is_worked_off(
    queue: SqliteQueue, play: Play, tmp_path: Path
) -> None:
    store = FolderObjectStore(tmp_path / "objects")
    await store.put("events/i", b"{}")
    await queue.send(encode_envelope(EventEnvelope(identity="i", reference="events/i")), group="i", dedup_id="i")
    async with at_work(made(queue, play, tmp_path)):
        await play.until(lambda play: bool(play.events))
    assert not await store.list_names("")


async def test_ten_workers_at_one_queue_keep_every_group_in_order_and_do_nothing_twice(
    play: Play, tmp_path: Path
) -> None:
    queues = [SqliteQueue(tmp_path / "queue.sqlite", LONG_S) for _ in range(10)]
    wanted = [f"{group}.{number}" for number in range(8) for group in "abcdefghijkl"]
    await sent(queues[0], *(order(name, name[0]) for name in wanted))
    async with AsyncExitStack() as stack:
        for queue in queues:
            stack.push_async_callback(queue.close)
            await stack.enter_async_context(at_work(made(queue, play, tmp_path)))
        await play.until(lambda play: len(play.done) >= len(wanted))
        for queue in queues[1:]:
            assert not await left(queue)
    assert sorted(name for name, *_ in play.begun) == sorted(wanted)
    for group in "abcdefghijkl":
        assert [name for name in play.done if name[0] == group] == [f"{group}.{number}" for number in range(8)]
