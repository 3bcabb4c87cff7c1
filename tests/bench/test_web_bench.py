"""The dashboard's benchmark measures what it says: pages are loaded, held to their number, and bounded in memory."""

import asyncio

import pytest

from benchmarks.service.burst import Size, world
from benchmarks.web.paint import Scale, painted, plain
from benchmarks.web.readers import measured
from benchmarks.web.viewers import QUICK, paths
from hummingbird.dashboard.queries import PAGES_OPEN

PAGE_ROOM_MB = 2.0  # of a page with 100 entries that nobody reads


@pytest.mark.thorough
def test_more_readers_than_may_be_are_asked_to_wait_and_take_no_memory() -> None:
    found = measured(100, 3 * PAGES_OPEN)
    assert (found.let_in, found.asked_to_wait) == (PAGES_OPEN, 2 * PAGES_OPEN)
    assert 0 < found.peak_mb - found.before_mb < PAGES_OPEN * PAGE_ROOM_MB


@pytest.mark.thorough
def test_a_page_and_a_static_one_of_the_same_bytes_are_both_painted() -> None:
    async def both() -> None:
        content = b"<!doctype html><title>x</title><p>hello</p>" + b"<p>again</p>" * 100
        async with plain(content) as one, plain(content) as other:
            first, whole = await painted(Scale(repeats=2), (one, other))
        assert [all(moment > 0 for moment in pair) for pair in (*first, *whole)] == [True] * 4

    asyncio.run(both())


@pytest.mark.thorough
def test_half_of_the_viewers_look_at_sessions_of_the_runs_that_come() -> None:
    with world(Size(webhooks=QUICK.runs, slots=(4,), delay_s=0.0)) as other:
        looked_at = paths(other.hooks("failures"), QUICK.viewers)
    assert len(looked_at) == QUICK.viewers
    assert looked_at.count("/live/runs") == QUICK.viewers // 2
    assert len({one for one in looked_at if one.startswith("/live/sessions/")}) == QUICK.runs
