"""The contract on a bucket in memory, which no other process can reach."""

import pytest

from tests.contracts.sessions.backends.bucket import BucketSite
from tests.contracts.sessions.stage import Case, Stage
from tests.contracts.sessions.suite import EVERYWHERE, IN_BUCKETS

pytestmark = pytest.mark.every_case


@pytest.mark.parametrize("case", [*EVERYWHERE, *IN_BUCKETS], ids=lambda case: case.__name__)
async def test_memory_keeps_the_contract(monkeypatch: pytest.MonkeyPatch, case: Case) -> None:
    await Stage(BucketSite(), monkeypatch).play(case)
