"""What networks, other processes and damage do to what is spent in a bucket: nothing counts twice, nothing is
lost that a process remembers, and nobody waits long."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from decimal import Decimal
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hummingbird.core.errors import JournalUnwritable
from hummingbird.core.protocols.storage import ObjectVersion, VersionedContent
from hummingbird.core.sessions import (
    SHARED_REST_S,
    SHARED_TRIES,
    SPENDERS,
    SPENDING_BYTES,
    SPENDING_DAYS,
    SPENDING_FRESH_S,
)
from hummingbird.storage import compare_and_swap as exchanging
from hummingbird.storage import spending_store
from hummingbird.storage.object_store import BucketObjectStore
from hummingbird.storage.spending_store import BucketSpendingStore, SpendingTally, encode_sheet
from tests.contracts.sessions.unreliable import Mood, UnreliableObjects
from tests.contracts.shared.sites import DAY, NOON, Counted, noon
from tests.thoroughly import tries

CENT = Decimal("0.01")
LOST = (Mood.ANSWER_LOST, Mood.DENIED)


@pytest.fixture
def bucket() -> BucketObjectStore:
    return BucketObjectStore.in_memory()


@pytest.fixture
def away(bucket: BucketObjectStore) -> UnreliableObjects:
    return UnreliableObjects(bucket)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchanging, "SHARED_PAUSE_S", 0.0001)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Time goes on."""
    forward = 0.0

    def go_on(seconds: float) -> None:
        nonlocal forward
        forward += seconds

    for module in (spending_store, exchanging):
        monkeypatch.setattr(module, "monotonic", lambda: time.monotonic() + forward)
    return go_on


def opened(objects: UnreliableObjects | BucketObjectStore, now: Callable[[], float] = noon) -> BucketSpendingStore:
    return BucketSpendingStore(objects, "s3://bucket/", now)


async def sheet(bucket: BucketObjectStore) -> str:
    """The name of the only one."""
    (name,) = await bucket.list_names("spending")
    return name


class Crowded(UnreliableObjects):
    """Somebody else is there right after a write, before its answer is heard or looked for."""

    def __init__(self, objects: BucketObjectStore, somebody: Callable[[], Awaitable[None]]) -> None:
        super().__init__(objects)
        self._somebody = somebody

    async def compare_and_swap(self, name: str, content: bytes, known: ObjectVersion | None) -> ObjectVersion | None:
        try:
            return await super().compare_and_swap(name, content, known)
        finally:
            await self._somebody()


@pytest.mark.parametrize("mood", LOST)
async def test_an_answer_that_is_lost_counts_nothing_twice(away: UnreliableObjects, mood: Mood) -> None:
    spending = opened(away)
    for _ in range(3):
        away.moods.append(mood)
        await spending.add("one", CENT)
    assert await spending.usd_today("one") == await opened(away).usd_today("one") == 3 * CENT


@pytest.mark.parametrize("mood", LOST)
async def test_nor_does_one_that_is_lost_while_somebody_else_writes(bucket: BucketObjectStore, mood: Mood) -> None:
    """What is there is then not what was written, but what somebody made of it."""
    other, turns = opened(bucket), iter([True, False] * 3)

    async def somebody() -> None:
        if next(turns):
            await other.add("one", Decimal(1))

    crowded = Crowded(bucket, somebody)
    spending = opened(crowded)
    for _ in range(3):
        crowded.moods.append(mood)
        await spending.add("one", CENT)
    assert await opened(bucket).usd_today("one") == 3 + 3 * CENT


@pytest.mark.parametrize("first", ["the late one", "the next one"])
async def test_a_write_that_comes_late_counts_once(
    away: UnreliableObjects, later: Callable[[float], None], first: str
) -> None:
    spending = opened(away)
    await spending.add("one", CENT)
    away.moods.extend([Mood.LATE] * SHARED_TRIES)
    with pytest.raises(JournalUnwritable):
        await spending.add("one", CENT)
    later(SHARED_REST_S)
    if first == "the late one":
        assert (await away.arrive())[0]
    await spending.add("one", CENT)
    if first == "the next one":
        assert not any(await away.arrive())
    assert await spending.usd_today("one") == await opened(away).usd_today("one") == 3 * CENT


