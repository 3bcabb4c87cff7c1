"""A lab whose planned faults all happen, and the bot's forge before it."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from hummingbird.adapters.forge.writing import GitLabForge
from hummingbird.lab.gitlab.lab import GitLabLab
from tests.adapters.forge.forging import Bench, forging
from tests.lab.gitlab.written_case import served


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[GitLabLab]:
    with served(tmp_path / "case") as running:
        yield running
        assert running.world.faults.unused == []


@pytest.fixture
async def bench(lab: GitLabLab) -> AsyncIterator[Bench]:
    async with forging(lab.url) as made:
        yield made


@pytest.fixture
def forge(bench: Bench) -> GitLabForge:
    return bench.forge
