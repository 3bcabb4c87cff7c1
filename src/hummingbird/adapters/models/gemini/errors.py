"""What Google's refusals mean, by status, reason and, where it says no more than INVALID_ARGUMENT, by its words."""

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

_STATUSES = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "ABORTED": 409,
    "RESOURCE_EXHAUSTED": 429,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}
_PASSING = frozenset({408, 409, 429, 499})


def classify(status: int, answer: Any) -> HummingbirdError:
    said = complaint(answer)
    what = f"({status} {said.kind})" if said.kind else f"({status})"
    if _broke(status, said):
        return CreditExhausted(
            f"The account for Gemini has no credit or billing {what}: set it up or choose another model.{said.quoted}"
        )
    # a key that was never issued is a 400 for Google
    if status in {401, 403} or said.reason == "API_KEY_INVALID" or said.mentions("api key not valid"):
        return CredentialRefused(
            f"Google refused the credential {what}: check the key, or for Vertex the login and its rights.{said.quoted}"
        )
    if status in _PASSING or status >= 500:
        return Unavailable(f"Gemini cannot answer now {what}: try again later.{said.quoted}", said.retry_after_s)
    if status == 413 or _overflows(said):
        return ContextOverflow(f"The conversation is too long for this Gemini model {what}.{said.quoted}")
    if said.mentions("thought signature") or said.mentions("thought_signature"):
        return ThinkingRefused(f"Gemini refused a replayed thought signature {what}.{said.quoted}")
    return RequestRefused(f"Gemini refused the request {what}: it would fail again.{said.quoted}")


def error_inside(answer: Any) -> HummingbirdError:
    """The error that came with status 200, in a stream for example."""
    said = complaint(answer)
    return classify(said.code or _STATUSES.get(said.kind, 500), answer)


def _broke(status: int, said: Complaint) -> bool:
    """The 429 that speaks of plan and billing is also what a busy minute gets, so it is none of these."""
    return status == 402 or said.reason == "BILLING_DISABLED" or said.mentions("credits are depleted")


def _overflows(said: Complaint) -> bool:
    return said.mentions("input token count", "exceeds") or said.mentions("input token count", "only supports up to")
