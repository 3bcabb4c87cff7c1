"""One lab for each worker, and a namespace of its own for each test."""

import uuid
from collections.abc import Iterator

import pytest

from tests.standins.kubernetes.server import KubernetesLab
from tests.standins.test_kubernetes.stage import Place, tiny_image


@pytest.fixture(scope="session")
def image() -> str:
    return tiny_image()


@pytest.fixture(scope="session")
def lab(image: str) -> Iterator[KubernetesLab]:
    with KubernetesLab() as running:
        yield running


@pytest.fixture(scope="session")
def paper_lab(image: str) -> Iterator[KubernetesLab]:
    """A lab whose pods stay Pending: the API alone, without the cost of containers."""
    with KubernetesLab() as running:
        running.hold()
        yield running


def _place(lab: KubernetesLab, image: str) -> Iterator[Place]:
    place = Place(lab, f"ns-{uuid.uuid4().hex[:8]}", image)
    yield place
    place.http.close()


@pytest.fixture
def place(lab: KubernetesLab, image: str) -> Iterator[Place]:
    yield from _place(lab, image)


@pytest.fixture
def paper(paper_lab: KubernetesLab, image: str) -> Iterator[Place]:
    yield from _place(paper_lab, image)
