"""What Anthropic's refusals mean, by status, error type and, where it says no more than 400, by its words."""

from typing import Any

from hummingbird.adapters.models.complaints import Complaint, complaint
from hummingbird.domain.errors import (
    ContextOverflow,
    CredentialRefused,
    CreditExhausted,
    HummingbirdError,
    RequestRefused,
    ThinkingRefused,
    Unavailable,
)

# An error inside an answer with status 200 is known by its type alone; types we don't know are worth another try.
_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
    # Vertex speaks for itself too, with Google's words.
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "RESOURCE_EXHAUSTED": 429,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}
_PASSING = frozenset({408, 409, 429})


def classify(status: int, answer: Any) -> HummingbirdError:
    said = complaint(answer)
    what = f"({status} {said.kind})" if said.kind else f"({status})"
    if _broke(status, said):
        return CreditExhausted(
            f"The account for Claude has no credit left {what}: top it up or choose another model.{said.quoted}"
        )
    if status in {401, 403}:
        return CredentialRefused(
            f"Anthropic refused the credential {what}: check the key, or for Vertex the login and its rights."
            f"{said.quoted}"
        )
    if status in _PASSING or status >= 500:
        return Unavailable(f"Anthropic cannot answer now {what}: try again later.{said.quoted}", said.retry_after_s)
    if status == 413 or _overflows(said):
        return ContextOverflow(f"The conversation is too long for this Claude model {what}.{said.quoted}")
    if _rejects_thinking(said):
        return ThinkingRefused(
            f"Anthropic says that thinking was replayed where it does not belong {what}.{said.quoted}"
        )
    return RequestRefused(f"Anthropic refused the request {what}: it would fail again.{said.quoted}")


def error_inside(answer: Any) -> HummingbirdError:
    """The error that came with status 200: in a stream, or from a gateway."""
    said = complaint(answer)
    return classify(said.code or _STATUSES.get(said.kind, 500), answer)


def _broke(status: int, said: Complaint) -> bool:
    return status == 402 or said.mentions("credit balance", "too low") or said.reason == "BILLING_DISABLED"


def _overflows(said: Complaint) -> bool:
    return said.mentions("prompt is too long") or said.mentions("exceed context limit")


def _rejects_thinking(said: Complaint) -> bool:
    return (
        said.mentions("bound to a different conversation")
        or said.mentions("signature", "thinking")
        or said.mentions("thinking", "cannot be modified")
        # Our own text is never blank: this is white space of the model's, replayed because thinking was signed over
        # it. Without thinking it is not replayed.
        or said.mentions("text content blocks must")
    )
