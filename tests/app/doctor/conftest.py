"""A GitLab of its own for each test, since tests change what its tokens and people may do."""

from collections.abc import Iterator

import pytest

from hummingbird.lab.case import find_case
from hummingbird.lab.gitlab.server import GitLabLab


@pytest.fixture
def gitlab() -> Iterator[GitLabLab]:
    with GitLabLab(find_case("compiler-error")) as lab:
        yield lab
