"""What is remembered of the failures of each project, on one machine or in a bucket, with real processes."""

import asyncio
from dataclasses import replace
from datetime import date

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hummingbird.core.errors import UsageError
from hummingbird.core.limits import (
    KNOWN_EXCERPT_CHARS,
    KNOWN_FIELD_CHARS,
    KNOWN_LINKS,
    KNOWN_LISTED,
    KNOWN_NAME_CHARS,
    KNOWN_PLACES,
)
from hummingbird.core.protocols.storage import AnalysisLink, FailureDay, KnownFailure, KnownFailureStore
from tests.contracts.shared.conftest import Sites
from tests.contracts.shared.sites import DAY, NOON, ONE, Site
from tests.contracts.shared.starting import done, start
from tests.thoroughly import tries


@pytest.fixture
def ledger(site: Site) -> KnownFailureStore:
    return site.known_failures()


async def known(ledger: KnownFailureStore, fingerprint: str = "00ff") -> KnownFailure:
    found = await ledger.find_failure("group/project", fingerprint)
    assert found is not None
    return found


async def test_a_failure_is_remembered_with_all_that_was_told(ledger: KnownFailureStore) -> None:
    assert await ledger.find_failure("group/project", "00ff") is None
    expected = KnownFailure(
        project="group/project",
        fingerprint="00ff",
        kind="test failure",
        class_="test",
        title="TestParse fails",
        excerpt="FAIL: TestParse",
        first_seen=NOON,
        last_seen=NOON,
        count=1,
        merge_requests=("!7",),
        merge_requests_total=1,
        branches=("topic",),
        links=("https://example.com/1",),
        authors=("",),
        authors_total=1,
    )
    assert await ledger.record_sighting(ONE) == expected
    assert await known(ledger) == expected


async def test_an_event_that_is_delivered_again_counts_once(ledger: KnownFailureStore) -> None:
    first = await ledger.record_sighting(ONE)
    again = await ledger.record_sighting(
        replace(ONE, at=NOON + 60, title="other", merge_request="!8", link="https://example.com/2")
    )
    assert first == again == await known(ledger)
    assert await ledger.trend(ONE.project, date(2026, 1, 1)) == [FailureDay(date(2026, 11, 15), 1, 1)]


async def test_one_job_may_have_two_failures_and_two_projects_the_same_one(ledger: KnownFailureStore) -> None:
    others = replace(ONE, fingerprint="00aa"), replace(ONE, project="group/other")
    assert [(await ledger.record_sighting(one)).count for one in (ONE, *others)] == [1, 1, 1]
    assert [one.project for one in await ledger.list_recent("group/other", 9)] == ["group/other"]


async def test_sightings_out_of_order_keep_the_newest_words_and_both_ends(ledger: KnownFailureStore) -> None:
    await ledger.record_sighting(ONE)
    await ledger.record_sighting(
        replace(ONE, occurrence="2", at=NOON + DAY, title="newest", class_="flaky", excerpt="")
    )
    found = await ledger.record_sighting(replace(ONE, occurrence="3", at=NOON - DAY, title="older", excerpt="older"))
    assert (found.first_seen, found.last_seen, found.count) == (NOON - DAY, NOON + DAY, 3)
    assert (found.title, found.class_, found.excerpt) == ("newest", "flaky", "FAIL: TestParse")


async def test_lists_are_bounded_newest_first_and_the_rest_is_counted(ledger: KnownFailureStore) -> None:
    found = await ledger.record_sighting(ONE)
    for number in range(30):
        told = replace(ONE, occurrence=f"{number}", at=NOON + number, merge_request=f"!{number}", branch=f"b{number}")
        found = await ledger.record_sighting(replace(told, link=f"https://example.com/{number}"))
    assert found.merge_requests == tuple(f"!{number}" for number in range(29, 29 - KNOWN_PLACES, -1))
    assert found.branches == tuple(f"b{number}" for number in range(29, 29 - KNOWN_PLACES, -1))
    assert found.links == tuple(f"https://example.com/{number}" for number in range(29, 29 - KNOWN_LINKS, -1))
    assert (found.merge_requests_total, found.count) == (30, 31)


