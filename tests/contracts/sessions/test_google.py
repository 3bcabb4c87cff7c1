"""The contract on Google's Cloud Storage, as our stand-in serves it."""

import pytest

from tests.contracts.sessions.backends.bucket import BucketSite
from tests.contracts.sessions.stage import Case, Stage
from tests.contracts.sessions.suite import ACROSS_PROCESSES, EVERYWHERE, IN_BUCKETS
from tests.contracts.storage.backends.google import Google
from tests.thoroughly import one_per_topic

# Always played is one case in which the store itself matters; the contract of stores is played on each of them.
PLAYED = one_per_topic([*EVERYWHERE, *ACROSS_PROCESSES, *IN_BUCKETS], "leases")


@pytest.mark.parametrize("case", PLAYED, ids=lambda case: case.__name__)
async def test_google_keeps_the_contract(google: Google, monkeypatch: pytest.MonkeyPatch, case: Case) -> None:
    await Stage(BucketSite(google.address()), monkeypatch).play(case)
