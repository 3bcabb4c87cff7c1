"""The simulation notices when a promise of the service is broken on purpose, within 200 seeds."""

import logging
from collections.abc import Iterator

import pytest

from tests.simulation.mutants import MUTANTS, SLOW_MUTANTS
from tests.simulation.script import make_script
from tests.simulation.simulation import play
from tests.thoroughly import also

SEEDS = 200
EVERY = {**MUTANTS, **SLOW_MUTANTS}
TRIED_FIRST: dict[str, int] = {}  # these notice it, and the ones before them need not be played


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logger = logging.getLogger("hummingbird")
    kept, logger.level = logger.level, logging.CRITICAL
    yield
    logger.level = kept


@pytest.mark.every_case
@pytest.mark.parametrize("name", [*MUTANTS, *map(also, SLOW_MUTANTS)])
def test_a_broken_promise_is_noticed(name: str) -> None:
    with EVERY[name]():
        seeds = sorted(range(SEEDS), key=lambda seed: seed != TRIED_FIRST.get(name))
        found = next((seed for seed in seeds if play(make_script(seed)).violations), None)
    assert found is not None, f"{SEEDS} seeds did not notice: {name}"
