"""As many runs as there are slots; whoever finds none waits in order and loses nothing."""

import asyncio
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from hummingbird.core.orders import EventEnvelope, WorkOrder, encode_envelope
from hummingbird.core.protocols.queues import Queue, QueueMessage
from hummingbird.queues.sqlite_queue import SqliteQueue
from hummingbird.service.protocols import RetryLater
from tests.service.worker.deeds import bodies, done, held_by
from tests.service.working import LONG_S, PAUSES, Play, Seen, at_work, breaks, left, made, order, sent, waits


async def test_full_slots_hold_up_neither_events_nor_cost_tries(either: Queue, play: Play, tmp_path: Path) -> None:
    release = asyncio.Event()
    play.deeds["1"] = [held_by(release)]
    await sent(either, order("1", "a"))
    seen = Seen(either)
    async with at_work(made(seen, play, tmp_path, max_runs=lambda: 1)) as worker:
        await play.until(lambda play: bool(play.begun))
        await sent(either, order("2", "b"), order("3", "b"))
        await seen.until_received("b", 7)
        await either.send(encode_envelope(EventEnvelope(identity="i", body="{}")), group="i", dedup_id="i")
        await play.until(lambda play: bool(play.events))
        assert worker.running == 1
        assert [name for name, *_ in play.begun] == ["1"]
        release.set()
        await play.until(lambda play: len(play.done) == 3)
    assert play.done == ["1", "2", "3"]
    assert not any(last_try for *_, last_try in play.begun)
    assert not await either.list_dead_letters()


async def test_a_slot_that_becomes_free_is_taken_at_once(queue: SqliteQueue, play: Play, tmp_path: Path) -> None:
    """Not when somebody looks at the queue again: that would be in an hour."""
    release = asyncio.Event()
    play.deeds["1"] = [held_by(release)]
    await sent(queue, order("1", "a"))
    seen = Seen(queue)
    async with at_work(made(seen, play, tmp_path, max_runs=lambda: 1, pauses=replace(PAUSES, slot_s=3600.0))):
        await play.until(lambda play: bool(play.begun))
        await sent(queue, order("2", "b"))
        await seen.until_received("b", 1)
        release.set()
        await play.until(lambda play: play.done == ["1", "2"])


async def test_who_stands_in_line_for_a_slot_does_not_hold_up_a_stop(
    queue: SqliteQueue, play: Play, tmp_path: Path
) -> None:
    release = asyncio.Event()
    play.deeds["1"] = [held_by(release)]
    await sent(queue, order("1", "a"))
    seen = Seen(queue)
    async with at_work(made(seen, play, tmp_path, max_runs=lambda: 1, pauses=replace(PAUSES, slot_s=3600.0))) as worker:
        await play.until(lambda play: bool(play.begun))
        await sent(queue, order("2", "b"))
        await seen.until_received("b", 1)
        worker.stop()
        release.set()
    assert play.done == ["1"]


async def test_whoever_came_often_and_finds_no_slot_is_not_overtaken(
    queue: SqliteQueue, play: Play, tmp_path: Path
) -> None:
    """More of a group than one receive gives: a successor would go behind those that are left in the queue."""
    names = [f"b.{number:02}" for number in range(12)]
    await sent(queue, *(order(name, "b") for name in names))
    for _ in range(2):
        for message in await queue.receive(10, 0):
            await queue.postpone(message, 0)
    release = asyncio.Event()
    play.deeds["b.00"] = [held_by(release)]
    seen = Seen(queue)
    async with at_work(made(seen, play, tmp_path, max_runs=lambda: 0 if not release.is_set() else 1)):
        await seen.until_received("b", 10)
        await queue.send(encode_envelope(EventEnvelope(identity="i", body="{}")), group="i", dedup_id="i")
        await play.until(lambda play: bool(play.events))
        release.set()
        await sent(queue, order("1", "a"))
        await play.until(lambda play: len(play.done) == 13)
    assert [name for name in play.done if name != "1"] == names


