"""The contract on SQS, as ministack serves it."""

import pytest

from tests.contracts.queues.backends.ministack import Ministack
from tests.contracts.queues.stage import Case, Stage
from tests.contracts.queues.suite import CASES
from tests.thoroughly import one_per_topic


@pytest.mark.parametrize("case", one_per_topic(CASES), ids=lambda case: case.__name__)
async def test_sqs_keeps_the_contract(ministack: Ministack, case: Case) -> None:
    await Stage(ministack).play(case)
