"""The ledger of known failures as a file: what is in it, whose it is, what is said when it is damaged. What every
ledger does is in tests/contracts/shared."""

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from hummingbird.core.errors import JournalDamaged, JournalUnwritable, SessionUnreadable
from hummingbird.core.limits import KNOWN_FORGOTTEN_AT_ONCE, KNOWN_LISTED
from hummingbird.core.protocols.storage import AnalysisLink, KnownFailureStore
from hummingbird.storage.failure_store import SqliteKnownFailureStore
from hummingbird.storage.sqlite_ledger import LedgerFile
from tests.contracts.shared.sites import DAY, NOON, ONE, Site
from tests.contracts.shared.starting import start


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "known.sqlite"


@pytest.fixture
def ledger(path: Path) -> KnownFailureStore:
    return SqliteKnownFailureStore(path)


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


@pytest.mark.thorough
async def test_however_many_are_forgotten_no_trace_of_them_is_left_in_the_file(
    ledger: KnownFailureStore, path: Path
) -> None:
    old = KNOWN_FORGOTTEN_AT_ONCE + 1
    for number in range(old):
        await ledger.record_sighting(replace(ONE, fingerprint=f"old {number}", at=NOON - 9 * DAY))
    await ledger.record_sighting(replace(ONE, occurrence="0", at=NOON - 9 * DAY, merge_request="!1"))
    await ledger.record_sighting(ONE)
    assert await ledger.delete_unseen_since(NOON - DAY) == old
    assert raw(path, "SELECT (SELECT count(*) FROM sightings), (SELECT count(*) FROM places)") == [(1, 2)]


@pytest.mark.thorough
async def test_all_tables_agree_after_a_process_was_killed_while_it_wrote(
    ledger: KnownFailureStore, path: Path
) -> None:
    """Kill -9, at many moments."""
    for attempt in range(6):
        other = await start(Site(str(path.parent)), "remember", f"attempt {attempt}", 1_000_000)
        assert other.stdout is not None
        for _ in range(3 + 5 * attempt):
            await other.stdout.readline()
        other.kill()
        await other.communicate()
        assert await ledger.list_recent("group/project", 9)
    assert raw(path, "PRAGMA integrity_check") == [("ok",)]
    sums = "SELECT (SELECT sum(count) FROM failures), (SELECT count(*) FROM sightings), (SELECT sum(count) FROM days)"
    assert len(set(raw(path, sums)[0])) == 1


def modes(folder: Path) -> dict[str, int]:
    return {file.name: file.stat().st_mode & 0o777 for file in folder.iterdir()}


async def test_nobody_else_can_read_the_ledger(ledger: KnownFailureStore, path: Path) -> None:
    """It holds excerpts of logs."""
    await ledger.record_sighting(ONE)
    assert modes(path.parent) == {"known.sqlite": 0o600, "known.sqlite-wal": 0o600, "known.sqlite-shm": 0o600}


async def test_a_file_that_is_no_database_is_said_in_a_sentence(ledger: KnownFailureStore, path: Path) -> None:
    spoil(path, 0)
    with pytest.raises(JournalDamaged, match=r"known\.sqlite is damaged .* move it away\."):
        await ledger.find_failure("group/project", "00ff")


