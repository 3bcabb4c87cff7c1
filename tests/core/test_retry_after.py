"""What Retry-After means."""

import pytest

from hummingbird.clients.http_clients import parse_retry_after


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        ("7", 7.0),
        ("1.5", 1.5),
        ("Thu, 01 Jan 1970 00:01:10 GMT", 10.0),
        ("Thu, 01 Jan 1970 00:00:10 GMT", 0.0),
        ("Thu, 01 Jan 1970 00:01:10", 10.0),
        ("Thu, 01 Jan 1970 00:01:10 -0000", 10.0),
    ],
)
def test_it_is_seconds_or_a_date_and_a_date_without_a_zone_is_utc(value: str, seconds: float) -> None:
    assert parse_retry_after(value, 60.0) == seconds


@pytest.mark.parametrize(
    "value",
    ["", "-1", "nan", "inf", "1e999", "soon", "Mon, 99 Foo 2026", "Sun, 06 Nov 99999 08:49:37 GMT", ",", "\x00"],
)
def test_what_is_neither_is_ignored(value: str) -> None:
    assert parse_retry_after(value, 60.0) is None
