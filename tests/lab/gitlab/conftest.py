"""A lab of its own for each test, and somebody who asks it."""

from collections.abc import Iterator

import pytest

from hummingbird.lab.gitlab.server import GitLabLab
from tests.lab.gitlab.asking import TINY, Web


@pytest.fixture
def lab() -> Iterator[GitLabLab]:
    with GitLabLab(TINY) as running:
        yield running


@pytest.fixture
def web(lab: GitLabLab) -> Iterator[Web]:
    """Asks with the read token."""
    asking = Web(lab)
    yield asking
    asking.client.close()
