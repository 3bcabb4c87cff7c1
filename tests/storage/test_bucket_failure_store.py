"""What networks, other processes, damage and time do to the ledger of known failures in a bucket."""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hummingbird.core.errors import JournalDamaged, JournalUnwritable, SessionUnreadable
from hummingbird.core.limits import (
    FAILURES_SEEN,
    KNOWN_DAYS,
    KNOWN_PLACES,
    KNOWN_SHARD_BYTES,
    KNOWN_SHARDS,
    KNOWN_TRACES,
)
from hummingbird.core.protocols.storage import AnalysisLink, FailureSighting, KnownFailureStore, ObjectVersion
from hummingbird.core.sessions import SHARED_HELD, SHARED_TRIES
from hummingbird.storage import bucket_failure_store
from hummingbird.storage import compare_and_swap as exchanging
from hummingbird.storage.bucket_failure_store import BucketKnownFailureStore, failure_shard_number
from hummingbird.storage.failure_store import SqliteKnownFailureStore
from hummingbird.storage.object_store import BucketObjectStore
from tests.contracts.sessions.unreliable import Mood, UnreliableObjects
from tests.contracts.shared.sites import DAY, NOON, ONE, Counted
from tests.thoroughly import tries

LOST = (Mood.ANSWER_LOST, Mood.DENIED)
MIDNIGHT = NOON - DAY / 2
ELSEWHERE = next(
    name for name in map(str, range(99)) if failure_shard_number(name) != failure_shard_number(ONE.fingerprint)
)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchanging, "SHARED_PAUSE_S", 0.0001)


@pytest.fixture
def bucket() -> BucketObjectStore:
    return BucketObjectStore.in_memory()


@pytest.fixture
def away(bucket: BucketObjectStore) -> UnreliableObjects:
    return UnreliableObjects(bucket)


def opened(objects: UnreliableObjects | BucketObjectStore) -> BucketKnownFailureStore:
    return BucketKnownFailureStore(objects, "s3://bucket/")


async def count(ledger: KnownFailureStore, fingerprint: str = ONE.fingerprint) -> int:
    found = await ledger.find_failure(ONE.project, fingerprint)
    return 0 if found is None else found.count


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
    ledger = opened(away)
    for number in range(1, 4):
        away.moods.extend((mood, mood))
        assert (await ledger.record_sighting(replace(ONE, occurrence=f"{number}", at=NOON + number))).count == number
    assert await count(opened(away)) == 3


@pytest.mark.parametrize("mood", LOST)
async def test_nor_does_one_that_is_lost_while_somebody_else_writes(bucket: BucketObjectStore, mood: Mood) -> None:
    """What is there is then not what was written, but what somebody made of it."""
    other, jobs = opened(bucket), iter(range(100))

    async def somebody() -> None:
        if (job := next(jobs)) % 3 == 0:
            await other.record_sighting(replace(ONE, occurrence=f"other {job}"))

    crowded = Crowded(bucket, somebody)
    ledger = opened(crowded)
    for number in range(5):
        crowded.moods.append(mood)
        await ledger.record_sighting(replace(ONE, occurrence=f"{number}"))
    others = len(range(0, next(jobs), 3))
    assert others > 1
    assert await count(opened(bucket)) == 5 + others


async def test_a_write_that_comes_late_and_an_order_that_comes_again_count_once(away: UnreliableObjects) -> None:
    ledger = opened(away)
    for arrives_first in (True, False):
        sighting = replace(ONE, fingerprint=f"{arrives_first}")
        away.moods.extend([Mood.LATE] * SHARED_TRIES)
        with pytest.raises(JournalUnwritable, match="The ledger of known failures in s3://bucket cannot be used"):
            await ledger.record_sighting(sighting)
        if arrives_first:
            assert (await away.arrive())[0]
        assert (await ledger.record_sighting(sighting)).count == 1
        if not arrives_first:
            assert not any(await away.arrive())
        assert await count(opened(away), f"{arrives_first}") == 1


