"""E3, E4: what is on the queue is done, in order, once, within the slots, and nothing is lost on the way."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
import pytest

from hummingbird.adapters.queues.sqlite import SqliteQueue
from hummingbird.adapters.stores.folder_objects import FolderObjects
from hummingbird.domain.errors import ForgeDown, QueueUnusable, SandboxUnavailable, WriteUncertain
from hummingbird.domain.orders import Arrived, WorkOrder, written
from hummingbird.ports.queue import Message, Queue
from hummingbird.service.envelopes import opened
from hummingbird.service.stages import Later
from tests.contracts.queues.backends.ministack import SURROUNDINGS, Ministack, serving
from tests.contracts.queues.backends.sqlite import SqliteBackend
from tests.contracts.queues.stage import Backend, Site
from tests.service.working import (
    LONG_S,
    PATIENCE_S,
    Deed,
    Play,
    Seen,
    at_work,
    breaks,
    left,
    made,
    order,
    sent,
    waits,
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ministack]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SURROUNDINGS.items():
            patch.setenv(name, value)
        with serving(tmp_path_factory.mktemp("ministack")) as server:
            yield server


@pytest.fixture(params=["sqlite", "sqs"])
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> Site:
    backend: Backend = SqliteBackend(tmp_path)
    if request.param == "sqs":
        backend = request.getfixturevalue("server")
    return await backend.site()


@pytest.fixture
async def either(site: Site) -> AsyncIterator[Queue]:
    """Each of the two queues in turn."""
    queue = site.open(LONG_S)
    yield queue
    await queue.close()


@pytest.fixture
async def queue(tmp_path: Path) -> AsyncIterator[SqliteQueue]:
    queue = SqliteQueue(tmp_path / "queue.sqlite", LONG_S)
    yield queue
    await queue.close()


@pytest.fixture
async def play() -> Play:
    return Play()


async def down(one: WorkOrder) -> None:
    raise SandboxUnavailable("The cluster is away; try again later.")


async def away(one: WorkOrder) -> None:
    raise ForgeDown("GitLab is away.")


async def doubtful(one: WorkOrder) -> None:
    raise WriteUncertain("Whether GitLab has it, nobody knows.")


async def forever(one: WorkOrder) -> None:
    await asyncio.Event().wait()


def bodies(messages: list[Message]) -> list[tuple[str, int, int]]:
    found = [(opened(message.body), message.receives) for message in messages]
    return [(one.id, one.waits, receives) for one, receives in found if isinstance(one, WorkOrder)]


async def test_an_event_becomes_orders_that_are_done_and_nothing_is_left_e2(
    either: Queue, play: Play, tmp_path: Path
) -> None:
    play.orders_of["i"] = (order("1", "s"), order("2", "t"))
    await either.send(written(Arrived(identity="i", body="{}")), group="i", dedup_id="i")
    async with at_work(made(either, play, tmp_path)):
        await play.until(lambda play: len(play.done) == 2)
    assert sorted(play.done) == ["1", "2"]
    assert not await left(either)
    assert not await either.dead()


async def test_a_redelivered_event_makes_its_orders_once_e2(queue: SqliteQueue, play: Play, tmp_path: Path) -> None:
    play.orders_of["i"] = (order("1"),)
    for dedup_id in ("first", "again"):
        await queue.send(written(Arrived(identity="i", body="{}")), group="i", dedup_id=dedup_id)
    async with at_work(made(queue, play, tmp_path)):
        await play.until(lambda play: len(play.events) == 2 and len(play.done) == 1)
    assert play.done == ["1"]
    assert not await left(queue)


async def test_nothing_overtakes_an_order_that_waits_however_often_e3(
    either: Queue, play: Play, tmp_path: Path
) -> None:
    await sent(either, *(order(name) for name in "123"))
    play.deeds["1"] = [waits, waits, waits, _done]
    async with at_work(made(either, play, tmp_path)):
        await play.until(lambda play: len(play.done) == 3)
    assert play.done == ["1", "2", "3"]
    assert not any(last_try for *_, last_try in play.begun), "waiting costs no try"
    assert not await left(either)
    assert not await either.dead()


async def test_nothing_overtakes_an_order_that_fails_e3(either: Queue, play: Play, tmp_path: Path) -> None:
    await sent(either, *(order(name) for name in "123"))
    play.deeds["1"] = [down, breaks, _done]
    async with at_work(made(either, play, tmp_path)):
        await play.until(lambda play: len(play.done) == 3)
    assert play.done == ["1", "2", "3"]
    assert [last_try for name, _, last_try in play.begun if name == "1"] == [False, False, True]
    assert [last_try for name, _, last_try in play.begun if name != "1"] == [False, False]


async def test_what_fails_three_times_is_a_dead_letter_and_its_group_goes_on_with_all_its_tries_e3(
    either: Queue, play: Play, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await sent(either, *(order(name) for name in "123"))
    play.deeds["1"] = [down]
    play.deeds["2"] = [down, down, _done]
    async with at_work(made(either, play, tmp_path)):
        await play.until(lambda play: len(play.done) == 2)
    assert play.done == ["2", "3"]
    assert [name for name, *_ in play.begun].count("1") == 3
    assert not await left(either)
    assert [opened(letter.body) for letter in await either.dead()] == [order("1")]
    assert "Order 1 of session s failed for the last time and is a dead letter: The cluster is away" in caplog.text
    assert "Traceback" not in caplog.text


async def test_while_gitlab_is_away_an_order_waits_at_no_cost_of_a_try_and_nothing_overtakes_it_e3_n3(
    either: Queue, play: Play, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Ten minutes are more than three tries last: what a run has found must not be a dead letter then."""
    await sent(either, order("1"), order("2"))
    play.deeds["1"] = [away, doubtful, away, away, _done]
    async with at_work(made(either, play, tmp_path, away_s=(1, 1, 1, 1))):
        await play.until(lambda play: len(play.done) == 2)
    assert play.done == ["1", "2"]
    assert not any(last_try for *_, last_try in play.begun)
    assert "Order 1 of session s waits 1 s for GitLab: GitLab is away." in caplog.text
    assert not await left(either)
    assert not await either.dead()


