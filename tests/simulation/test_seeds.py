"""Simulated worlds end as they have to, and a seed always plays alike."""

import logging
from collections.abc import Iterator

import pytest

from tests.simulation.script import make_script, without_faults
from tests.simulation.simulation import play
from tests.thoroughly import ALL

SEEDS = 1000 if ALL else 40


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logger = logging.getLogger("hummingbird")
    kept, logger.level = logger.level, logging.CRITICAL
    yield
    logger.level = kept


def test_calm_worlds_settle_without_a_violation() -> None:
    for seed in range(SEEDS):
        played = play(without_faults(make_script(seed)))
        assert not played.violations, f"{played.script.table()}\n{played.violations}"


def test_a_seed_always_plays_alike() -> None:
    first, second = (play(make_script(5), trace=True) for _ in range(2))
    assert first.trace
    assert first.trace == second.trace
