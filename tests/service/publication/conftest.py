"""A GitLab for each test."""

from collections.abc import AsyncIterator

import pytest

from tests.service.publication.room import Room
from tests.service.publication.room import room as opened


@pytest.fixture
async def room() -> AsyncIterator[Room]:
    with opened() as found:
        yield found
        await found.forges.close()
        assert not found.lab.world.faults.unused_faults, "a fault that never happened proves nothing"
