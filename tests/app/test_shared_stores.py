"""What hosts share is where their sessions are."""

from decimal import Decimal
from pathlib import Path

import pytest

from hummingbird.app.stores import failure_ledger, spending_ledger, state_paths, vote_ledger
from hummingbird.config.settings import Settings
from hummingbird.storage.bucket_failure_store import BucketKnownFailureStore
from hummingbird.storage.spending_store import BucketSpendingStore
from hummingbird.storage.vote_store import BucketVoteStore
from tests.contracts.queues.backends.ministack import Ministack
from tests.contracts.shared.sites import NOON, ONE, noon
from tests.contracts.shared.test_reactions import NOTE
from tests.contracts.storage.backends.s3 import S3Buckets


def is_empty(folder: Path) -> bool:
    return not list(folder.iterdir())


async def test_a_directory_keeps_them_in_files_of_this_machine(tmp_path: Path) -> None:
    """Where they have always been."""
    settings = Settings(session_store=str(tmp_path / "kept"))
    there = state_paths(settings, {"HUMMINGBIRD_HOME": str(tmp_path / "state")}).create_folders()
    await spending_ledger(there, settings, noon).add("one", Decimal(1))
    await failure_ledger(there, settings).record_sighting(ONE)
    assert (tmp_path / "kept" / "spending.sqlite").is_file()
    await vote_ledger(there, settings).record_note(NOTE)
    assert (tmp_path / "state" / "known_failures.sqlite").is_file()
    assert (tmp_path / "state" / "votes.sqlite").is_file()


async def test_two_hosts_with_one_bucket_have_one_budget_and_one_memory(cloud: Ministack, tmp_path: Path) -> None:
    """They share nothing else, and keep nothing themselves."""
    settings = Settings(session_store=S3Buckets(cloud).address())
    one, other = (state_paths(settings, {"HUMMINGBIRD_HOME": str(tmp_path / name)}) for name in ("one", "other"))
    await spending_ledger(one, settings, noon).add("project", Decimal("0.75"))
    await spending_ledger(other, settings, noon).add("project", Decimal("0.50"))
    assert await spending_ledger(one, settings, noon).usd_today("project") == Decimal("1.25")
    assert await spending_ledger(one, settings, lambda: NOON + 86_400).usd_today("project") == 0
    await failure_ledger(one, settings).record_sighting(ONE)
    found = await failure_ledger(other, settings).find_failure(ONE.project, ONE.fingerprint)
    assert found is not None
    assert found.count == 1
    await vote_ledger(one, settings).record_note(NOTE)
    assert await vote_ledger(other, settings).find_note(NOTE.project, NOTE.note_id) is not None
    assert is_empty(tmp_path)


@pytest.mark.parametrize("address", ["s3://bucket/some", "gs://bucket", "az://container/some"])
def test_every_cloud_is_a_bucket_that_nothing_is_asked_of_yet(address: str, tmp_path: Path) -> None:
    settings = Settings(session_store=address)
    there = state_paths(settings, {"HUMMINGBIRD_HOME": str(tmp_path)})
    assert isinstance(spending_ledger(there, settings, noon), BucketSpendingStore)
    assert isinstance(failure_ledger(there, settings), BucketKnownFailureStore)
    assert isinstance(vote_ledger(there, settings), BucketVoteStore)
