"""How long to wait before a read is tried again (D8): as GitLab says, or longer each time. Pure."""

import random
from collections.abc import Mapping

from hummingbird.domain.limits import RETRY_JITTER, SOURCE_DELAY_S
from hummingbird.domain.retry_after import retry_after

AGAIN = frozenset({429, 500, 502, 503, 504, *range(520, 531)})
"""Answers that another try may change; a CDN before GitLab speaks in the last ones."""


def pause_s(headers: Mapping[str, str], attempt: int, now: float) -> float:
    """Retry-After, else RateLimit-Reset, else a growing pause. `attempt` counts from 1, `now` is in seconds since 1970.

    The application's own limiter answers 429 without either header.
    """
    for asked in (retry_after(headers.get("Retry-After", ""), now), _reset(headers, now)):
        if asked is not None:
            return max(0.0, asked)
    return growing_s(attempt)


def growing_s(attempt: int) -> float:
    return SOURCE_DELAY_S * float(2 ** (attempt - 1)) * (1 + RETRY_JITTER * random.random())  # noqa: S311 - spreads load


def _reset(headers: Mapping[str, str], now: float) -> float | None:
    """Present on answers that were not refused too; there it only counts once nothing remains."""
    text = headers.get("RateLimit-Reset", "").strip()
    if headers.get("RateLimit-Remaining", "0").strip() != "0" or not (text.isascii() and text.isdigit()):
        return None
    return float(text[:12]) - now
