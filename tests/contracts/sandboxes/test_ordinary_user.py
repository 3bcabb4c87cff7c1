"""The contract on bubblewrap, as a user without any rights. Root's tests give them up for it; an ordinary user's
own tests of bubblewrap are these already."""

import os
import sys
from collections.abc import Iterator

import pytest

from tests.contracts.sandboxes.backends.outside import SOMEBODY, Player
from tests.contracts.sandboxes.stage import Case
from tests.contracts.sandboxes.suite import CASES
from tests.real_parts import missing
from tests.thoroughly import one_per_topic

# Always played is one case of each topic in which rights matter.
PLAYED = one_per_topic(
    CASES,
    "archives",
    "bounds",
    "breaking",
    "cancelling",
    "leftovers",
    "lifecycle",
    "odd_names",
    "surroundings",
    "writing",
)


@pytest.fixture(scope="module")
def player() -> Iterator[Player]:
    if sys.platform != "linux":
        missing("bubblewrap works on Linux only")
    if os.geteuid() != 0:
        pytest.skip("whoever runs this is an ordinary user: test_bubblewrap has played all cases as one")
    player = Player("bubblewrap", "--as", str(SOMEBODY))
    yield player
    assert player.close() == 0


@pytest.mark.parametrize("case", PLAYED, ids=lambda case: case.__name__)
def test_an_ordinary_users_bubblewrap_keeps_the_contract(player: Player, case: Case) -> None:
    assert player.play(case.__name__) == ""
