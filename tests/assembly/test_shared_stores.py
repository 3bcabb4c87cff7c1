"""What hosts share is where their sessions are (O3)."""

from decimal import Decimal
from pathlib import Path

import pytest

from hummingbird.adapters.stores.bucket_known_failures import BucketKnownFailures
from hummingbird.adapters.stores.bucket_reactions import BucketReactions
from hummingbird.adapters.stores.bucket_spending import BucketSpending
from hummingbird.assembly.places import places
from hummingbird.assembly.shared_stores import known_failures_of, reactions_of, spending_of
from hummingbird.config.settings import Settings
from tests.contracts.queues.backends.ministack import Ministack
from tests.contracts.shared.sites import NOON, ONE, noon
from tests.contracts.shared.test_reactions import NOTE
from tests.contracts.stores.backends.s3 import S3Buckets


def is_empty(folder: Path) -> bool:
    return not list(folder.iterdir())


async def test_a_directory_keeps_them_in_files_of_this_machine_o3(tmp_path: Path) -> None:
    """Where they have always been."""
    settings = Settings(session_store=str(tmp_path / "kept"))
    there = places(settings, {"HUMMINGBIRD_HOME": str(tmp_path / "state")}).made()
    await spending_of(there, settings, noon).add("one", Decimal(1))
    await known_failures_of(there, settings).seen(ONE)
    assert (tmp_path / "kept" / "spending.sqlite").is_file()
    await reactions_of(there, settings).posted(NOTE)
    assert (tmp_path / "state" / "known_failures.sqlite").is_file()
    assert (tmp_path / "state" / "votes.sqlite").is_file()


async def test_two_hosts_with_one_bucket_have_one_budget_and_one_memory_o3(cloud: Ministack, tmp_path: Path) -> None:
    """L6, V6: they share nothing else, and keep nothing themselves."""
    settings = Settings(session_store=S3Buckets(cloud).address())
    one, other = (places(settings, {"HUMMINGBIRD_HOME": str(tmp_path / name)}) for name in ("one", "other"))
    await spending_of(one, settings, noon).add("project", Decimal("0.75"))
    await spending_of(other, settings, noon).add("project", Decimal("0.50"))
    assert await spending_of(one, settings, noon).spent_today("project") == Decimal("1.25")
    assert await spending_of(one, settings, lambda: NOON + 86_400).spent_today("project") == 0
    await known_failures_of(one, settings).seen(ONE)
    found = await known_failures_of(other, settings).known(ONE.project, ONE.fingerprint)
    assert found is not None
    assert found.count == 1
    await reactions_of(one, settings).posted(NOTE)
    assert await reactions_of(other, settings).known(NOTE.project, NOTE.note_id) is not None
    assert is_empty(tmp_path)


@pytest.mark.parametrize("address", ["s3://bucket/some", "gs://bucket", "az://container/some"])
def test_every_cloud_is_a_bucket_that_nothing_is_asked_of_yet_o3(address: str, tmp_path: Path) -> None:
    settings = Settings(session_store=address)
    there = places(settings, {"HUMMINGBIRD_HOME": str(tmp_path)})
    assert isinstance(spending_of(there, settings, noon), BucketSpending)
    assert isinstance(known_failures_of(there, settings), BucketKnownFailures)
    assert isinstance(reactions_of(there, settings), BucketReactions)
