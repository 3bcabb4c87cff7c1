"""The contract on the embedded queue."""

from pathlib import Path

import pytest

from tests.contracts.queues.backends.sqlite import SqliteBackend
from tests.contracts.queues.stage import Case, Stage
from tests.contracts.queues.suite import CASES

pytestmark = pytest.mark.every_case


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
async def test_sqlite_keeps_the_contract(tmp_path: Path, case: Case) -> None:
    await Stage(SqliteBackend(tmp_path)).play(case)