async def test_merge_requests_are_counted_by_authors(ledger: KnownFailureStore) -> None:
    """Those that are named no more as well."""
    found = await ledger.record_sighting(ONE)
    for number in range(KNOWN_PLACES + 4):
        told = replace(ONE, occurrence=f"{number}", at=NOON + number, merge_request=f"!{100 + number}")
        found = await ledger.record_sighting(replace(told, author="first" if number < 2 else "second"))
    assert found.authors == ("second",) * KNOWN_PLACES
    assert found.authors_total == 3, "and one that nobody knows"
    again = await ledger.record_sighting(replace(ONE, occurrence="again", at=NOON + DAY, merge_request="!100"))
    assert again.authors[0] == "first", "that nobody names the author now takes nothing back"


async def test_many_are_asked_for_at_once(ledger: KnownFailureStore) -> None:
    for number in range(5):
        await ledger.record_sighting(replace(ONE, fingerprint=f"{number}"))
    asked = [*(f"{number}" for number in range(3, 2_000)), "3"]
    assert {name: one.fingerprint for name, one in (await ledger.find_failures(ONE.project, asked)).items()} == {
        "3": "3",
        "4": "4",
    }
    assert await ledger.find_failures(ONE.project, []) == {}


async def test_the_recent_ones_come_last_seen_first(ledger: KnownFailureStore) -> None:
    for number, at in enumerate((3, 1, 2)):
        await ledger.record_sighting(replace(ONE, fingerprint=f"{number}", at=NOON + at))
    assert [one.fingerprint for one in await ledger.list_recent(ONE.project, 2)] == ["0", "2"]
    assert [one.fingerprint for one in await ledger.list_recent(ONE.project, 10 * KNOWN_LISTED)] == ["0", "2", "1"]
    assert await ledger.list_recent(ONE.project, -1) == []


async def test_a_trend_counts_the_days_that_had_any(ledger: KnownFailureStore) -> None:
    for number, (fingerprint, at) in enumerate([("a", 0), ("a", 1), ("b", 2), ("a", 3 * DAY)]):
        await ledger.record_sighting(replace(ONE, fingerprint=fingerprint, occurrence=f"{number}", at=NOON + at))
    first, later = date(2026, 11, 15), date(2026, 11, 18)
    assert await ledger.trend(ONE.project, first) == [FailureDay(first, 3, 2), FailureDay(later, 1, 1)]
    assert await ledger.trend(ONE.project, first, "b") == [FailureDay(first, 1, 1)]
    assert await ledger.trend(ONE.project, date(2026, 11, 16)) == [FailureDay(later, 1, 1)]
    assert await ledger.trend(ONE.project, first, "never seen") == await ledger.trend("group/other", first) == []
    each = await ledger.trends(ONE.project, first, ["b", "never seen"])
    assert each == {"b": [FailureDay(first, 1, 1)], "never seen": []}
    assert await ledger.trends(ONE.project, first, []) == {}


async def test_what_was_not_seen_for_long_is_forgotten_with_all_its_traces(ledger: KnownFailureStore) -> None:
    for number in range(20):
        await ledger.record_sighting(replace(ONE, fingerprint=f"old {number}", at=NOON - 9 * DAY))
    await ledger.record_sighting(replace(ONE, occurrence="0", at=NOON - 9 * DAY, merge_request="!1", branch="b"))
    await ledger.record_sighting(ONE)
    assert await ledger.delete_unseen_since(NOON - DAY) == 20
    assert [one.fingerprint for one in await ledger.list_recent(ONE.project, 9)] == ["00ff"]
    found = await known(ledger)
    assert (found.count, found.merge_requests, found.first_seen) == (2, ("!7",), NOON - 9 * DAY)
    assert (found.merge_requests_total, found.branches, found.links) == (1, ("topic",), ("https://example.com/1",))
    assert await ledger.trend(ONE.project, date(2026, 1, 1)) == [FailureDay(date(2026, 11, 15), 1, 1)]
    assert await ledger.delete_unseen_since(NOON - DAY) == 0
    with pytest.raises(UsageError, match="is not a valid time"):
        await ledger.delete_unseen_since(float("nan"))