async def test_one_write_that_fails_while_reading_works_is_tried_again(away: UnreliableObjects) -> None:
    """As on a connection that had been idle for too long."""
    spending = opened(away)
    for mood in (Mood.REFUSED, Mood.LATE):
        away.moods.append(mood)
        await spending.add("one", CENT)
    assert await away.arrive() == [False]
    assert await opened(away).usd_today("one") == 2 * CENT


async def test_a_bucket_that_is_away_keeps_nobody_waiting_and_hears_of_everything_later(
    bucket: BucketObjectStore, later: Callable[[float], None]
) -> None:
    between = Counted(bucket)
    spending = opened(between)
    await spending.add("one", CENT)
    assert await spending.usd_today("one") == CENT
    between.away, between.asked = True, []
    for _ in range(5):
        with pytest.raises(
            JournalUnwritable, match=r"The record of spending s3://bucket/spending/\S+ cannot be used\. "
        ):
            await spending.add("one", CENT)
    assert between.asked == ["compare_and_swap", "get_versioned"], "and then it was left alone"
    assert await spending.usd_today("one") == 6 * CENT, "what was spent here counts at once"
    between.away = False
    assert await opened(bucket).usd_today("one") == CENT
    later(SHARED_REST_S)
    await spending.add("one", CENT)
    assert await opened(bucket).usd_today("one") == 7 * CENT


async def test_a_ceiling_that_cannot_be_checked_is_not_passed_silently(
    bucket: BucketObjectStore, later: Callable[[float], None]
) -> None:
    """A moment's absence ends no run: what others had spent is known for a while."""
    between, other = UnreliableObjects(bucket), opened(bucket)
    between.away = True
    with pytest.raises(JournalUnwritable, match="cannot be used"):
        await opened(between).usd_today("one")
    between.away, spending = False, opened(between)
    await other.add("one", CENT)
    assert await spending.usd_today("one") == CENT
    between.away = True
    assert await spending.usd_today("one") == CENT
    later(SPENDING_FRESH_S)
    with pytest.raises(JournalUnwritable, match="cannot be used"):
        await spending.usd_today("one")
    between.away = False
    assert await spending.usd_today("one") == CENT


async def test_a_total_is_as_old_as_the_question(bucket: BucketObjectStore, later: Callable[[float], None]) -> None:
    """A process may stand still before it reads the answer."""

    class Standing(UnreliableObjects):
        async def get_versioned(self, name: str, most_bytes: int | None = None) -> VersionedContent | None:
            found = await super().get_versioned(name, most_bytes)
            later(SPENDING_FRESH_S)
            return found

    between = Standing(bucket)
    spending = opened(between)
    assert await spending.usd_today("one") == 0
    between.away = True
    with pytest.raises(JournalUnwritable, match="cannot be used"):
        await spending.usd_today("one")


async def test_a_bucket_that_hangs_is_given_up_for_all_who_wait_together(
    away: UnreliableObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchanging, "SHARED_S", 2)
    spending = opened(away)
    away.moods.extend([Mood.HANGING] * 20)
    told = await asyncio.gather(*(spending.add("one", CENT) for _ in range(20)), return_exceptions=True)
    assert len(away.moods) == 19, "they waited for one write, not each for its own"
    assert {str(one).partition(".json ")[2] for one in told} == {
        "cannot be used: the store did not finish within 2 s. Check whether it works."
    }
    assert await spending.usd_today("one") == 20 * CENT


async def test_what_a_cancelled_run_spent_is_added_by_the_next_one(away: UnreliableObjects) -> None:
    spending = opened(away)
    away.moods.append(Mood.HANGING)
    adding = asyncio.ensure_future(spending.add("one", CENT))
    await away.hangs.wait()
    adding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await adding
    await spending.add("one", CENT)
    assert await away.arrive() == [False]
    assert await opened(away).usd_today("one") == 2 * CENT


@pytest.mark.parametrize("content", [b"", b"nonsense", b"[]", b'{"sheet":1,"spent":{"a":[1]}}', b'{"sheet":"\xff"}'])
async def test_a_damaged_record_is_a_sentence_and_comes_back_once_it_is_removed(
    bucket: BucketObjectStore, content: bytes
) -> None:
    one, other = opened(bucket), opened(bucket)
    await one.add("one", Decimal(1))
    await other.add("one", Decimal(2))
    name = await sheet(bucket)
    await bucket.put(name, content)
    for verb in (one.add("one", CENT), other.usd_today("one"), opened(bucket).usd_today("one")):
        with pytest.raises(JournalUnwritable, match=rf"s3://bucket/{name} is damaged: remove it\. Each process"):
            await verb
    await bucket.delete(name)
    assert await one.usd_today("one") == 1 + CENT
    await other.add("one", CENT)
    await one.add("one", CENT)
    assert await opened(bucket).usd_today("one") == 3 + 3 * CENT


