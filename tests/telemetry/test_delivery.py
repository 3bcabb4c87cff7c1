"""An end that waits for others has a bound."""

import threading

import pytest

from hummingbird.telemetry.delivery import close_within


async def test_what_ends_in_time_has_ended() -> None:
    ended: list[str] = []
    assert await close_within(30, lambda: ended.append("yes"))
    assert ended == ["yes"]


@pytest.mark.timeout(30)
async def test_what_does_not_end_is_left_behind_and_keeps_no_process_alive() -> None:
    let_go = threading.Event()

    def wait() -> None:
        let_go.wait()

    try:
        assert not await close_within(0.01, wait)
        (left,) = [thread for thread in threading.enumerate() if thread.name == "telemetry-closing" and thread.daemon]
    finally:
        let_go.set()
    left.join()
