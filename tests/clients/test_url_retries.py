"""How long reads wait, and that it ends."""

from hypothesis import given
from hypothesis import strategies as st

from hummingbird.clients.url_fetch import is_transient, retry_pause_s
from hummingbird.core.limits import (
    HTTP_PIECE_BYTES,
    HTTP_WORTHWHILE_BYTES,
    SOURCE_ATTEMPTS,
    SOURCE_CONNECT_S,
    SOURCE_HEADERS_S,
    SOURCE_RETRY_AFTER_CAP_S,
    SOURCE_SILENT_ATTEMPTS,
    SOURCE_WAIT_S,
    TOOL_TIMEOUT_S,
)


@given(st.lists(st.none() | st.floats(0, 100), min_size=20, max_size=20), st.floats(0, 1), st.booleans())
def test_whatever_a_source_asks_for_attempts_and_waiting_end(
    asked: list[float | None], chance: float, silent: bool
) -> None:
    waited, attempt = 0.0, 0
    for attempt, wish in enumerate(asked, 1):
        pause = retry_pause_s(attempt, waited, wish, chance, silent=silent)
        if pause is None:
            break
        assert wish is None or pause == wish
        waited += pause
    assert attempt <= SOURCE_ATTEMPTS
    assert waited <= SOURCE_WAIT_S


def test_pauses_grow_and_are_never_quite_the_same() -> None:
    assert [retry_pause_s(attempt, 0, None, 0.5) for attempt in range(1, SOURCE_ATTEMPTS)] == [0.5, 1.0, 2.0]
    assert retry_pause_s(1, 0, None, 0.0) != retry_pause_s(1, 0, None, 1.0)


def test_the_bounds_fit_into_each_other_and_into_a_tools_time() -> None:
    assert SOURCE_SILENT_ATTEMPTS * SOURCE_HEADERS_S + SOURCE_WAIT_S <= TOOL_TIMEOUT_S
    assert SOURCE_RETRY_AFTER_CAP_S <= SOURCE_WAIT_S
    assert SOURCE_CONNECT_S < SOURCE_HEADERS_S
    assert HTTP_WORTHWHILE_BYTES < HTTP_PIECE_BYTES


def test_only_what_may_pass_is_waited_for() -> None:
    assert [status for status in range(200, 600) if is_transient(status)] == [
        429,
        *(status for status in range(500, 600) if status not in {501, 505}),
    ]
