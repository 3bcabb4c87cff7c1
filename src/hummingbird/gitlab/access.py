"""Interpret what GitLab's API says about a member's access level and about a token's scopes.

Nothing here sends a request or sees a token's value.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

PLANNER = 15  # the lowest level that may write and read internal notes
DEVELOPER = 30  # the lowest level that may start a run


def active_access_level(member: Mapping[str, Any], today: date) -> int:
    """Return the member's access level; 0 when the member is blocked, locked, expired or still requesting access."""
    usable = member.get("state") == "active" and member.get("locked") is not True
    active = member.get("membership_state") in (None, "active") and not member.get("requested_at")
    level = member.get("access_level")
    if not usable or not active or _is_expired(member.get("expires_at"), today) or not isinstance(level, int):
        return 0
    return level


def _is_expired(expires_at: object, today: date) -> bool:
    """Return whether the membership has ended; a date that cannot be parsed counts as expired."""
    if expires_at is None:
        return False
    try:
        return date.fromisoformat(str(expires_at)[:10]) <= today
    except ValueError:
        return True


READING_SCOPES = frozenset({"api", "read_api"})
WRITING_SCOPE = "api"
# Every scope that is not listed here counts as one that writes, also scopes that GitLab adds in the future.
HARMLESS_SCOPES = frozenset(
    {"read_api", "read_user", "read_repository", "read_registry", "read_virtual_registry", "read_service_ping"}
)


@dataclass(frozen=True, slots=True)
class TokenFacts:
    """What GitLab says about a token: its user, its scopes and its expiry date.

    `expires` is None when the token never expires or GitLab does not say.
    """

    user_id: int
    scopes: frozenset[str]
    expires: date | None = None

    @property
    def write_scopes(self) -> frozenset[str]:
        """Return the scopes that allow more than reading."""
        return self.scopes - HARMLESS_SCOPES


def parse_token_facts(raw: object) -> TokenFacts | None:
    """Parse the response to `/personal_access_tokens/self`; return None when it has another shape."""
    if not isinstance(raw, Mapping):
        return None
    user_id, scopes = raw.get("user_id"), raw.get("scopes")
    if not isinstance(user_id, int) or not isinstance(scopes, list):
        return None
    return TokenFacts(user_id, frozenset(map(str, scopes)), _parse_date(raw.get("expires_at")))


def _parse_date(text: Any) -> date | None:
    try:
        return date.fromisoformat(str(text)[:10])
    except ValueError:
        return None
