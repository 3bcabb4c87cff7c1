"""What a member of a project may do (R5, I7), as GitLab tells it. Pure: who is asked about, and when, others know."""

from collections.abc import Mapping
from datetime import date
from typing import Any

PLANNER = 15  # the least that may write and read internal notes
DEVELOPER = 30  # the least that may make us work


def access_of(member: Mapping[str, Any], today: date) -> int:
    """A member's level as GitLab tells it; none for who may not use it: blocked, locked, expired, only asking."""
    usable = member.get("state") == "active" and member.get("locked") is not True
    active = member.get("membership_state") in (None, "active") and not member.get("requested_at")
    level = member.get("access_level")
    if not usable or not active or _over(member.get("expires_at"), today) or not isinstance(level, int):
        return 0
    return level


def _over(expires_at: object, today: date) -> bool:
    """A date that cannot be read is one that may be over."""
    if expires_at is None:
        return False
    try:
        return date.fromisoformat(str(expires_at)[:10]) <= today
    except ValueError:
        return True
