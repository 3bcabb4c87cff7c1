"""What Google's refusals mean to us."""

from typing import Any

import pytest

from hummingbird.core.errors import (
    ContextOverflow,
    CredentialRefused,
    CreditExhausted,
    HummingbirdError,
    ProviderRequestRefused,
    ProviderUnavailable,
    ThinkingRefused,
)
from hummingbird.models.gemini import classify_error


def google(status: str, message: str, reason: str | None = None) -> dict[str, Any]:
    details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason}] if reason else []
    return {"error": {"code": 0, "status": status, "message": message, "details": details}}


INVALID = "INVALID_ARGUMENT"
QUOTA = "You exceeded your current quota, please check your plan and billing details."


@pytest.mark.parametrize(
    ("status", "answer", "kind"),
    [
        (401, google("UNAUTHENTICATED", "no token"), CredentialRefused),
        (403, google("PERMISSION_DENIED", "not yours"), CredentialRefused),
        (400, google(INVALID, "API key not valid. Please pass a valid API key."), CredentialRefused),
        (400, google(INVALID, "no", "API_KEY_INVALID"), CredentialRefused),
        (403, google("PERMISSION_DENIED", "enable billing", "BILLING_DISABLED"), CreditExhausted),
        (429, google("RESOURCE_EXHAUSTED", "Your prepayment credits are depleted."), CreditExhausted),
        (429, google("RESOURCE_EXHAUSTED", QUOTA), ProviderUnavailable),
        (
            400,
            google(INVALID, "The input token count (9) exceeds the maximum number of tokens allowed (8)."),
            ContextOverflow,
        ),
        (400, google(INVALID, "The input token count is 9 but model only supports up to 8"), ContextOverflow),
        (400, google(INVALID, "Corrupted thought signature."), ThinkingRefused),
        (400, google(INVALID, "Function call is missing a thought_signature in functionCall parts."), ThinkingRefused),
        (
            400,
            google(INVALID, "Please ensure that the number of function response parts is equal"),
            ProviderRequestRefused,
        ),
        (404, google("NOT_FOUND", "models/x is not found"), ProviderRequestRefused),
        (408, google("DEADLINE_EXCEEDED", "slow"), ProviderUnavailable),
        (409, google("ABORTED", "again"), ProviderUnavailable),
        (500, google("INTERNAL", "oops"), ProviderUnavailable),
        (503, google("UNAVAILABLE", "The model is overloaded."), ProviderUnavailable),
        (429, [google("RESOURCE_EXHAUSTED", "busy")], ProviderUnavailable),
        (502, "<html>bad gateway</html>", ProviderUnavailable),
        (400, {}, ProviderRequestRefused),
    ],
)
def test_a_refusal_is_told_by_status_reason_and_words(status: int, answer: Any, kind: type[HummingbirdError]) -> None:
    error = classify_error(status, answer)
    assert type(error) is kind
    assert str(status) in str(error)


def test_google_says_in_the_body_when_to_come_back() -> None:
    body = google("RESOURCE_EXHAUSTED", QUOTA)
    body["error"]["details"] = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}]
    error = classify_error(429, body)
    assert isinstance(error, ProviderUnavailable)
    assert error.retry_after_s == 34.0