async def test_a_process_whose_slots_are_taken_leaves_orders_to_one_that_has_room(
    either: Queue, play: Play, tmp_path: Path
) -> None:
    """Those that it holds would wait for the longest run of all."""
    release, other = asyncio.Event(), Play()
    play.deeds["held"] = [held_by(release)]
    await sent(either, order("held", "held"))
    async with at_work(made(either, play, tmp_path, max_runs=lambda: 1)):
        await play.until(lambda play: bool(play.begun))
        async with at_work(made(either, other, tmp_path, max_runs=lambda: 50)):
            names = [f"{group}.{number}" for number in range(2) for group in "abcdefghijklmnopqrst"]
            await sent(either, *(order(name, name[0]) for name in names))
            await other.until(lambda other: len(other.done) == len(names))
            release.set()
    assert play.done == ["held"]


async def test_the_number_of_slots_is_asked_each_time(queue: SqliteQueue, play: Play, tmp_path: Path) -> None:
    most = [0]
    seen = Seen(queue)
    await sent(queue, order("1"))
    async with at_work(made(seen, play, tmp_path, max_runs=lambda: most[0])):
        await seen.until_received("s", 2)
        assert not play.begun
        most[0] = 1
        await play.until(lambda play: play.done == ["1"])


async def test_what_a_waiting_order_has_seen_comes_back_with_it(queue: SqliteQueue, play: Play, tmp_path: Path) -> None:
    watched: list[str] = []

    async def watch(one: WorkOrder) -> RetryLater | None:
        watched.append(one.watched)
        more = msgspec.structs.replace(one, watched=one.watched + "x")
        return RetryLater(1.0, more, "not settled") if len(watched) < 4 else None

    play.deeds["1"] = [watch]
    await sent(queue, order("1"))
    async with at_work(made(queue, play, tmp_path)):
        await play.until(lambda play: play.done == ["1"])
    assert watched == ["", "x", "xx", "xxx"]
    assert [count for _, count, _ in play.begun] == [0, 1, 2, 3]


async def test_what_has_waited_still_has_all_its_tries(either: Queue, play: Play, tmp_path: Path) -> None:
    """Every receive counts as a try, and one that only led to waiting must not."""
    play.deeds["1"] = [waits, breaks, breaks, done]
    await sent(either, order("1"), order("2"))
    async with at_work(made(either, play, tmp_path)):
        await play.until(lambda play: len(play.done) == 2)
    assert play.done == ["1", "2"]
    assert [last_try for name, _, last_try in play.begun if name == "1"] == [False, False, False, True]
    assert not await either.list_dead_letters()


async def test_many_who_wait_for_a_slot_are_looked_at_one_after_the_other(
    queue: SqliteQueue, play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a long line would be taken from the queue and given back all the time."""
    monkeypatch.setattr("hummingbird.service.worker.SLOT_LOOK_S", 1_000.0)
    pauses: list[int] = []
    seen, postpone = Seen(queue), queue.postpone

    async def postponed(message: QueueMessage, seconds: int) -> None:
        pauses.append(seconds)
        await postpone(message, seconds)

    monkeypatch.setattr(queue, "postpone", postponed)
    await sent(queue, *(order(name, name) for name in "abc"))
    async with at_work(made(seen, play, tmp_path, max_runs=lambda: 0)):
        await seen.until_received("a", 2)
    assert not play.begun
    first, second, third = sorted(pauses)[:3]
    assert (first, second > 900, third > 1_900) == (1, True, True)


async def test_an_order_without_a_slot_is_free_for_others_at_once_when_there_is_a_stop(
    queue: SqliteQueue, play: Play, tmp_path: Path
) -> None:
    await sent(queue, order("1", "a"), order("2", "b"))
    release = asyncio.Event()
    play.deeds["1"] = [held_by(release)]
    seen = Seen(queue)
    async with at_work(made(seen, play, tmp_path, max_runs=lambda: 1, pauses=replace(PAUSES, slot_s=LONG_S))) as worker:
        await play.until(lambda play: bool(play.begun))
        await seen.until_received("b", 1)
        worker.stop()
        release.set()
    assert [name for name, *_ in bodies(await left(queue))] == ["2"]
