"""Parse the HTTP header Retry-After, which holds seconds or a date."""

import math
from datetime import UTC
from email.utils import parsedate_to_datetime


def parse_retry_after(value: str, now: float) -> float | None:
    """Return the seconds from `now`, or None for a value that is neither a number nor a date."""
    try:
        seconds = float(value)
    except ValueError:
        pass
    else:
        return seconds if 0 <= seconds < math.inf else None
    try:
        date = parsedate_to_datetime(value)
        moment = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
        return max(0.0, moment.timestamp() - now)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
