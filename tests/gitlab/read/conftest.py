"""A server that says what a test wants, and the session that speaks to it."""

from collections.abc import Iterator

import pytest

from hummingbird.gitlab.read.http_session import InterruptibleAdapter, ReadOnlySession
from tests.gitlab.read.stage import Hasty, Stage, staged


@pytest.fixture
def stage() -> Iterator[Stage]:
    with staged() as found:
        yield found


@pytest.fixture
def effort() -> Hasty:
    return Hasty()


@pytest.fixture
def session(stage: Stage, effort: Hasty) -> Iterator[ReadOnlySession]:
    connections = InterruptibleAdapter()
    with ReadOnlySession(stage.url, effort, connections) as found:
        yield found
    connections.close()
