"""Who may come in: the credential each vendor looks for and what it says when there is none, a bad one, or no money.

Keys are compared, never kept.
"""

from collections.abc import Callable, Mapping

from tests.standins.vendors.refusals import Refusal
from tests.standins.vendors.surfaces import SurfaceName

BAD_KEY = "bad-key"
NO_CREDIT = "no-credit"
# Google's public endpoint answers a key that it has never issued with a 400; the lab keeps a key for that habit
NEVER_ISSUED_KEY = "invalid-key"


def admit_key(surface: SurfaceName, headers: Mapping[str, str], query_key: str, keys: frozenset[str] | None) -> str:
    """The key, or a Refusal in the vendor's terms. `keys` None accepts all but the lab's own bad ones."""
    key = _key(surface, headers) or query_key
    if not key or key == BAD_KEY or (keys is not None and key not in keys):
        # the vendor's words and their source stand below
        raise _UNKNOWN[surface](key)
    if key == NEVER_ISSUED_KEY and surface == "gemini":
        text = "API key not valid. Please pass a valid API key."
        # from memory, not in the facts: Google's public endpoint answers an unknown key with a 400
        raise Refusal(400, "INVALID_ARGUMENT", text, code="API_KEY_INVALID")
    if key == NO_CREDIT:
        # the vendor's words and their source stand below
        raise _PENNILESS[surface]()
    return key


def _key(surface: SurfaceName, headers: Mapping[str, str]) -> str:
    bearer = headers.get("authorization", "")
    token = bearer[7:] if bearer.lower().startswith("bearer ") else ""
    if surface in {"anthropic", "models"}:
        return headers.get("x-api-key", "") or token
    if surface == "gemini":
        return headers.get("x-goog-api-key", "")
    return token


def _anthropic_unknown(key: str) -> Refusal:
    # facts/llm.md 1: Authentication is 401
    text = "invalid x-api-key" if key else "x-api-key header is required"
    return Refusal(401, "authentication_error", text)


def _google_unknown(_key: str) -> Refusal:
    text = "Request had invalid authentication credentials. Expected OAuth 2 access token or other valid credential."
    return Refusal(401, "UNAUTHENTICATED", text)


def _openai_unknown(key: str) -> Refusal:
    # facts/llm.md 3: the same tree of errors, 401 for authentication
    text = f"Incorrect API key provided: {key[:3]}***." if key else "You didn't provide an API key."
    return Refusal(401, "invalid_request_error", text, code="invalid_api_key" if key else None)


def _anthropic_penniless() -> Refusal:
    # facts/llm.md 1: exhausted prepaid credit is a 400
    text = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing."
    return Refusal(400, "invalid_request_error", text)


def _openai_penniless() -> Refusal:
    # facts/llm.md 3: insufficient_quota is a 429 that must not be retried
    text = "You exceeded your current quota, please check your plan and billing details."
    return Refusal(429, "insufficient_quota", text, code="insufficient_quota")


def _gemini_penniless() -> Refusal:
    text = "You exceeded your current quota, please check your plan and billing details."
    return Refusal(429, "RESOURCE_EXHAUSTED", text)


def _vertex_penniless() -> Refusal:
    text = "This API method requires billing to be enabled. Please enable billing on the project."
    return Refusal(403, "PERMISSION_DENIED", text, code="BILLING_DISABLED")


_UNKNOWN: dict[SurfaceName, Callable[[str], Refusal]] = {
    "anthropic": _anthropic_unknown,
    "models": _anthropic_unknown,
    "vertex-anthropic": _google_unknown,
    "gemini": _google_unknown,
    "vertex-gemini": _google_unknown,
    "openai-chat": _openai_unknown,
    "openai-responses": _openai_unknown,
}
_PENNILESS: dict[SurfaceName, Callable[[], Refusal]] = {
    "anthropic": _anthropic_penniless,
    "models": _anthropic_penniless,
    "vertex-anthropic": _vertex_penniless,
    "gemini": _gemini_penniless,
    "vertex-gemini": _vertex_penniless,
    "openai-chat": _openai_penniless,
    "openai-responses": _openai_penniless,
}
