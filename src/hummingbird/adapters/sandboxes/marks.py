"""What we write on pods and read off them again (X6): role, deadline, session, claimer. All that processes share.

Labels are for selecting, annotations for values. Knows no API and no clock.
"""

import hashlib
import re
from datetime import UTC, datetime

ROLE = "hummingbird/role"
STANDBY = "standby"
ACTIVE = "active"
REAP_BY = "hummingbird/reap-by"
SESSION = "hummingbird/session-id"
CLAIMED_BY = "hummingbird/claimed-by"

_LABEL = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


def stamp(moment: float) -> str:
    """RFC 3339 in UTC, whole seconds."""
    return datetime.fromtimestamp(int(moment), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment(stamped: str) -> float | None:
    """Seconds since the epoch; None for what is no time, or a time of nobody knows which zone."""
    try:
        read = datetime.fromisoformat(stamped)
        return None if read.tzinfo is None else read.timestamp()
    except (ValueError, OverflowError):
        return None


def session_label(session_id: str) -> str:
    """A label's value may hold 63 characters of a small alphabet; another id is stood for by its digest, so whoever
    selects by it looks at the annotation too."""
    if _LABEL.fullmatch(session_id):
        return session_id
    return "sha256-" + hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()[:48]
