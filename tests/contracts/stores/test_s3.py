"""The contract on S3 (S1), as ministack serves it."""

import pytest

from tests.contracts.queues.backends.ministack import Ministack
from tests.contracts.stores.backends.s3 import S3Buckets
from tests.contracts.stores.stage import Case, Stage
from tests.contracts.stores.suite import CASES
from tests.thoroughly import topical


@pytest.mark.parametrize(
    "case", topical(CASES, "looking", "swapping", "listing", "flows", "trouble"), ids=lambda case: case.__name__
)
async def test_s3_keeps_the_contract(cloud: Ministack, case: Case) -> None:
    await Stage(S3Buckets(cloud)).play(case)
