"""The contract on podman: one case of each topic, and all of them thoroughly. What goes on inside a container is
the same program that test_bubblewrap plays all cases on."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.contracts.sandboxes.backends.podman import Podman
from tests.contracts.sandboxes.stage import Case, Stage
from tests.contracts.sandboxes.suite import CASES
from tests.sandbox_image import sandbox_image
from tests.thoroughly import one_per_topic

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(300),  # whoever comes first may have to make the image
]


@pytest.fixture(scope="module")
def image() -> str:
    return sandbox_image()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(image: str) -> AsyncIterator[Stage]:
    stage = Stage(Podman(image))
    yield stage
    await stage.close()


@pytest.mark.parametrize("case", one_per_topic(CASES), ids=lambda case: case.__name__)
async def test_podman_keeps_the_contract(stage: Stage, case: Case) -> None:
    await stage.play(case)
