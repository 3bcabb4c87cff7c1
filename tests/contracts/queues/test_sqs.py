"""The contract on SQS (E3), as ministack serves it."""

from collections.abc import Iterator

import pytest

from tests.contracts.queues.backends.ministack import SURROUNDINGS, Ministack, serving
from tests.contracts.queues.stage import Case, Stage
from tests.contracts.queues.suite import CASES


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ministack]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SURROUNDINGS.items():
            patch.setenv(name, value)
        with serving(tmp_path_factory.mktemp("ministack")) as server:
            yield server


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
async def test_sqs_keeps_the_contract(server: Ministack, case: Case) -> None:
    await Stage(server).play(case)
