"""A lab whose planned faults all happen, and the bot's forge before it."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from hummingbird.gitlab.write.project_writer import GitLabProjectWriter
from hummingbird.lab.gitlab.server import GitLabLab
from tests.gitlab.write.writer_stage import Bench, forging
from tests.lab.gitlab.written_case import served


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[GitLabLab]:
    with served(tmp_path / "case") as running:
        yield running
        assert running.world.faults.unused_faults == []


@pytest.fixture
async def bench(lab: GitLabLab) -> AsyncIterator[Bench]:
    async with forging(lab.url) as made:
        yield made


@pytest.fixture
def forge(bench: Bench) -> GitLabProjectWriter:
    return bench.forge
