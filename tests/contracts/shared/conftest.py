"""Every case here is played on each of the sites."""

from collections.abc import Callable
from typing import TypeAlias

import pytest

from tests.contracts.shared.sites import Site
from tests.contracts.storage.backends.s3 import S3Buckets
from tests.thoroughly import also

Sites: TypeAlias = Callable[[], Site]


def sites_of(kind: str, request: pytest.FixtureRequest) -> Sites:
    if kind == "memory":
        return lambda: Site("")
    if kind == "s3":
        buckets = S3Buckets(request.getfixturevalue("cloud"))
        return lambda: Site(buckets.address())
    folders: pytest.TempPathFactory = request.getfixturevalue("tmp_path_factory")
    return lambda: Site(str(folders.mktemp("machine") / "deep"))


@pytest.fixture(params=["sqlite", "memory", also("s3")])
def sites(request: pytest.FixtureRequest) -> Sites:
    """Each time another one, empty."""
    return sites_of(request.param, request)


@pytest.fixture
def site(sites: Sites) -> Site:
    return sites()


@pytest.fixture(params=["sqlite", "s3"])
def shared(request: pytest.FixtureRequest) -> Site:
    """One that other processes reach."""
    return sites_of(request.param, request)()