async def test_a_newer_versions_record_is_left_alone(bucket: BucketObjectStore) -> None:
    spending = opened(bucket)
    await spending.add("one", CENT)
    await bucket.put(await sheet(bucket), b'{"sheet":2,"more":true}')
    for verb in (spending.add("one", CENT), spending.usd_today("one")):
        with pytest.raises(JournalUnwritable, match="was written by a newer version of Hummingbird: update this one"):
            await verb
    assert await bucket.get(await sheet(bucket)) == b'{"sheet":2,"more":true}'


async def test_a_record_stays_small_however_many_processes_there_are(bucket: BucketObjectStore) -> None:
    """Whoever was added up with others goes on counting right."""
    seconds = count()

    def now() -> float:
        return NOON + next(seconds)

    first = opened(bucket, now)
    await first.add("x" * 5_000, CENT)
    for _ in range(2 * SPENDERS):
        await opened(bucket, now).add("x" * 5_000, CENT)
    for _ in range(3):
        await first.add("x" * 5_000, CENT)
    assert await opened(bucket, now).usd_today("x" * 5_000) == (2 * SPENDERS + 4) * CENT
    (listed,) = await bucket.list_objects("spending")
    assert listed.size < SPENDING_BYTES / 4


async def test_days_that_nobody_asks_for_any_more_are_removed(bucket: BucketObjectStore) -> None:
    now = NOON
    spending = opened(bucket, lambda: now)
    for _ in range(SPENDING_DAYS + 5):
        await spending.add("one", CENT)
        now += DAY
    assert len(await bucket.list_names("spending")) == SPENDING_DAYS + 1
    assert await opened(bucket, lambda: now - DAY).usd_today("one") == CENT


async def test_a_call_costs_a_look_and_a_write(bucket: BucketObjectStore) -> None:
    between = Counted(bucket)
    spending = opened(between)
    await spending.usd_today("one")
    await spending.add("one", CENT)
    assert between.asked == ["get_versioned", "get_versioned", "compare_and_swap", "list_objects"], "the first of a day"
    between.asked = []
    for _ in range(3):
        await spending.usd_today("one")
        await spending.add("one", CENT)
    assert between.asked == ["get_versioned", "compare_and_swap"] * 3
    between.asked = []
    await asyncio.gather(*(spending.add("one", CENT) for _ in range(50)))
    assert between.asked == ["compare_and_swap"] * 2, (
        "what is spent at the same time is one write, and one that was under way"
    )


async def test_no_two_writes_are_alike(bucket: BucketObjectStore) -> None:
    """S3 would take one for the other: its versions are hashes of what was written."""
    tally = SpendingTally("one", "The record")
    content = encode_sheet(tally.apply_to(None, NOON))
    assert len({content, *(encode_sheet(tally.apply_to(content, NOON)) for _ in range(9))}) == 10


MOODS = st.sampled_from([Mood.FINE, Mood.REFUSED, Mood.ANSWER_LOST, Mood.DENIED, Mood.LATE])


@pytest.mark.thorough
@settings(max_examples=tries(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 2), st.lists(MOODS, min_size=1, max_size=3), st.booleans()), max_size=12))
async def test_whatever_the_network_does_all_is_counted_once_in_the_end(
    later: Callable[[float], None], steps: Sequence[tuple[int, list[Mood], bool]]
) -> None:
    """Three processes, one after the other; now and then what was late arrives."""
    bucket = BucketObjectStore.in_memory()
    networks = [UnreliableObjects(bucket) for _ in range(3)]
    processes, refused = [opened(network) for network in networks], 0
    for who, moods, arrives in steps:
        networks[who].moods.extend(moods)
        later(SHARED_REST_S)
        try:
            await processes[who].add("one", CENT)
        except JournalUnwritable:
            refused += 1
        if arrives:
            for network in networks:
                await network.arrive()
    for network, process in zip(networks, processes, strict=True):
        network.moods.clear()
        later(SHARED_REST_S)
        await process.add("one", CENT)
        await network.arrive()
    assert await opened(bucket).usd_today("one") == (len(steps) + 3) * CENT, f"{refused} were refused at first"
