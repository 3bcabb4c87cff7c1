"""What is remembered of the failures of each project (V6), on real files and with real processes."""

import asyncio
import sqlite3
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hummingbird.adapters.stores.known_failures import SqliteKnownFailures
from hummingbird.adapters.stores.ledger_file import LedgerFile
from hummingbird.domain.errors import JournalDamaged, JournalUnwritable, SessionUnreadable, UsageFault
from hummingbird.domain.limits import (
    KNOWN_EXCERPT_CHARS,
    KNOWN_FIELD_CHARS,
    KNOWN_FORGOTTEN_AT_ONCE,
    KNOWN_LINKS,
    KNOWN_LISTED,
    KNOWN_NAME_CHARS,
    KNOWN_PLACES,
)
from hummingbird.ports.known_failures import FailureDay, KnownFailure, KnownFailures, Sighting

NOON = 1_794_744_000.0  # 2026-11-15 12:00 UTC
DAY = 86_400.0
ONE = Sighting(
    project="group/project",
    fingerprint="00ff",
    occurrence="job 1",
    at=NOON,
    kind="test failure",
    class_="test",
    title="TestParse fails",
    excerpt="FAIL: TestParse",
    merge_request="!7",
    branch="topic",
    link="https://example.com/1",
)
WORKER = Path(__file__).parent / "ledger_process.py"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "known.sqlite"


@pytest.fixture
def ledger(path: Path) -> KnownFailures:
    return SqliteKnownFailures(path)


async def known(ledger: KnownFailures, fingerprint: str = "00ff") -> KnownFailure:
    found = await ledger.known("group/project", fingerprint)
    assert found is not None
    return found


def spoil(path: Path, kept: int) -> None:
    """All but the first bytes of it become nonsense; a file that is not there becomes nothing but that."""
    path.parent.mkdir(exist_ok=True)
    content = path.read_bytes() if path.exists() else b""
    path.write_bytes(content[:kept] + b"nonsense" * 5_000)


def somebody_elses(path: Path) -> None:
    path.unlink()
    raw(path, "CREATE TABLE recipes (title)")


def raw(path: Path, query: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


async def test_a_failure_is_remembered_with_all_that_was_told(ledger: KnownFailures) -> None:
    """V6"""
    assert await ledger.known("group/project", "00ff") is None
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
    )
    assert await ledger.seen(ONE) == expected
    assert await known(ledger) == expected


async def test_an_event_that_is_delivered_again_counts_once(ledger: KnownFailures) -> None:
    """V6"""
    first = await ledger.seen(ONE)
    again = await ledger.seen(
        replace(ONE, at=NOON + 60, title="other", merge_request="!8", link="https://example.com/2")
    )
    assert first == again == await known(ledger)
    assert await ledger.trend(ONE.project, date(2026, 1, 1)) == [FailureDay(date(2026, 11, 15), 1, 1)]


async def test_one_job_may_have_two_failures_and_two_projects_the_same_one(ledger: KnownFailures) -> None:
    """V6"""
    others = replace(ONE, fingerprint="00aa"), replace(ONE, project="group/other")
    assert [(await ledger.seen(one)).count for one in (ONE, *others)] == [1, 1, 1]
    assert [one.project for one in await ledger.recent("group/other", 9)] == ["group/other"]


async def test_sightings_out_of_order_keep_the_newest_words_and_both_ends(ledger: KnownFailures) -> None:
    """V6"""
    await ledger.seen(ONE)
    await ledger.seen(replace(ONE, occurrence="2", at=NOON + DAY, title="newest", class_="flaky", excerpt=""))
    found = await ledger.seen(replace(ONE, occurrence="3", at=NOON - DAY, title="older", excerpt="older"))
    assert (found.first_seen, found.last_seen, found.count) == (NOON - DAY, NOON + DAY, 3)
    assert (found.title, found.class_, found.excerpt) == ("newest", "flaky", "FAIL: TestParse")


