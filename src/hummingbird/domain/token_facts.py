"""What GitLab says of a token: whose it is, what it may do and for how long. Never the token itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

READING_SCOPES = frozenset({"api", "read_api"})
WRITING_SCOPE = "api"
# What lets a token do more than look (GitLab's list of scopes); a new one is not known to be harmless.
HARMLESS_SCOPES = frozenset(
    {"read_api", "read_user", "read_repository", "read_registry", "read_virtual_registry", "read_service_ping"}
)


@dataclass(frozen=True, slots=True)
class TokenFacts:
    """`expires` None: never, or GitLab does not say."""

    user_id: int
    scopes: frozenset[str]
    expires: date | None = None

    @property
    def beyond_reading(self) -> frozenset[str]:
        return self.scopes - HARMLESS_SCOPES


def token_facts(raw: object) -> TokenFacts | None:
    """From the answer to /personal_access_tokens/self; None if it is another one's."""
    if not isinstance(raw, Mapping):
        return None
    user_id, scopes = raw.get("user_id"), raw.get("scopes")
    if not isinstance(user_id, int) or not isinstance(scopes, list):
        return None
    return TokenFacts(user_id, frozenset(map(str, scopes)), _day(raw.get("expires_at")))


def _day(text: Any) -> date | None:
    try:
        return date.fromisoformat(str(text)[:10])
    except ValueError:
        return None
