"""One lab for each test, which costs milliseconds, and a client for each of its servers."""

from collections.abc import Iterator

import pytest

from tests.lab.konflux.stage import CASE, Door
from tests.standins.konflux_lab import KonfluxLab


@pytest.fixture
def lab() -> Iterator[KonfluxLab]:
    with KonfluxLab(CASE) as running:
        yield running


@pytest.fixture
def cluster(lab: KonfluxLab) -> Iterator[Door]:
    with Door(lab.cluster_url, lab.token) as door:
        yield door


@pytest.fixture
def archive(lab: KonfluxLab) -> Iterator[Door]:
    with Door(lab.archive_url, lab.token) as door:
        yield door
