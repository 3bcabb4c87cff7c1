"""The host's side of the attempts, once for all tests."""

from collections.abc import Iterator

import pytest

from tests.security.host import Host, hosting


@pytest.fixture(scope="session")
def host() -> Iterator[Host]:
    with hosting() as host:
        yield host
