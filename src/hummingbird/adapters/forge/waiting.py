"""How long to wait before GitLab is asked again (N3): as it says, or longer each time. Pure."""

import random
from collections.abc import Mapping

from hummingbird.domain.limits import FORGE_DELAY_S, RETRY_JITTER
from hummingbird.domain.retry_after import retry_after


def pause_s(headers: Mapping[str, str], attempt: int, now: float) -> float:
    """Retry-After, else RateLimit-Reset, else a growing pause. `attempt` counts from 1, `now` is in seconds since 1970.

    The application's own limiter answers 429 without either header (facts 2.8).
    """
    for asked in (retry_after(headers.get("Retry-After", ""), now), _reset(headers, now)):
        if asked is not None:
            return asked
    return growing_s(attempt)


def growing_s(attempt: int) -> float:
    return FORGE_DELAY_S * float(2 ** (attempt - 1)) * (1 + RETRY_JITTER * random.random())  # noqa: S311 - spreads load


def _reset(headers: Mapping[str, str], now: float) -> float | None:
    """Present on answers that were not refused too; there it only counts once nothing remains. A moment that is over
    says nothing about how long to wait."""
    text = headers.get("RateLimit-Reset", "").strip()
    if headers.get("RateLimit-Remaining", "0").strip() != "0" or not (text.isascii() and text.isdigit()):
        return None
    seconds = float(text[:12]) - now
    return seconds if seconds > 0 else None
