"""How long is waited before a read is tried again."""

from datetime import UTC, datetime
from email.utils import format_datetime

import pytest

from hummingbird.core.limits import RETRY_JITTER, SOURCE_DELAY_S
from hummingbird.gitlab.read.client import READ_POLICY

NOW = 1_772_445_600.0
LATER = format_datetime(datetime.fromtimestamp(NOW + 7, UTC), usegmt=True)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "12"}, 12.0),
        ({"Retry-After": LATER}, 7.0),
        ({"Retry-After": "Mon, 01 Jan 2001 00:00:00 GMT"}, 0.0),
        ({"Retry-After": "3", "RateLimit-Reset": str(int(NOW) + 60)}, 3.0),
        ({"RateLimit-Reset": str(int(NOW) + 5), "RateLimit-Remaining": "0"}, 5.0),
        ({"Retry-After": "soon", "RateLimit-Reset": str(int(NOW) + 5)}, 5.0),
    ],
)
def test_gitlab_is_obeyed(headers: dict[str, str], seconds: float) -> None:
    assert READ_POLICY.pause_s(headers, 1, NOW) == seconds


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Retry-After": "soon"},
        {"Retry-After": "-5"},
        {"RateLimit-Reset": str(int(NOW) + 60), "RateLimit-Remaining": "1999"},
        {"RateLimit-Reset": "x"},
        {"RateLimit-Reset": str(int(NOW) - 5)},
    ],
)
def test_without_a_word_from_it_pauses_grow(headers: dict[str, str]) -> None:
    """The application's limiter says nothing; limits not yet reached are told with every answer."""
    for attempt in (1, 2, 3):
        least = SOURCE_DELAY_S * 2 ** (attempt - 1)
        assert least <= READ_POLICY.pause_s(headers, attempt, NOW) <= least * (1 + RETRY_JITTER)


def test_pauses_differ_so_that_clients_do_not_march_in_step() -> None:
    assert len({READ_POLICY.backoff_s(1) for _ in range(20)}) > 1
