"""The contract on bubblewrap, as whoever runs the tests."""

import sys
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.contracts.sandboxes.backends.bubblewrap import Bubblewrap
from tests.contracts.sandboxes.stage import Case, Stage
from tests.contracts.sandboxes.suite import CASES
from tests.real_parts import missing

pytestmark = [pytest.mark.every_case, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage() -> AsyncIterator[Stage]:
    if sys.platform != "linux":
        missing("bubblewrap works on Linux only")
    stage = Stage(Bubblewrap())
    yield stage
    await stage.close()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
async def test_bubblewrap_keeps_the_contract(stage: Stage, case: Case) -> None:
    await stage.play(case)
