"""The simulation notices when a promise of the service is broken on purpose, within 200 seeds."""

import pytest

from tests.simulation import script as script_parts
from tests.simulation.mutants import MUTANTS, SLOW_MUTANTS
from tests.simulation.script import Script, make_script
from tests.simulation.shrinking import shrink, to_source
from tests.simulation.simulation import play
from tests.thoroughly import also

SEEDS, ROWS_AT_MOST = 200, 20
EVERY = {**MUTANTS, **SLOW_MUTANTS}
TRIED_FIRST = {  # these notice it, and the ones before them need not be played
    "drop the lease check": 9,
    "flush no journal to the disk": 6,
}


@pytest.mark.thorough
def test_a_script_that_fails_becomes_a_short_table() -> None:
    with MUTANTS["drop the lease check"]():
        found = next(script for script in map(make_script, range(SEEDS)) if play(script).violations)
        short = shrink(found)
    assert short.violations
    assert len(short.script.events) < len(found.events)
    assert len(short.script.table().splitlines()) <= ROWS_AT_MOST
    again: Script = eval(to_source(short.script), vars(script_parts))
    assert again == short.script


@pytest.mark.every_case
@pytest.mark.parametrize("name", [*MUTANTS, *map(also, SLOW_MUTANTS)])
def test_a_broken_promise_is_noticed(name: str) -> None:
    with EVERY[name]():
        seeds = sorted(range(SEEDS), key=lambda seed: seed != TRIED_FIRST.get(name))
        found = next((seed for seed in seeds if play(make_script(seed)).violations), None)
    assert found is not None, f"{SEEDS} seeds did not notice: {name}"
