"""What is on the queue is done, in order and once; what fails comes again, and what waits costs nothing."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from hummingbird.core.errors import GitLabUnavailable
from hummingbird.core.orders import EventEnvelope, WorkOrder, encode_envelope
from hummingbird.core.protocols.queues import Queue
from hummingbird.queues.sqlite_queue import SqliteQueue
from hummingbird.service.envelopes import parse_envelope
from tests.contracts.queues.stage import Site
from tests.service.worker.deeds import away, done, doubtful, down, held_by, told_when_cancelled
from tests.service.working import (
    LONG_S,
    PATIENCE_S,
    PAUSES,
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


async def test_an_event_becomes_orders_that_are_done_and_nothing_is_left(
    either: Queue, play: Play, tmp_path: Path
) -> None:
    play.orders_of["i"] = (order("1", "s"), order("2", "t"))
    await either.send(encode_envelope(EventEnvelope(identity="i", body="{}")), group="i", dedup_id="i")
    async with at_work(made(either, play, tmp_path)):
        await play.until(lambda play: len(play.done) == 2)
    assert sorted(play.done) == ["1", "2"]
    assert not await left(either)
    assert not await either.list_dead_letters()


async def test_a_redelivered_event_makes_its_orders_once(queue: SqliteQueue, play: Play, tmp_path: Path) -> None:
    play.orders_of["i"] = (order("1"),)
    for dedup_id in ("first", "again"):
        await queue.send(encode_envelope(EventEnvelope(identity="i", body="{}")), group="i", dedup_id=dedup_id)
    async with at_work(made(queue, play, tmp_path)):
        await play.until(lambda play: len(play.events) == 2 and len(play.done) == 1)
    assert play.done == ["1"]
    assert not await left(queue)


async def test_nothing_overtakes_an_order_that_waits_however_often(either: Queue, play: Play, tmp_path: Path) -> None:
    await sent(either, *(order(name) for name in "123"))
    play.deeds["1"] = [waits, waits, waits, done]
    async with at_work(made(either, play, tmp_path)):
        await play.until(lambda play: len(play.done) == 3)
    assert play.done == ["1", "2", "3"]
    assert not any(last_try for *_, last_try in play.begun), "waiting costs no try"
    assert not await left(either)
    assert not await either.list_dead_letters()


async def test_nothing_overtakes_an_order_that_fails(either: Queue, play: Play, tmp_path: Path) -> None:
    await sent(either, *(order(name) for name in "123"))
    play.deeds["1"] = [down, breaks, done]
    async with at_work(made(either, play, tmp_path)):
        await play.until(lambda play: len(play.done) == 3)
    assert play.done == ["1", "2", "3"]
    assert [last_try for name, _, last_try in play.begun if name == "1"] == [False, False, True]
    assert [last_try for name, _, last_try in play.begun if name != "1"] == [False, False]


async def test_what_fails_three_times_is_a_dead_letter_and_its_group_goes_on_with_all_its_tries(
    either: Queue, play: Play, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await sent(either, *(order(name) for name in "123"))
    play.deeds["1"] = [down]
    play.deeds["2"] = [down, down, done]
    async with at_work(made(either, play, tmp_path)):
        await play.until(lambda play: len(play.done) == 2)
    assert play.done == ["2", "3"]
    assert [name for name, *_ in play.begun].count("1") == 3
    assert not await left(either)
    assert [parse_envelope(letter.body) for letter in await either.list_dead_letters()] == [order("1")]
    assert "Order 1 of session s failed for the last time and becomes a dead letter: The cluster is away" in caplog.text
    assert "Traceback" not in caplog.text


async def test_while_gitlab_is_away_an_order_waits_at_no_cost_of_a_try_and_nothing_overtakes_it(
    either: Queue, play: Play, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Ten minutes are more than three tries last: what a run has found must not be a dead letter then."""
    await sent(either, order("1"), order("2"))
    play.deeds["1"] = [away, doubtful, away, away, done]
    async with at_work(made(either, play, tmp_path, pauses=replace(PAUSES, outages_s=(1, 1, 1, 1)))):
        await play.until(lambda play: len(play.done) == 2)
    assert play.done == ["1", "2"]
    assert not any(last_try for *_, last_try in play.begun)
    assert "Order 1 of session s waits 1 s for GitLab: GitLab is away." in caplog.text
    assert not await left(either)
    assert not await either.list_dead_letters()


async def test_while_gitlab_is_away_an_event_waits_at_no_cost_of_a_try(
    either: Queue, play: Play, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    play.orders_of["i"] = (order("1"),)

    async def four_times(_: WorkOrder) -> None:
        if len(play.events) <= 4:
            raise GitLabUnavailable("GitLab is away.")

    play.on_event = four_times
    await either.send(encode_envelope(EventEnvelope(identity="i", body="{}")), group="i", dedup_id="i")
    async with at_work(made(either, play, tmp_path, pauses=replace(PAUSES, outages_s=(1, 1, 1, 1)))):
        await play.until(lambda play: play.done == ["1"])
    assert len(play.events) == 5
    assert "Event i waits 1 s for GitLab: GitLab is away." in caplog.text
    assert not await left(either)
    assert not await either.list_dead_letters()


async def test_a_gitlab_that_stays_away_uses_up_the_tries_and_the_last_of_them_is_told_so(
    either: Queue, play: Play, tmp_path: Path
) -> None:
    await sent(either, order("1"))
    play.deeds["1"] = [away]
    async with at_work(made(either, play, tmp_path, pauses=replace(PAUSES, outages_s=(1, 1)))):
        await play.until(lambda play: len(play.begun) == 5)
    assert [last_try for *_, last_try in play.begun] == [False, False, False, False, True]
    (letter,) = await either.list_dead_letters()
    dead = parse_envelope(letter.body)
    assert dead == order("1"), "whoever retries it gives GitLab as much time as before"


@pytest.mark.parametrize("body", ["nonsense", '{"kind":"order","id":"o"}', '{"kind":"treaty","version":9}'])
async def test_what_nobody_can_read_dies_and_holds_nobody_up_for_ever(
    queue: SqliteQueue, play: Play, tmp_path: Path, body: str
) -> None:
    await queue.send(body, group="s", dedup_id="bad")
    await sent(queue, order("1"))
    async with at_work(made(queue, play, tmp_path)):
        await play.until(lambda play: play.done == ["1"])
    assert [letter.body for letter in await queue.list_dead_letters()] == [body]


async def test_a_bug_in_a_stage_is_told_whole_and_the_worker_goes_on(
    queue: SqliteQueue, play: Play, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await sent(queue, order("1", "a"), order("2", "b"))
    play.deeds["1"] = [breaks]
    async with at_work(made(queue, play, tmp_path)):
        await play.until(lambda play: len(play.begun) == 4)
    assert play.done == ["2"]
    assert "Order 1 of session a failed and will be retried in 0 s: a bug" in caplog.text
    assert "Traceback" in caplog.text


async def test_a_long_run_is_kept_by_heart_beats_and_deleted_only_when_it_has_ended(
    site: Site, play: Play, tmp_path: Path
) -> None:
    queue, other = site.open(2), site.open(LONG_S)
    release = asyncio.Event()
    play.deeds["1"] = [held_by(release)]
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


async def test_work_whose_message_somebody_else_has_is_stopped(play: Play, tmp_path: Path) -> None:
    clock = [1_000.0]
    queue, other = (SqliteQueue(tmp_path / "queue.sqlite", 1, lambda: clock[0]) for _ in range(2))
    stopped = asyncio.Event()
    play.deeds["1"] = [told_when_cancelled(stopped)]
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
