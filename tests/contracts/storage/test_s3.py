"""The contract on S3, as ministack serves it."""

import pytest

from tests.contracts.queues.backends.ministack import Ministack
from tests.contracts.storage.backends.s3 import S3Buckets
from tests.contracts.storage.stage import Case, Stage
from tests.contracts.storage.suite import CASES
from tests.thoroughly import topical


@pytest.mark.parametrize(
    "case", topical(CASES, "looking", "swapping", "listing", "flows", "trouble"), ids=lambda case: case.__name__
)
async def test_s3_keeps_the_contract(cloud: Ministack, case: Case) -> None:
    await Stage(S3Buckets(cloud)).play(case)
