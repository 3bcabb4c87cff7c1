"""The contract on S3, as ministack serves it."""

import pytest

from tests.contracts.queues.backends.ministack import Ministack
from tests.contracts.sessions.backends.bucket import BucketSite
from tests.contracts.sessions.stage import Case, Stage
from tests.contracts.sessions.suite import ACROSS_PROCESSES, EVERYWHERE, IN_BUCKETS
from tests.contracts.storage.backends.s3 import S3Buckets
from tests.thoroughly import one_per_topic

# A bucket in memory plays all that needs no other process: the same code. Always played is one case of each topic.
PLAYED = one_per_topic([*EVERYWHERE, *ACROSS_PROCESSES, *IN_BUCKETS])


@pytest.mark.parametrize("case", PLAYED, ids=lambda case: case.__name__)
async def test_s3_keeps_the_contract(cloud: Ministack, monkeypatch: pytest.MonkeyPatch, case: Case) -> None:
    await Stage(BucketSite(S3Buckets(cloud).address()), monkeypatch).play(case)
