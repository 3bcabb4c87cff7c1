"""Compute how long to wait before a request to GitLab is retried.

GitLab's own headers decide when it sends them; otherwise the pause grows exponentially. GitLab's application rate
limiter answers 429 without either header. The `reader_` functions serve `gitlab.read`, the `writer_` functions
`gitlab.write`; they differ in the base delay and in how they treat a reset time that has passed.
"""

import random
from collections.abc import Mapping

from hummingbird.core.limits import FORGE_DELAY_S, RETRY_JITTER, SOURCE_DELAY_S
from hummingbird.core.retry_after import parse_retry_after

RETRY_STATUSES = frozenset({429, 500, 502, 503, 504, *range(520, 531)})
"""Response statuses worth a retry; 520 to 530 come from a CDN in front of GitLab."""


def reader_pause_s(headers: Mapping[str, str], attempt: int, now: float) -> float:
    """Return the pause from Retry-After, else from RateLimit-Reset, else the backoff.

    `attempt` counts from 1; `now` is in seconds since 1970. A reset time that has passed means no pause.
    """
    for asked in (parse_retry_after(headers.get("Retry-After", ""), now), _reader_reset_s(headers, now)):
        if asked is not None:
            return max(0.0, asked)
    return reader_backoff_s(attempt)


def reader_backoff_s(attempt: int) -> float:
    """Return a pause that doubles with each attempt, plus jitter."""
    return SOURCE_DELAY_S * float(2 ** (attempt - 1)) * (1 + RETRY_JITTER * random.random())  # noqa: S311 - spreads load


def _reader_reset_s(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds until the rate limit resets.

    GitLab sends the header with successful responses too, so it counts only when RateLimit-Remaining is 0.
    """
    text = headers.get("RateLimit-Reset", "").strip()
    if headers.get("RateLimit-Remaining", "0").strip() != "0" or not (text.isascii() and text.isdigit()):
        return None
    return float(text[:12]) - now


def writer_pause_s(headers: Mapping[str, str], attempt: int, now: float) -> float:
    """Return the pause from Retry-After, else from RateLimit-Reset, else the backoff.

    `attempt` counts from 1; `now` is in seconds since 1970. A reset time that has passed is ignored.
    """
    for asked in (parse_retry_after(headers.get("Retry-After", ""), now), _writer_reset_s(headers, now)):
        if asked is not None:
            return asked
    return writer_backoff_s(attempt)


def writer_backoff_s(attempt: int) -> float:
    """Return a pause that doubles with each attempt, plus jitter."""
    return FORGE_DELAY_S * float(2 ** (attempt - 1)) * (1 + RETRY_JITTER * random.random())  # noqa: S311 - spreads load


def _writer_reset_s(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds until the rate limit resets; None when that time has passed.

    GitLab sends the header with successful responses too, so it counts only when RateLimit-Remaining is 0.
    """
    text = headers.get("RateLimit-Reset", "").strip()
    if headers.get("RateLimit-Remaining", "0").strip() != "0" or not (text.isascii() and text.isdigit()):
        return None
    seconds = float(text[:12]) - now
    return seconds if seconds > 0 else None