async def test_the_projects_that_have_any_are_named_last_seen_first(site: Site, ledger: KnownFailureStore) -> None:
    assert await ledger.list_projects(9) == []
    for name, at in (("b", 1), ("c", 3), ("a", 2), ("b", 4), ("b", 0)):
        await ledger.record_sighting(replace(ONE, project=name, occurrence=f"{at}", at=NOON + at))
    assert await ledger.list_projects(9) == await site.known_failures().list_projects(9) == ["b", "c", "a"]
    assert [await ledger.list_projects(limit) for limit in (2, 0, -1)] == [["b", "c"], [], []]
    assert await ledger.delete_unseen_since(NOON + 4) == 2
    assert await ledger.list_projects(9) == ["b"]
    await ledger.record_sighting(replace(ONE, project="a", occurrence="5", at=NOON + 5))
    assert await ledger.list_projects(9) == ["a", "b"]


async def test_two_who_opened_the_same_place_know_the_same(site: Site) -> None:
    """Neither of them calls new what the other one has seen."""
    one, other = site.known_failures(), site.known_failures()
    for number, ledger in enumerate((one, other, one, other), 1):
        assert (await ledger.record_sighting(replace(ONE, occurrence=f"{number}", at=NOON + number))).count == number
    assert (await one.record_sighting(replace(ONE, occurrence="2"))).count == 4
    assert await known(one) == await known(other)


async def test_long_texts_are_cut(ledger: KnownFailureStore) -> None:
    long = "ü" * 10_000
    found = await ledger.record_sighting(
        replace(ONE, kind=long, class_=long, title=long, excerpt=long, merge_request=long, branch=long, link=long)
    )
    short = [found.kind, found.class_, found.title, *found.merge_requests, *found.branches, *found.links]
    assert {len(text) for text in short} == {KNOWN_FIELD_CHARS}
    assert len(found.excerpt) == KNOWN_EXCERPT_CHARS


async def test_long_occurrences_that_begin_alike_are_two(ledger: KnownFailureStore) -> None:
    await ledger.record_sighting(replace(ONE, occurrence="x" * 100_000 + "1"))
    assert (await ledger.record_sighting(replace(ONE, occurrence="x" * 100_000 + "2"))).count == 2


@pytest.mark.parametrize("name", ["", "x" * (KNOWN_NAME_CHARS + 1), "\ud800"])
async def test_a_name_that_cannot_be_kept_whole_is_refused(ledger: KnownFailureStore, name: str) -> None:
    for sighting in (replace(ONE, project=name), replace(ONE, fingerprint=name)):
        with pytest.raises(UsageError):
            await ledger.record_sighting(sighting)
        with pytest.raises(UsageError):
            await ledger.find_failure(sighting.project, sighting.fingerprint)


@pytest.mark.parametrize("at", [float("nan"), float("inf"), -1e300])
async def test_a_time_that_is_none_is_refused(ledger: KnownFailureStore, at: float) -> None:
    with pytest.raises(UsageError, match="is not a valid time"):
        await ledger.record_sighting(replace(ONE, at=at))


HOSTILE = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
NASTY = ["'; DROP TABLE failures; --", '"', "%", "_", "\0", "a\0b", "../../etc", "a" * KNOWN_NAME_CHARS, "🐦", "A", "a"]


@settings(max_examples=tries(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(st.sampled_from(NASTY), HOSTILE), min_size=1, max_size=4, unique=True), st.text(max_size=50))
async def test_any_names_are_kept_apart_and_any_texts_come_back(sites: Sites, names: list[str], text: str) -> None:
    ledger = sites().known_failures()
    for project in names:
        for fingerprint in names:
            await ledger.record_sighting(replace(ONE, project=project, fingerprint=fingerprint, title=text))
    for project in names:
        found = await ledger.find_failures(project, names)
        assert {name: (one.project, one.count) for name, one in found.items()} == dict.fromkeys(names, (project, 1))
        assert {one.title for one in found.values()} == {text.encode("utf-8", "replace").decode()}


@pytest.mark.thorough
async def test_runs_that_tell_of_the_same_job_at_once_count_it_once(ledger: KnownFailureStore) -> None:
    tellings = [replace(ONE, occurrence=f"job {number % 10}") for number in range(60)]
    await asyncio.gather(*(ledger.record_sighting(one) for one in tellings))
    assert (await known(ledger)).count == 10


