"""Decide which requests to GitLab are sent again, and how long to wait before.

A read, and a write that has no further effect, may always be repeated. Any other write is repeated only when GitLab
certainly did nothing: it answered 429, or was never reached. GitLab's own headers decide about the pause when it sends
them; otherwise the pause grows exponentially, because GitLab's application rate limiter answers 429 without any header.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass

from hummingbird.core.limits import RETRY_JITTER
from hummingbird.core.retry_after import parse_retry_after


def may_retry_status(status: int, *, repeatable: bool) -> bool:
    """Return whether a request that was answered with this status may be sent again."""
    return status == 429 or (repeatable and (status in (408, 425) or status >= 500))


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how patiently a request is repeated.

    A server that is silent costs a whole timeout each time, so it gets fewer attempts. A server that asks for a pause
    longer than `longest_pause_s`, or for more than `total_pause_s` together, is not waited for at all.
    """

    attempts: int
    silent_attempts: int
    first_pause_s: float
    longest_pause_s: float
    total_pause_s: float

    def next_pause_s(
        self, attempt: int, waited_s: float, *, headers: Mapping[str, str], now: float, silent: bool = False
    ) -> float | None:
        """Return the pause after attempt number `attempt`, which counts from 1; None to give up.

        `headers` are those of the refusal, empty if no response came. `now` is in seconds since 1970.
        """
        if attempt >= (self.silent_attempts if silent else self.attempts):
            return None
        pause = self.pause_s(headers, attempt, now)
        return pause if pause <= self.longest_pause_s and waited_s + pause <= self.total_pause_s else None

    def pause_s(self, headers: Mapping[str, str], attempt: int, now: float) -> float:
        """Return the pause from Retry-After, else from RateLimit-Reset, else the backoff."""
        for asked in (parse_retry_after(headers.get("Retry-After", ""), now), _reset_s(headers, now)):
            if asked is not None:
                return asked
        return self.backoff_s(attempt)

    def backoff_s(self, attempt: int) -> float:
        """Return a pause that doubles with each attempt, plus jitter."""
        return self.first_pause_s * float(2 ** (attempt - 1)) * (1 + RETRY_JITTER * random.random())  # noqa: S311 - spreads load


def _reset_s(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds until the rate limit resets; None when that time has passed.

    GitLab sends the header with successful responses too, so it counts only when RateLimit-Remaining is 0.
    """
    text = headers.get("RateLimit-Reset", "").strip()
    if headers.get("RateLimit-Remaining", "0").strip() != "0" or not (text.isascii() and text.isdigit()):
        return None
    seconds = float(text[:12]) - now
    return seconds if seconds > 0 else None
