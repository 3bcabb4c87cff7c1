"""What is written down besides sessions, each shown broken; what is not there yet stays away."""

from decimal import Decimal
from pathlib import Path

from hummingbird.app.console import SystemClock
from hummingbird.app.doctor.platform_checks import record_checks
from hummingbird.app.doctor.runner import run_checks
from hummingbird.app.session_catalog import open_session_catalog, session_index_file
from hummingbird.app.session_holder import SPENDING_FILE
from hummingbird.app.stores import failure_ledger, state_paths
from hummingbird.storage.spending_store import SqliteSpendingStore
from tests.app.doctor.examining import FAIL, OK, WARN, doctor_context, tried
from tests.contracts.queues.backends.ministack import Ministack

PARTS = ["session index", "known failures", "spending"]


def test_what_is_not_there_yet_is_well_and_stays_away(tmp_path: Path) -> None:
    found = tried(record_checks, doctor_context(tmp_path, ""))
    assert [(one.part, one.standing) for one in found] == [(part, OK) for part in PARTS]
    assert all("will be created when it is needed" in one.sentence for one in found)
    assert not (tmp_path / "state").exists()


async def test_what_is_there_is_asked_and_nothing_is_added(tmp_path: Path) -> None:
    of = doctor_context(tmp_path, "")
    there = state_paths(of.settings, of.environment).create_folders()
    open_session_catalog(of.configuration, of.environment, SystemClock())
    await failure_ledger(there, of.settings).list_projects(1)
    spending = SqliteSpendingStore(there.sessions / SPENDING_FILE, SystemClock().now)
    await spending.add("a/b", Decimal(1))
    found = [one async for one in run_checks(list(record_checks(of)), 30)]
    assert [(one.standing, "can be used" in one.sentence) for one in found] == [(OK, True)] * 3
    assert await spending.usd_today("hummingbird/doctor") == 0


def test_what_is_broken_is_told(tmp_path: Path) -> None:
    of = doctor_context(tmp_path, "")
    there = state_paths(of.settings, of.environment).create_folders()
    file = session_index_file(there, of.settings, SystemClock().now)
    for one in (there.known_failures, there.sessions / SPENDING_FILE, file):
        one.write_bytes(b"this is no database, whatever its name says" * 100)
    found = tried(record_checks, of)
    standing = {one.part: one.standing for one in found if one.standing is not OK}
    assert standing == {"session index": WARN, "known failures": FAIL, "spending": FAIL}
    assert all(one.sentence for one in found)


def test_a_bucket_that_is_not_there_is_told(tmp_path: Path, cloud: Ministack) -> None:
    of = doctor_context(tmp_path, "session_store: s3://no-such-bucket/prefix")
    found = tried(record_checks, of)
    standing = {one.part: one.standing for one in found}
    assert standing == {"session index": OK, "known failures": FAIL, "spending": FAIL}
