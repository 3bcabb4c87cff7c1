"""The contract on Azure, as azurite serves it."""

import pytest

from tests.contracts.sessions.backends.bucket import BucketSite
from tests.contracts.sessions.stage import Case, Stage
from tests.contracts.sessions.suite import ACROSS_PROCESSES, EVERYWHERE, IN_BUCKETS
from tests.contracts.storage.backends.azure import Azurite
from tests.thoroughly import one_per_topic

# Always played is one case in which the store itself matters; the contract of stores is played on each of them.
PLAYED = one_per_topic([*EVERYWHERE, *ACROSS_PROCESSES, *IN_BUCKETS], "leases")


@pytest.mark.parametrize("case", PLAYED, ids=lambda case: case.__name__)
async def test_azure_keeps_the_contract(azurite: Azurite, monkeypatch: pytest.MonkeyPatch, case: Case) -> None:
    await Stage(BucketSite(azurite.address()), monkeypatch).play(case)