@pytest.mark.thorough
async def test_a_file_that_was_damaged_later_is_said_in_a_sentence(ledger: KnownFailureStore, path: Path) -> None:
    for number in range(200):
        await ledger.record_sighting(replace(ONE, fingerprint=f"{number}", excerpt="x" * 1_500))
    raw(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    spoil(path, 8192)
    with pytest.raises(JournalDamaged, match=r"known\.sqlite is damaged"):
        await ledger.list_recent("group/project", KNOWN_LISTED)


async def test_a_newer_file_and_somebody_elses_are_left_alone(ledger: KnownFailureStore, path: Path) -> None:
    await ledger.record_sighting(ONE)
    raw(path, "PRAGMA user_version = 99")
    with pytest.raises(SessionUnreadable, match=r"known\.sqlite was written by a newer version; update this one"):
        await ledger.record_sighting(ONE)
    somebody_elses(path)
    with pytest.raises(SessionUnreadable, match=r"known\.sqlite is not the ledger .* name another file"):
        await ledger.record_sighting(ONE)
    assert raw(path, "SELECT name FROM sqlite_master") == [("recipes",)]


async def test_a_place_that_cannot_be_written_is_said_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file" / "known.sqlite", tmp_path):
        with pytest.raises(JournalUnwritable, match="cannot be used as the ledger of known failures: "):
            await SqliteKnownFailureStore(place).find_failure("group/project", "00ff")


def test_an_older_file_is_brought_up_to_date_once_and_keeps_what_it_has(tmp_path: Path) -> None:
    path, first = tmp_path / "some.sqlite", ("CREATE TABLE birds (name)", "INSERT INTO birds VALUES ('wren')")
    with LedgerFile(path, "the list", 7, [first]).write_transaction() as connection:
        connection.execute("INSERT INTO birds VALUES ('robin')")
    newer = LedgerFile(path, "the list", 7, [first, ("ALTER TABLE birds ADD COLUMN legs DEFAULT 2",)])
    for _ in range(2):
        with newer.read_transaction() as connection:
            rows = [tuple(row) for row in connection.execute("SELECT * FROM birds")]
        assert rows == [("wren", 2), ("robin", 2)]
    with pytest.raises(SessionUnreadable), LedgerFile(path, "the list", 7, [first]).read_transaction():
        pytest.fail("an older version must not open it")


def write_what_fails(file: LedgerFile) -> None:
    with file.write_transaction() as connection:
        connection.execute("INSERT INTO birds VALUES ('wren')")
        connection.execute("INSERT INTO fish VALUES ('carp')")


def test_what_fails_in_the_middle_is_not_written(tmp_path: Path) -> None:
    file = LedgerFile(tmp_path / "some.sqlite", "the list", 7, [("CREATE TABLE birds (name)",)])
    with pytest.raises(JournalUnwritable, match="no such table: fish"):
        write_what_fails(file)
    with file.read_transaction() as connection:
        assert connection.execute("SELECT count(*) FROM birds").fetchone()[0] == 0


async def test_a_ledger_of_before_explanations_is_brought_up_to_date_with_all_that_it_knows(path: Path) -> None:
    """A file as version 1 left it."""
    await SqliteKnownFailureStore(path).record_sighting(ONE)
    connection = sqlite3.connect(path)
    connection.executescript("DROP TABLE analyses; ALTER TABLE places DROP COLUMN author; PRAGMA user_version = 1;")
    connection.close()
    ledger = SqliteKnownFailureStore(path)
    before = await ledger.find_failure(ONE.project, ONE.fingerprint)
    assert before is not None
    assert (before.count, before.analysis) == (1, None)
    made = AnalysisLink(at=NOON, merge_request="!7", link="https://example.com/7")
    await ledger.record_analysis(ONE.project, ONE.fingerprint, made, NOON)
    after = await ledger.find_failure(ONE.project, ONE.fingerprint)
    assert after == replace(before, analysis=made)


async def test_sightings_of_before_authors_count_as_one_unknown_author(path: Path) -> None:
    """A file as version 2 left it."""
    before = SqliteKnownFailureStore(path)
    for number in (7, 8):
        await before.record_sighting(replace(ONE, occurrence=f"{number}", merge_request=f"!{number}"))
    connection = sqlite3.connect(path)
    connection.executescript("ALTER TABLE places DROP COLUMN author; PRAGMA user_version = 2;")
    connection.close()
    found = await SqliteKnownFailureStore(path).record_sighting(
        replace(ONE, occurrence="9", merge_request="!9", author="a")
    )
    assert dict(zip(found.merge_requests, found.authors, strict=True)) == {"!7": "", "!8": "", "!9": "a"}
    assert found.authors_total == 2