async def test_a_bucket_that_is_away_is_a_sentence_from_every_verb(away: UnreliableObjects) -> None:
    ledger = opened(away)
    await ledger.record_sighting(ONE)
    away.away = True
    verbs: tuple[Awaitable[object], ...] = (
        ledger.record_sighting(replace(ONE, occurrence="2")),
        ledger.find_failure(ONE.project, "00ff"),
        ledger.list_projects(9),
        ledger.list_recent(ONE.project, 9),
        ledger.trend(ONE.project, date(2026, 1, 1)),
        ledger.delete_unseen_since(NOON),
    )
    for verb in verbs:
        with pytest.raises(JournalUnwritable, match="The ledger of known failures in s3://bucket cannot be used"):
            await verb
    away.away = False
    assert (await ledger.record_sighting(replace(ONE, occurrence="2"))).count == 2


async def test_a_bucket_that_hangs_is_given_up(away: UnreliableObjects, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchanging, "SHARED_S", 2)
    away.moods.append(Mood.HANGING)
    with pytest.raises(JournalUnwritable, match="the store did not finish within"):
        await opened(away).record_sighting(ONE)


async def test_a_process_that_dies_before_it_lists_the_project_leaves_that_to_the_next_one(
    away: UnreliableObjects,
) -> None:
    """The order comes again, to another host."""
    away.moods.extend((Mood.FINE, *[Mood.REFUSED] * SHARED_TRIES))
    with pytest.raises(JournalUnwritable):
        await opened(away).record_sighting(ONE)
    assert (await count(opened(away)), await opened(away).list_projects(9)) == (1, [])
    assert (await opened(away).record_sighting(ONE)).count == 1
    assert await opened(away).list_projects(9) == [ONE.project]


@pytest.mark.parametrize(
    "content", [b"", b"nonsense", b"[]", b'{"known":1,"failures":{"00ff":{"first_seen":1}}}', b'{"known":"\xff"}']
)
async def test_a_damaged_shard_is_a_sentence_and_costs_what_is_in_it(bucket: BucketObjectStore, content: bytes) -> None:
    ledger = opened(bucket)
    await ledger.record_sighting(ONE)
    (name,) = await bucket.list_names("known-failures/shards")
    for one in (ELSEWHERE, "old"):
        await ledger.record_sighting(
            replace(ONE, fingerprint=ELSEWHERE, project=one, at=NOON if one == ELSEWHERE else MIDNIGHT)
        )
    await ledger.record_sighting(replace(ONE, fingerprint=ELSEWHERE))
    await bucket.put(name, content)
    told = rf"^s3://bucket/{name} is damaged and cannot be used as part of the ledger .* move it away\.$"
    for verb in (ledger.record_sighting(replace(ONE, occurrence="2")), ledger.find_failure(ONE.project, "00ff")):
        with pytest.raises(JournalDamaged, match=told):
            await verb
    assert await count(ledger, ELSEWHERE) == 1
    with pytest.raises(JournalDamaged, match=told):
        await ledger.list_recent(ONE.project, 9)
    with pytest.raises(JournalDamaged, match=told):
        await ledger.delete_unseen_since(NOON)
    assert await ledger.list_recent("old", 9) == [], "the others were forgotten nevertheless"
    await bucket.delete(name)
    assert (await ledger.record_sighting(replace(ONE, occurrence="2"))).count == 1
    assert len(await ledger.list_recent(ONE.project, 9)) == 2


async def test_a_damaged_list_entry_is_a_sentence_until_the_next_sighting(bucket: BucketObjectStore) -> None:
    await opened(bucket).record_sighting(ONE)
    (name,) = await bucket.list_names("known-failures/projects")
    await bucket.put(name, b"nonsense")
    with pytest.raises(JournalDamaged, match=rf"s3://bucket/{name} is damaged"):
        await opened(bucket).list_projects(9)
    await opened(bucket).record_sighting(ONE)
    assert await opened(bucket).list_projects(9) == [ONE.project]


async def test_a_newer_versions_shard_is_left_alone(bucket: BucketObjectStore) -> None:
    ledger = opened(bucket)
    await ledger.record_sighting(ONE)
    (name,) = await bucket.list_names("known-failures/shards")
    await bucket.put(name, b'{"known":2}')
    for verb in (
        ledger.record_sighting(replace(ONE, occurrence="2")),
        ledger.find_failure(ONE.project, "00ff"),
        ledger.delete_unseen_since(NOON),
    ):
        with pytest.raises(SessionUnreadable, match="was written by a newer version; update this one"):
            await verb
    assert await bucket.get(name) == b'{"known":2}'