async def test_lists_are_bounded_newest_first_and_the_rest_is_counted(ledger: KnownFailures) -> None:
    """V6"""
    found = await ledger.seen(ONE)
    for number in range(30):
        told = replace(ONE, occurrence=f"{number}", at=NOON + number, merge_request=f"!{number}", branch=f"b{number}")
        found = await ledger.seen(replace(told, link=f"https://example.com/{number}"))
    assert found.merge_requests == tuple(f"!{number}" for number in range(29, 29 - KNOWN_PLACES, -1))
    assert found.branches == tuple(f"b{number}" for number in range(29, 29 - KNOWN_PLACES, -1))
    assert found.links == tuple(f"https://example.com/{number}" for number in range(29, 29 - KNOWN_LINKS, -1))
    assert (found.merge_requests_total, found.count) == (30, 31)


async def test_many_are_asked_for_at_once(ledger: KnownFailures) -> None:
    """V6"""
    for number in range(5):
        await ledger.seen(replace(ONE, fingerprint=f"{number}"))
    asked = [*(f"{number}" for number in range(3, 2_000)), "3"]
    assert {name: one.fingerprint for name, one in (await ledger.known_many(ONE.project, asked)).items()} == {
        "3": "3",
        "4": "4",
    }
    assert await ledger.known_many(ONE.project, []) == {}


async def test_the_recent_ones_come_last_seen_first(ledger: KnownFailures) -> None:
    """V6"""
    for number, at in enumerate((3, 1, 2)):
        await ledger.seen(replace(ONE, fingerprint=f"{number}", at=NOON + at))
    assert [one.fingerprint for one in await ledger.recent(ONE.project, 2)] == ["0", "2"]
    assert [one.fingerprint for one in await ledger.recent(ONE.project, 10 * KNOWN_LISTED)] == ["0", "2", "1"]
    assert await ledger.recent(ONE.project, -1) == []


async def test_a_trend_counts_the_days_that_had_any(ledger: KnownFailures) -> None:
    """V6"""
    for number, (fingerprint, at) in enumerate([("a", 0), ("a", 1), ("b", 2), ("a", 3 * DAY)]):
        await ledger.seen(replace(ONE, fingerprint=fingerprint, occurrence=f"{number}", at=NOON + at))
    first, later = date(2026, 11, 15), date(2026, 11, 18)
    assert await ledger.trend(ONE.project, first) == [FailureDay(first, 3, 2), FailureDay(later, 1, 1)]
    assert await ledger.trend(ONE.project, first, "b") == [FailureDay(first, 1, 1)]
    assert await ledger.trend(ONE.project, date(2026, 11, 16)) == [FailureDay(later, 1, 1)]
    assert await ledger.trend(ONE.project, first, "never seen") == await ledger.trend("group/other", first) == []


async def test_what_was_not_seen_for_long_is_forgotten_with_all_its_traces(ledger: KnownFailures, path: Path) -> None:
    """V6"""
    old = KNOWN_FORGOTTEN_AT_ONCE + 1
    for number in range(old):
        await ledger.seen(replace(ONE, fingerprint=f"old {number}", at=NOON - 9 * DAY))
    await ledger.seen(replace(ONE, occurrence="0", at=NOON - 9 * DAY, merge_request="!1"))
    await ledger.seen(ONE)
    assert await ledger.forget(NOON - DAY) == old
    assert [one.fingerprint for one in await ledger.recent(ONE.project, 9)] == ["00ff"]
    found = await known(ledger)
    assert (found.count, found.merge_requests, found.first_seen) == (2, ("!7",), NOON - 9 * DAY)
    assert await ledger.trend(ONE.project, date(2026, 1, 1)) == [FailureDay(date(2026, 11, 15), 1, 1)]
    assert raw(path, "SELECT (SELECT count(*) FROM sightings), (SELECT count(*) FROM places)") == [(1, 2)]
    assert await ledger.forget(NOON - DAY) == 0


async def test_long_texts_are_cut(ledger: KnownFailures) -> None:
    """V6"""
    long = "ü" * 10_000
    found = await ledger.seen(
        replace(ONE, kind=long, class_=long, title=long, excerpt=long, merge_request=long, branch=long, link=long)
    )
    short = [found.kind, found.class_, found.title, *found.merge_requests, *found.branches, *found.links]
    assert {len(text) for text in short} == {KNOWN_FIELD_CHARS}
    assert len(found.excerpt) == KNOWN_EXCERPT_CHARS


