"""A server that says what a test wants, and a client that speaks to it without waiting."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.gitlab.read.stage import Session, Stage, close_sources, session_at, staged


@pytest.fixture
def stage() -> Iterator[Stage]:
    with staged() as found:
        yield found


@pytest.fixture
async def session(stage: Stage) -> AsyncIterator[Session]:
    async with session_at(stage.url) as found:
        yield found


@pytest.fixture(autouse=True)
async def _sources_closed() -> AsyncIterator[None]:
    yield
    await close_sources()
