"""A server that says what a test wants, and the session that speaks to it."""

from collections.abc import Iterator

import pytest

from hummingbird.adapters.sources.gitlab.connections import Connections
from hummingbird.adapters.sources.gitlab.session import ReadingSession
from tests.adapters.sources.gitlab.stage import Hasty, Stage, staged


@pytest.fixture
def stage() -> Iterator[Stage]:
    with staged() as found:
        yield found


@pytest.fixture
def effort() -> Hasty:
    return Hasty()


@pytest.fixture
def session(stage: Stage, effort: Hasty) -> Iterator[ReadingSession]:
    connections = Connections()
    with ReadingSession(stage.url, effort, connections) as found:
        yield found
    connections.close()