async def test_what_was_not_seen_for_the_longest_time_makes_room(
    bucket: BucketObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_failure_store, "KNOWN_SHARD_BYTES", 40_000)
    ledger = opened(bucket)
    for number in range(400):
        await ledger.record_sighting(replace(ONE, fingerprint=f"{number}", at=NOON + number, excerpt="x" * 1_500))
    await ledger.record_sighting(replace(ONE, fingerprint="old", at=MIDNIGHT, excerpt="x" * 1_500))
    assert max(one.size for one in await bucket.list_objects("known-failures/shards")) <= 40_000
    left = {one.fingerprint for one in await ledger.list_recent(ONE.project, 500)}
    assert len(left) > 100
    assert {f"{number}" for number in range(350, 400)} | {"old"} <= left, "what was just seen stays, however old"


@pytest.mark.thorough
async def test_one_failure_that_is_told_of_without_end_stays_small(bucket: BucketObjectStore) -> None:
    """As long as its texts may be. Jobs and merge requests that were told of last are still told from new ones."""
    ledger, most = opened(bucket), KNOWN_TRACES + 20
    shown = "\0" * 5_000
    told = replace(ONE, kind=shown, class_=shown, title=shown, excerpt=shown, link=shown)
    for number in range(most):
        name = f"{number}" + "\0" * 600
        at = NOON + number * DAY
        await ledger.record_sighting(replace(told, occurrence=f"{number}", at=at, merge_request=name, branch=name))
    again = await ledger.record_sighting(replace(told, occurrence=f"{most - KNOWN_TRACES}", at=NOON + most * DAY))
    assert (again.count, again.merge_requests_total) == (most, KNOWN_TRACES)
    assert (len(again.merge_requests), len(again.branches)) == (KNOWN_PLACES, KNOWN_PLACES)
    assert len(await ledger.trend(ONE.project, date(2026, 1, 1))) == KNOWN_DAYS
    (shard,) = await bucket.list_objects("known-failures/shards")
    assert shard.size < KNOWN_SHARD_BYTES / 2


async def test_a_merge_request_that_comes_back_is_not_a_new_one(bucket: BucketObjectStore) -> None:
    ledger = opened(bucket)
    for number in range(2 * KNOWN_PLACES):
        await ledger.record_sighting(replace(ONE, occurrence=f"{number}", at=NOON + number, merge_request=f"!{number}"))
    found = await ledger.record_sighting(replace(ONE, occurrence="again", merge_request=""))
    for number, at in ((0, NOON + 99), (1, NOON - 99)):
        found = await ledger.record_sighting(
            replace(ONE, occurrence=f"again {number}", at=at, merge_request=f"!{number}")
        )
        assert found.merge_requests_total == 2 * KNOWN_PLACES
    assert found.merge_requests[0] == "!0"
    assert "!1" not in found.merge_requests


async def test_a_run_costs_a_request_a_shard_and_one_a_failure(bucket: BucketObjectStore) -> None:
    between = Counted(bucket)
    ledger, names = opened(between), [f"{number}" for number in range(FAILURES_SEEN)]
    shards = len({failure_shard_number(name) for name in names})
    assert shards in (KNOWN_SHARDS - 1, KNOWN_SHARDS)
    for run in range(2):
        between.asked = []
        await ledger.find_failures(ONE.project, names)
        assert between.asked == ["get_versioned"] * shards
        between.asked = []
        for name in names:
            await ledger.record_sighting(replace(ONE, fingerprint=name, occurrence=f"{run}", at=NOON + run))
        looks = 0 if run else shards + 1  # nothing was there that could have been held
        assert sorted(between.asked) == ["compare_and_swap"] * (FAILURES_SEEN + 1) + ["get_versioned"] * looks
    between.asked = []
    await ledger.record_sighting(replace(ONE, fingerprint="0", occurrence="0"))
    assert between.asked == ["get_versioned"], "who is told the same again looks before saying what is known"


def test_no_two_writes_are_alike() -> None:
    """S3 would take one for the other: its versions are hashes of what was written."""
    shard = bucket_failure_store.FailureShard(project="a")
    assert (
        len(
            {bucket_failure_store.encode_object(shard) for _ in range(9)}
            | {bucket_failure_store.encode_within_limit(shard) for _ in range(9)}
        )
        == 18
    )