async def test_long_occurrences_that_begin_alike_are_two(ledger: KnownFailures) -> None:
    """V6"""
    await ledger.seen(replace(ONE, occurrence="x" * 100_000 + "1"))
    assert (await ledger.seen(replace(ONE, occurrence="x" * 100_000 + "2"))).count == 2


@pytest.mark.parametrize("name", ["", "x" * (KNOWN_NAME_CHARS + 1), "\ud800"])
async def test_a_name_that_cannot_be_kept_whole_is_refused(ledger: KnownFailures, name: str) -> None:
    """V6"""
    for sighting in (replace(ONE, project=name), replace(ONE, fingerprint=name)):
        with pytest.raises(UsageFault):
            await ledger.seen(sighting)
        with pytest.raises(UsageFault):
            await ledger.known(sighting.project, sighting.fingerprint)


@pytest.mark.parametrize("at", [float("nan"), float("inf"), -1e300])
async def test_a_time_that_is_none_is_refused(ledger: KnownFailures, at: float) -> None:
    """V6"""
    with pytest.raises(UsageFault, match="is no time"):
        await ledger.seen(replace(ONE, at=at))


HOSTILE = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
NASTY = ["'; DROP TABLE failures; --", '"', "%", "_", "\0", "a\0b", "../../etc", "a" * KNOWN_NAME_CHARS, "🐦", "A", "a"]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(st.sampled_from(NASTY), HOSTILE), min_size=1, max_size=4, unique=True), st.text(max_size=50))
async def test_any_names_are_kept_apart_and_any_texts_come_back(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], text: str
) -> None:
    """V6"""
    ledger = SqliteKnownFailures(tmp_path_factory.mktemp("ledger") / "known.sqlite")
    for project in names:
        for fingerprint in names:
            await ledger.seen(replace(ONE, project=project, fingerprint=fingerprint, title=text))
    for project in names:
        found = await ledger.known_many(project, names)
        assert {name: (one.project, one.count) for name, one in found.items()} == dict.fromkeys(names, (project, 1))
        assert {one.title for one in found.values()} == {text.encode("utf-8", "replace").decode()}


async def test_threads_that_tell_of_the_same_job_at_once_count_it_once(ledger: KnownFailures) -> None:
    """V6"""
    tellings = [replace(ONE, occurrence=f"job {number % 10}") for number in range(60)]
    await asyncio.gather(*(ledger.seen(one) for one in tellings))
    assert (await known(ledger)).count == 10


async def start(path: Path, name: str, count: int) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, str(WORKER), str(path), name, str(count), stdout=asyncio.subprocess.PIPE
    )


async def test_processes_that_make_the_file_and_write_at_once_lose_nothing(ledger: KnownFailures, path: Path) -> None:
    """V6: Two of the four tell of the same jobs."""
    others = [await start(path, name, 30) for name in ("one", "two", "two", "three")]
    told = [len((await other.communicate())[0].split()) for other in others]
    assert ([other.returncode for other in others], told) == ([0] * 4, [30] * 4)
    assert {one.fingerprint: one.count for one in await ledger.recent("group/project", 9)} == {
        f"{number:016x}": 30 for number in range(3)
    }


async def test_a_process_that_is_killed_while_it_writes_leaves_a_whole_ledger(
    ledger: KnownFailures, path: Path
) -> None:
    """V6: kill -9, at many moments. All that it told is there, at most one more, and all tables agree."""
    told = 0
    for attempt in range(6):
        other = await start(path, f"attempt {attempt}", 1_000_000)
        assert other.stdout is not None
        for _ in range(3 + 5 * attempt):
            await other.stdout.readline()
        other.kill()
        rest = (await other.communicate())[0]
        told += 3 + 5 * attempt + rest.count(b"\n")
        found = await ledger.recent("group/project", 9)
        assert told <= sum(one.count for one in found) <= told + attempt + 1
    assert raw(path, "PRAGMA integrity_check") == [("ok",)]
    sums = "SELECT (SELECT sum(count) FROM failures), (SELECT count(*) FROM sightings), (SELECT sum(count) FROM days)"
    assert len(set(raw(path, sums)[0])) == 1


