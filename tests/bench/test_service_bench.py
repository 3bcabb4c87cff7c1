"""The service's benchmark measures what it says: every door keeps all that it has acknowledged."""

import pytest

from benchmarks.service.webhook import LANES, NAMES, event, measured


@pytest.mark.thorough
@pytest.mark.parametrize("door", NAMES)
def test_a_door_is_measured_and_has_kept_everything(door: str) -> None:
    found = measured(door, LANES, event())
    assert found.per_s > 0
    assert 0 < found.p50_ms <= found.p99_ms