@pytest.mark.thorough
async def test_what_is_held_is_bounded(bucket: BucketObjectStore) -> None:
    ledger = opened(bucket)
    for number in range(3 * SHARED_HELD):
        await ledger.record_sighting(replace(ONE, project=f"{number}"))
    assert len(ledger._cache) == SHARED_HELD
    assert len(ledger._locks) == 0


SIGHTINGS = st.builds(
    FailureSighting,
    project=st.sampled_from(["a", "b"]),
    fingerprint=st.sampled_from(["1", "2", "3"]),
    occurrence=st.sampled_from(["1", "2", "3", "4"]),
    at=st.integers(0, 5 * 86_400).map(lambda second: MIDNIGHT + second),
    kind=st.sampled_from(["x", "y"]),
    class_=st.just("test"),
    title=st.sampled_from(["one", "two"]),
    excerpt=st.sampled_from(["", "some", "more"]),
    merge_request=st.sampled_from(["", "!1", "!2"]),
    branch=st.sampled_from(["", "topic"]),
    link=st.sampled_from(["", "l1", "l2"]),
)
STEPS = st.lists(
    st.one_of(SIGHTINGS, st.integers(0, 5).map(lambda day: MIDNIGHT + day * DAY)),
    max_size=25,
    unique_by=lambda step: step.at if isinstance(step, FailureSighting) else step,
)


async def told(ledger: KnownFailureStore, steps: Sequence[FailureSighting | float]) -> list[object]:
    """Everything that it says on the way."""
    said: list[object] = [
        await ledger.delete_unseen_since(one) if isinstance(one, float) else await ledger.record_sighting(one)
        for one in steps
    ]
    for project in ("a", "b"):
        said += [dict(await ledger.find_failures(project, ("1", "2", "3"))), list(await ledger.list_recent(project, 2))]
        said += [list(await ledger.trend(project, date(2026, 11, 16), one)) for one in (None, "1")]
    return said


@pytest.mark.thorough
@settings(max_examples=tries(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
async def test_a_bucket_says_what_a_file_says(
    tmp_path_factory: pytest.TempPathFactory, steps: Sequence[FailureSighting | float]
) -> None:
    file = SqliteKnownFailureStore(tmp_path_factory.mktemp("ledger") / Path("known.sqlite"))
    assert await told(opened(BucketObjectStore.in_memory()), steps) == await told(file, steps)


async def test_a_shard_of_before_explanations_is_read_and_takes_one(bucket: BucketObjectStore) -> None:
    """As the version before wrote it: without the field."""
    await opened(bucket).record_sighting(ONE)
    (name,) = [one.name for one in await bucket.list_objects("known-failures/shards")]
    looked = await bucket.get_versioned(name, KNOWN_SHARD_BYTES)
    assert looked is not None
    shard = json.loads(looked.content)
    for failure in shard["failures"].values():
        del failure["analysis"]
    assert await bucket.compare_and_swap(name, json.dumps(shard).encode(), looked.version)
    made = AnalysisLink(at=NOON, merge_request="!7", link="https://example.com/7")
    await opened(bucket).record_analysis(ONE.project, ONE.fingerprint, made, NOON)
    found = await opened(bucket).find_failure(ONE.project, ONE.fingerprint)
    assert found is not None
    assert (found.count, found.analysis) == (1, made)


async def test_sightings_of_before_authors_count_as_one_unknown_author(bucket: BucketObjectStore) -> None:
    """As the version before wrote it: a merge request is a name and a time."""
    for number in (7, 8):
        await opened(bucket).record_sighting(replace(ONE, occurrence=f"{number}", merge_request=f"!{number}"))
    (name,) = [one.name for one in await bucket.list_objects("known-failures/shards")]
    looked = await bucket.get_versioned(name, KNOWN_SHARD_BYTES)
    assert looked is not None
    shard = json.loads(looked.content)
    for failure in shard["failures"].values():
        failure["merge_requests"] = [told[:2] for told in failure["merge_requests"]]
    assert await bucket.compare_and_swap(name, json.dumps(shard).encode(), looked.version)
    found = await opened(bucket).record_sighting(replace(ONE, occurrence="9", merge_request="!9", author="a"))
    assert dict(zip(found.merge_requests, found.authors, strict=True)) == {"!7": "", "!8": "", "!9": "a"}
    assert found.authors_total == 2
