"""The contract on a pod of its own: on the lab's stand-in, or on the cluster that is named."""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from tests.contracts.sandboxes.backends.cluster import Kubernetes, namespace
from tests.contracts.sandboxes.stage import Case, Stage
from tests.contracts.sandboxes.suite import CASES
from tests.sandboxes.kube import Stage as Namespace
from tests.thoroughly import on_the_way

# What goes on inside a pod is the same program that test_bubblewrap plays all cases on. Always played is one case of
# each topic in which the way there matters.
PLAYED = on_the_way(CASES, "archives", "breaking", "cancelling", "lifecycle", "stdin", "streams", "surroundings")

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(300),  # whoever comes first may have to make the image
]


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Namespace]:
    with namespace(tmp_path_factory.mktemp("cluster")) as given:
        yield given


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(given: Namespace) -> AsyncIterator[Stage]:
    stage = Stage(Kubernetes(given))
    yield stage
    await stage.close()


@pytest.mark.parametrize("case", PLAYED, ids=lambda case: case.__name__)
async def test_kubernetes_keeps_the_contract(stage: Stage, case: Case) -> None:
    await stage.play(case)
