"""Simulated worlds end as they have to, and a seed always plays alike."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable

import pytest

from tests.simulation.script import Script, make_script, without_faults
from tests.simulation.simulation import play
from tests.thoroughly import ALL

SEEDS, PARTS = (5000 if ALL else 200), 20  # parts of a few seconds: the workers share them
FAULTS_AT_LEAST = 5  # kinds of faults in each part


def assert_all_end_well(scripts: Iterable[Script]) -> Counter[tuple[str, str]]:
    """Play all scripts, and return what was covered."""
    covered: Counter[tuple[str, str]] = Counter()
    notes = 0
    for script in scripts:
        played = play(script)
        assert not played.violations, f"make simulate SEED={script.seed}\n{script.table()}\n{played.violations}"
        covered += played.covered
        notes += played.notes
    assert notes, "nothing happened"
    return covered


def test_calm_worlds_settle_without_a_violation() -> None:
    assert_all_end_well(without_faults(make_script(seed)) for seed in range(500 if ALL else 10))


@pytest.mark.every_case
@pytest.mark.parametrize("part", range(PARTS))
def test_bad_worlds_settle_without_a_violation(part: int) -> None:
    covered = assert_all_end_well(make_script(seed) for seed in range(SEEDS) if seed % PARTS == part)
    assert len({fault for fault, _ in covered}) >= FAULTS_AT_LEAST, "too little went wrong"


def test_a_seed_always_plays_alike() -> None:
    first, second = (play(make_script(5), trace=True) for _ in range(2))
    assert first.trace
    assert first.trace == second.trace


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [5, 6])  # with SQS and a bucket, with SQLite and folders
def test_a_seed_plays_alike_in_every_process(seed: int) -> None:
    command = (sys.executable, "-m", "tests.simulation", "--seed", str(seed), "-v")
    traces = {
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": number}, capture_output=True, check=True).stdout
        for number in ("1", "2")
    }
    assert len(traces) == 1