def modes(folder: Path) -> dict[str, int]:
    return {file.name: file.stat().st_mode & 0o777 for file in folder.iterdir()}


async def test_nobody_else_can_read_the_ledger(ledger: KnownFailures, path: Path) -> None:
    """V6: it holds excerpts of logs."""
    await ledger.seen(ONE)
    assert modes(path.parent) == {"known.sqlite": 0o600, "known.sqlite-wal": 0o600, "known.sqlite-shm": 0o600}


async def test_a_file_that_is_no_database_is_said_in_a_sentence(ledger: KnownFailures, path: Path) -> None:
    """V6"""
    spoil(path, 0)
    with pytest.raises(JournalDamaged, match=r"known\.sqlite is damaged .* move it away\."):
        await ledger.known("group/project", "00ff")


async def test_a_file_that_was_damaged_later_is_said_in_a_sentence(ledger: KnownFailures, path: Path) -> None:
    """V6"""
    for number in range(200):
        await ledger.seen(replace(ONE, fingerprint=f"{number}", excerpt="x" * 1_500))
    raw(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    spoil(path, 8192)
    with pytest.raises(JournalDamaged, match=r"known\.sqlite is damaged"):
        await ledger.recent("group/project", KNOWN_LISTED)


async def test_a_newer_file_and_somebody_elses_are_left_alone(ledger: KnownFailures, path: Path) -> None:
    """V6"""
    await ledger.seen(ONE)
    raw(path, "PRAGMA user_version = 99")
    with pytest.raises(SessionUnreadable, match=r"known\.sqlite was written by a newer version; update this one"):
        await ledger.seen(ONE)
    somebody_elses(path)
    with pytest.raises(SessionUnreadable, match=r"known\.sqlite is not the ledger .* name another file"):
        await ledger.seen(ONE)
    assert raw(path, "SELECT name FROM sqlite_master") == [("recipes",)]


async def test_a_place_that_cannot_be_written_is_said_in_a_sentence(tmp_path: Path) -> None:
    """V6"""
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file" / "known.sqlite", tmp_path):
        with pytest.raises(JournalUnwritable, match="cannot be used as the ledger of known failures: "):
            await SqliteKnownFailures(place).known("group/project", "00ff")


def test_an_older_file_is_brought_up_to_date_once_and_keeps_what_it_has(tmp_path: Path) -> None:
    """V6"""
    path, first = tmp_path / "some.sqlite", ("CREATE TABLE birds (name)", "INSERT INTO birds VALUES ('wren')")
    with LedgerFile(path, "the list", 7, [first]).writing() as connection:
        connection.execute("INSERT INTO birds VALUES ('robin')")
    newer = LedgerFile(path, "the list", 7, [first, ("ALTER TABLE birds ADD COLUMN legs DEFAULT 2",)])
    for _ in range(2):
        with newer.reading() as connection:
            rows = [tuple(row) for row in connection.execute("SELECT * FROM birds")]
        assert rows == [("wren", 2), ("robin", 2)]
    with pytest.raises(SessionUnreadable), LedgerFile(path, "the list", 7, [first]).reading():
        pytest.fail("an older version must not open it")


def write_what_fails(file: LedgerFile) -> None:
    with file.writing() as connection:
        connection.execute("INSERT INTO birds VALUES ('wren')")
        connection.execute("INSERT INTO fish VALUES ('carp')")


def test_what_fails_in_the_middle_is_not_written(tmp_path: Path) -> None:
    """V6"""
    file = LedgerFile(tmp_path / "some.sqlite", "the list", 7, [("CREATE TABLE birds (name)",)])
    with pytest.raises(JournalUnwritable, match="no such table: fish"):
        write_what_fails(file)
    with file.reading() as connection:
        assert connection.execute("SELECT count(*) FROM birds").fetchone()[0] == 0