async def test_while_gitlab_is_away_an_event_waits_at_no_cost_of_a_try_e3(
    either: Queue, play: Play, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    play.orders_of["i"] = (order("1"),)

    async def four_times(_: WorkOrder) -> None:
        if len(play.events) <= 4:
            raise ForgeDown("GitLab is away.")

    play.on_event = four_times
    await either.send(written(Arrived(identity="i", body="{}")), group="i", dedup_id="i")
    async with at_work(made(either, play, tmp_path, away_s=(1, 1, 1, 1))):
        await play.until(lambda play: play.done == ["1"])
    assert len(play.events) == 5
    assert "Event i waits 1 s for GitLab: GitLab is away." in caplog.text
    assert not await left(either)
    assert not await either.dead()


async def test_a_gitlab_that_stays_away_uses_up_the_tries_and_the_last_of_them_is_told_so_e3_n6(
    either: Queue, play: Play, tmp_path: Path
) -> None:
    await sent(either, order("1"))
    play.deeds["1"] = [away]
    async with at_work(made(either, play, tmp_path, away_s=(1, 1))):
        await play.until(lambda play: len(play.begun) == 5)
    assert [last_try for *_, last_try in play.begun] == [False, False, False, False, True]
    (letter,) = await either.dead()
    dead = opened(letter.body)
    assert isinstance(dead, WorkOrder)
    assert (dead.id, dead.put_off) == ("1", 2)


@pytest.mark.parametrize("body", ["nonsense", '{"kind":"order","id":"o"}', '{"kind":"treaty","version":9}'])
async def test_what_nobody_can_read_dies_and_holds_nobody_up_for_ever_e3(
    queue: SqliteQueue, play: Play, tmp_path: Path, body: str
) -> None:
    await queue.send(body, group="s", dedup_id="bad")
    await sent(queue, order("1"))
    async with at_work(made(queue, play, tmp_path)):
        await play.until(lambda play: play.done == ["1"])
    assert [letter.body for letter in await queue.dead()] == [body]


async def test_a_bug_in_a_stage_is_told_whole_and_the_worker_goes_on_e3(
    queue: SqliteQueue, play: Play, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await sent(queue, order("1", "a"), order("2", "b"))
    play.deeds["1"] = [breaks]
    async with at_work(made(queue, play, tmp_path)):
        await play.until(lambda play: len(play.begun) == 4)
    assert play.done == ["2"]
    assert "Order 1 of session a failed and is tried again in 0 s: a bug" in caplog.text
    assert "Traceback" in caplog.text


async def test_a_long_run_is_kept_by_heart_beats_and_deleted_only_when_it_has_ended_e3(
    site: Site, play: Play, tmp_path: Path
) -> None:
    queue, other = site.open(2), site.open(LONG_S)
    release = asyncio.Event()
    play.deeds["1"] = [_held_by(release)]
    await sent(queue, order("1"), order("2"))
    async with at_work(made(queue, play, tmp_path, visibility_s=2)):
        await play.until(lambda play: bool(play.begun))
        assert not await other.receive(10, 3.5), "both are kept, the one that is behind too"
        release.set()
        await play.until(lambda play: len(play.done) == 2)
    assert play.begun == [("1", 0, False), ("2", 0, False)]
    assert not await left(other)
    await queue.close()
    await other.close()


async def test_work_whose_message_somebody_else_has_is_stopped_e3(play: Play, tmp_path: Path) -> None:
    clock = [1_000.0]
    queue, other = (SqliteQueue(tmp_path / "queue.sqlite", 1, lambda: clock[0]) for _ in range(2))
    stopped = asyncio.Event()
    play.deeds["1"] = [_told_when_cancelled(stopped)]
    await sent(queue, order("1"), order("2"))
    async with at_work(made(Seen(queue, once=True), play, tmp_path, visibility_s=1)):
        await play.until(lambda play: bool(play.begun))
        clock[0] += 100
        (theirs, behind) = await other.receive(10, 5)
        async with asyncio.timeout(PATIENCE_S):
            await stopped.wait()
    await other.delete(theirs)
    await other.delete(behind)
    assert not play.done
    await queue.close()
    await other.close()


async def test_full_slots_hold_up_neither_events_nor_cost_tries_e4(either: Queue, play: Play, tmp_path: Path) -> None:
    release = asyncio.Event()
    play.deeds["1"] = [_held_by(release)]
    await sent(either, order("1", "a"))
    seen = Seen(either)
    async with at_work(made(seen, play, tmp_path, max_runs=lambda: 1)) as worker:
        await play.until(lambda play: bool(play.begun))
        await sent(either, order("2", "b"), order("3", "b"))
        await seen.until_received("b", 7)
        await either.send(written(Arrived(identity="i", body="{}")), group="i", dedup_id="i")
        await play.until(lambda play: bool(play.events))
        assert worker.running == 1
        assert [name for name, *_ in play.begun] == ["1"]
        release.set()
        await play.until(lambda play: len(play.done) == 3)
    assert play.done == ["1", "2", "3"]
    assert not any(last_try for *_, last_try in play.begun)
    assert not await either.dead()


async def test_a_slot_that_becomes_free_is_taken_at_once_e4(queue: SqliteQueue, play: Play, tmp_path: Path) -> None:
    """Not when somebody looks at the queue again: that would be in an hour."""
    release = asyncio.Event()
    play.deeds["1"] = [_held_by(release)]
    await sent(queue, order("1", "a"))
    seen = Seen(queue)
    async with at_work(made(seen, play, tmp_path, max_runs=lambda: 1, slot_pause_s=3600.0)):
        await play.until(lambda play: bool(play.begun))
        await sent(queue, order("2", "b"))
        await seen.until_received("b", 1)
        release.set()
        await play.until(lambda play: play.done == ["1", "2"])


async def test_who_stands_in_line_for_a_slot_does_not_hold_up_a_stop_e4(
    queue: SqliteQueue, play: Play, tmp_path: Path
) -> None:
    release = asyncio.Event()
    play.deeds["1"] = [_held_by(release)]
    await sent(queue, order("1", "a"))
    seen = Seen(queue)
    async with at_work(made(seen, play, tmp_path, max_runs=lambda: 1, slot_pause_s=3600.0)) as worker:
        await play.until(lambda play: bool(play.begun))
        await sent(queue, order("2", "b"))
        await seen.until_received("b", 1)
        worker.stop()
        release.set()
    assert play.done == ["1"]


async def test_whoever_came_often_and_finds_no_slot_is_not_overtaken_e3(
    queue: SqliteQueue, play: Play, tmp_path: Path
) -> None:
    """More of a group than one receive gives: a successor would go behind those that are left in the queue."""
    names = [f"b.{number:02}" for number in range(12)]
    await sent(queue, *(order(name, "b") for name in names))
    for _ in range(2):
        for message in await queue.receive(10, 0):
            await queue.postpone(message, 0)
    release = asyncio.Event()
    play.deeds["b.00"] = [_held_by(release)]
    seen = Seen(queue)
    async with at_work(made(seen, play, tmp_path, max_runs=lambda: 0 if not release.is_set() else 1)):
        await seen.until_received("b", 10)
        await queue.send(written(Arrived(identity="i", body="{}")), group="i", dedup_id="i")
        await play.until(lambda play: bool(play.events))
        release.set()
        await sent(queue, order("1", "a"))
        await play.until(lambda play: len(play.done) == 13)
    assert [name for name in play.done if name != "1"] == names


async def test_the_number_of_slots_is_asked_each_time_e4(queue: SqliteQueue, play: Play, tmp_path: Path) -> None:
    most = [0]
    seen = Seen(queue)
    await sent(queue, order("1"))
    async with at_work(made(seen, play, tmp_path, max_runs=lambda: most[0])):
        await seen.until_received("s", 2)
        assert not play.begun
        most[0] = 1
        await play.until(lambda play: play.done == ["1"])


async def test_what_a_waiting_order_has_seen_comes_back_with_it_e3(
    queue: SqliteQueue, play: Play, tmp_path: Path
) -> None:
    watched: list[str] = []

    async def watch(one: WorkOrder) -> Later | None:
        watched.append(one.watched)
        more = msgspec.structs.replace(one, watched=one.watched + "x")
        return Later(1.0, more, "not settled") if len(watched) < 4 else None

    play.deeds["1"] = [watch]
    await sent(queue, order("1"))
    async with at_work(made(queue, play, tmp_path)):
        await play.until(lambda play: play.done == ["1"])
    assert watched == ["", "x", "xx", "xxx"]
    assert [count for _, count, _ in play.begun] == [0, 1, 2, 3]


async def test_what_has_waited_still_has_all_its_tries_e3(either: Queue, play: Play, tmp_path: Path) -> None:
    """Every receive counts as a try, and one that only led to waiting must not."""
    play.deeds["1"] = [waits, breaks, breaks, _done]
    await sent(either, order("1"), order("2"))
    async with at_work(made(either, play, tmp_path)):
        await play.until(lambda play: len(play.done) == 2)
    assert play.done == ["1", "2"]
    assert [last_try for name, _, last_try in play.begun if name == "1"] == [False, False, False, True]
    assert not await either.dead()


async def test_many_who_wait_for_a_slot_are_looked_at_one_after_the_other_e4(
    queue: SqliteQueue, play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a long line would be taken from the queue and given back all the time."""
    monkeypatch.setattr("hummingbird.service.worker.SLOT_LOOK_S", 1_000.0)
    pauses: list[int] = []
    seen, postpone = Seen(queue), queue.postpone

    async def postponed(message: Message, seconds: int) -> None:
        pauses.append(seconds)
        await postpone(message, seconds)

    monkeypatch.setattr(queue, "postpone", postponed)
    await sent(queue, *(order(name, name) for name in "abc"))
    async with at_work(made(seen, play, tmp_path, max_runs=lambda: 0)):
        await seen.until_received("a", 2)
    assert not play.begun
    first, second, third = sorted(pauses)[:3]
    assert (first, second > 900, third > 1_900) == (1, True, True)


async def test_an_order_without_a_slot_is_free_for_others_at_once_when_there_is_a_stop_e4(
    queue: SqliteQueue, play: Play, tmp_path: Path
) -> None:
    await sent(queue, order("1", "a"), order("2", "b"))
    release = asyncio.Event()
    play.deeds["1"] = [_held_by(release)]
    seen = Seen(queue)
    async with at_work(made(seen, play, tmp_path, max_runs=lambda: 1, slot_pause_s=LONG_S)) as worker:
        await play.until(lambda play: bool(play.begun))
        await seen.until_received("b", 1)
        worker.stop()
        release.set()
    assert [name for name, *_ in bodies(await left(queue))] == ["2"]


async def test_a_stop_takes_nothing_more_and_lets_runs_end_e4(queue: SqliteQueue, play: Play, tmp_path: Path) -> None:
    release = asyncio.Event()
    play.deeds["1"] = [_held_by(release)]
    await sent(queue, order("1"), order("2"))
    async with at_work(made(queue, play, tmp_path)) as worker:
        await play.until(lambda play: bool(play.begun))
        worker.stop()
        release.set()
    assert play.done == ["1"]
    assert bodies(await left(queue)) == [("2", 0, 2)]


@pytest.mark.parametrize("stops", [1, 2])
async def test_what_does_not_end_in_time_is_parked_in_order_for_another_process_e4(
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
    assert [(name, waited) for name, waited, _ in found] == [("1", 1), ("2", 1)]
    # a poll that SQS still had from us may have got them, and gave them back
    assert {receives for *_, receives in found} <= ({1} if isinstance(either, SqliteQueue) else {1, 2})
    assert not play.done


async def test_an_event_in_the_middle_of_its_work_is_given_back_e4(
    queue: SqliteQueue, play: Play, tmp_path: Path
) -> None:
    play.on_event = forever
    await queue.send(written(Arrived(identity="i", body="{}")), group="i", dedup_id="i")
    async with at_work(made(queue, play, tmp_path, grace_s=0)) as worker:
        await play.until(lambda play: bool(play.events))
        worker.stop()
    (message,) = await left(queue)
    assert opened(message.body) == Arrived(identity="i", body="{}")


async def test_cancelling_the_worker_parks_everything_e4(queue: SqliteQueue, play: Play, tmp_path: Path) -> None:
    play.deeds["1"] = [forever]
    await sent(queue, order("1"))
    running = asyncio.create_task(made(queue, play, tmp_path).run())
    await play.until(lambda play: bool(play.begun))
    running.cancel()
    await asyncio.wait((running,))
    assert running.cancelled()
    assert bodies(await left(queue)) == [("1", 1, 1)]


async def test_a_queue_that_cannot_be_reached_is_told_once_and_asked_again_e3(
    queue: SqliteQueue, play: Play, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await sent(queue, order("1"))
    seen = Seen(queue, faults=[QueueUnusable("It is away; wait."), QueueUnusable("It is still away; wait.")])
    async with at_work(made(seen, play, tmp_path)):
        await play.until(lambda play: play.done == ["1"])
    told = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert told == [
        "The queue cannot be used, and is asked again until it can: It is away; wait.",
        "The queue can be used again.",
    ]


async def test_the_body_of_a_large_event_is_forgotten_when_it_is_worked_off_e1(
    queue: SqliteQueue, play: Play, tmp_path: Path
) -> None:
    store = FolderObjects(tmp_path / "objects")
    await store.put("events/i", b"{}")
    await queue.send(written(Arrived(identity="i", reference="events/i")), group="i", dedup_id="i")
    async with at_work(made(queue, play, tmp_path)):
        await play.until(lambda play: bool(play.events))
    assert not await store.names("")


async def test_ten_workers_at_one_queue_keep_every_group_in_order_and_do_nothing_twice_e3(
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


async def _done(one: WorkOrder) -> None:
    return None


def _held_by(release: asyncio.Event) -> Deed:
    async def deed(one: WorkOrder) -> None:
        await release.wait()

    return deed


def _told_when_cancelled(stopped: asyncio.Event) -> Deed:
    async def deed(one: WorkOrder) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.set()
            raise

    return deed
