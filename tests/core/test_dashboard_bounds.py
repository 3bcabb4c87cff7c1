"""The dashboard's bounds hold together."""

from hummingbird.core.limits import KNOWN_DAYS, KNOWN_LISTED, SERVE_CLOSING_S
from hummingbird.core.sessions import SEARCH_HITS
from hummingbird.dashboard import queries as web


def test_what_is_shown_can_be_had() -> None:
    assert web.SEARCH_SHOWN <= SEARCH_HITS
    assert web.FAILURES_SHOWN <= KNOWN_LISTED
    assert web.FAILURE_PROJECTS <= KNOWN_LISTED
    assert web.TREND_DAYS <= KNOWN_DAYS
    assert web.ENTRY_SHOWN_CHARS < web.ENTRY_CHARS


def test_a_message_fits_into_a_form_however_it_is_written() -> None:
    assert web.MESSAGE_CHARS * 12 < web.FORM_BYTES, "a letter may be four bytes, each written as three"


def test_what_waits_for_slow_viewers_is_little_for_all_of_them_together() -> None:
    assert web.LIVE_VIEWERS * web.LIVE_PIECE_BYTES <= 2 * web.LIVE_BEHIND_BYTES


def test_who_looks_hears_in_time_that_it_is_over() -> None:
    assert web.LIVE_PAUSE_S < SERVE_CLOSING_S
    assert web.LIVE_VIEWERS / web.LIVE_WRITES_PER_S < web.LIVE_LATEST_S < web.LIVE_ALIVE_S
    assert web.LIVE_FEW / web.LIVE_PAUSE_S <= web.LIVE_WRITES_PER_S
