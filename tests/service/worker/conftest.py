"""The queues that the worker is tried on, and a play for it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hummingbird.core.protocols.queues import Queue
from hummingbird.queues.sqlite_queue import SqliteQueue
from tests.contracts.queues.backends.sqlite import SqliteBackend
from tests.contracts.queues.stage import Backend, Site
from tests.service.working import LONG_S, Play
from tests.thoroughly import also


@pytest.fixture(params=["sqlite", also("sqs")])
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> Site:
    backend: Backend = SqliteBackend(tmp_path)
    if request.param == "sqs":
        backend = request.getfixturevalue("ministack")
    return await backend.site()


@pytest.fixture
async def either(site: Site) -> AsyncIterator[Queue]:
    """Each of the two queues in turn."""
    queue = site.open(LONG_S)
    yield queue
    await queue.close()


@pytest.fixture
async def queue(tmp_path: Path) -> AsyncIterator[SqliteQueue]:
    queue = SqliteQueue(tmp_path / "queue.sqlite", LONG_S)
    yield queue
    await queue.close()


@pytest.fixture
async def play() -> Play:
    return Play()
