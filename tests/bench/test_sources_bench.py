"""What the sources' benchmark promises holds for smaller amounts too: memory that does not grow with what is read."""

import pytest

from benchmarks.sources.report import MB, run, served

LOG_ROOM_MB, LIST_ROOM_MB = 16, 12


@pytest.mark.thorough
def test_a_log_streams_to_the_sandbox_within_its_room() -> None:
    size = 48 * MB
    with served("log", size) as where:
        found = run("log", "ours", where)
    assert 0.9 * size < found["bytes"] <= size, "escape sequences are all that is missing"
    assert found["peak_mb"] < LOG_ROOM_MB


@pytest.mark.thorough
def test_a_page_of_objects_streams_to_the_sandbox_within_its_room() -> None:
    with served("page", 150) as where:
        found = run("page", "ours", where)
    assert found["bytes"] > 15 * MB
    assert found["peak_mb"] < LIST_ROOM_MB