@pytest.mark.thorough
async def test_processes_that_write_at_once_lose_nothing(shared: Site) -> None:
    """Two of the four tell of the same jobs, and all of them find nothing there."""
    others = [await start(shared, "remember", name, 30) for name in ("one", "two", "two", "three")]
    assert await done(*others) == [30] * 4
    found = await shared.known_failures().list_recent("group/project", 9)
    assert {one.fingerprint: one.count for one in found} == {f"{number:016x}": 30 for number in range(3)}
    assert sum(one.merge_requests_total for one in found) == 30


@pytest.mark.thorough
async def test_a_process_that_is_killed_while_it_writes_leaves_a_whole_ledger(shared: Site) -> None:
    """Kill -9, at many moments. All that it told is there, and at most one more each time."""
    told = 0
    for attempt in range(4):
        other = await start(shared, "remember", f"attempt {attempt}", 1_000_000)
        assert other.stdout is not None
        for _ in range(3 + 5 * attempt):
            await other.stdout.readline()
        other.kill()
        rest = (await other.communicate())[0]
        told += 3 + 5 * attempt + rest.count(b"\n")
        ledger = shared.known_failures()
        count = sum(one.count for one in await ledger.list_recent("group/project", 9))
        assert told <= count <= told + attempt + 1
        assert sum(day.sightings for day in await ledger.trend("group/project", date(2026, 1, 1))) == count


FIRST = AnalysisLink(at=NOON, merge_request="!7", link="https://example.com/-/merge_requests/7#note_1")


async def test_the_first_explanation_of_a_failure_is_remembered_and_later_ones_are_not(
    ledger: KnownFailureStore,
) -> None:
    await ledger.record_sighting(ONE)
    await ledger.record_analysis("group/project", "00ff", FIRST, NOON - DAY)
    later = replace(FIRST, at=NOON + DAY, merge_request="!8", link="https://example.com/2")
    await ledger.record_analysis("group/project", "00ff", later, NOON)
    assert (await known(ledger)).analysis == FIRST
    found = await ledger.record_sighting(replace(ONE, occurrence="2", at=NOON + DAY))
    assert found.analysis == FIRST, "who sees it next hears of it"
    assert [one.analysis for one in await ledger.list_recent("group/project", 9)] == [FIRST]


async def test_an_explanation_that_is_too_old_makes_room_for_a_new_one(ledger: KnownFailureStore) -> None:
    await ledger.record_sighting(ONE)
    await ledger.record_analysis("group/project", "00ff", FIRST, NOON - DAY)
    later = replace(FIRST, at=NOON + 9 * DAY, merge_request="!8")
    await ledger.record_analysis("group/project", "00ff", later, NOON + 1)
    assert (await known(ledger)).analysis == later


async def test_what_nobody_has_seen_cannot_be_explained(ledger: KnownFailureStore) -> None:
    await ledger.record_analysis("group/project", "00ff", FIRST, NOON)
    assert await ledger.find_failure("group/project", "00ff") is None
    await ledger.record_sighting(replace(ONE, project="group/other"))
    await ledger.record_analysis("group/project", "00ff", FIRST, NOON)
    other = await ledger.find_failure("group/other", "00ff")
    assert other is not None
    assert other.analysis is None, "projects have nothing in common"


async def test_an_explanation_is_forgotten_with_its_time(ledger: KnownFailureStore) -> None:
    await ledger.record_sighting(ONE)
    await ledger.record_analysis("group/project", "00ff", FIRST, NOON - DAY)
    await ledger.record_sighting(replace(ONE, occurrence="2", at=NOON + 9 * DAY))
    await ledger.delete_unseen_since(NOON + DAY)
    assert (await known(ledger)).analysis is None


@pytest.mark.thorough
async def test_of_many_who_explain_it_at_once_one_counts(ledger: KnownFailureStore) -> None:
    await ledger.record_sighting(ONE)
    several = [replace(FIRST, merge_request=f"!{number}", link=f"https://example.com/{number}") for number in range(9)]
    await asyncio.gather(*(ledger.record_analysis("group/project", "00ff", one, NOON - DAY) for one in several))
    found = (await known(ledger)).analysis
    await ledger.record_analysis("group/project", "00ff", FIRST, NOON - DAY)
    assert found in several
    assert (await known(ledger)).analysis == found
