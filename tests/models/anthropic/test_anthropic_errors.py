"""What Anthropic's refusals mean to us."""

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
from hummingbird.core.limits import ERROR_TEXT_CHARS
from hummingbird.models.anthropic import classify_error


def anthropic(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "r"}


def google(status: str, message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"code": 0, "status": status, "message": message, **more}}


INVALID = "invalid_request_error"
BOUND = "messages.1.content.0: The block is bound to a different conversation."
BILLING = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "BILLING_DISABLED"}]


@pytest.mark.parametrize(
    ("status", "answer", "kind"),
    [
        (401, anthropic("authentication_error", "invalid x-api-key"), CredentialRefused),
        (403, anthropic("permission_error", "not yours"), CredentialRefused),
        (402, anthropic("billing_error", "pay"), CreditExhausted),
        (400, anthropic(INVALID, "Your credit balance is too low to access the Anthropic API."), CreditExhausted),
        (400, anthropic(INVALID, "prompt is too long: 210000 tokens > 200000 maximum"), ContextOverflow),
        (400, anthropic(INVALID, "input length and `max_tokens` exceed context limit: 1 + 2 > 2"), ContextOverflow),
        (413, anthropic("request_too_large", "Request exceeds the maximum size"), ContextOverflow),
        (400, anthropic(INVALID, BOUND), ThinkingRefused),
        (400, anthropic(INVALID, "messages.1.content.0: Invalid `signature` in `thinking` block"), ThinkingRefused),
        (400, anthropic(INVALID, "`thinking` blocks in the latest message cannot be modified"), ThinkingRefused),
        (400, anthropic(INVALID, "thinking: type 'disabled' is not supported on this model"), ProviderRequestRefused),
        (404, anthropic("not_found_error", "model: claude-9"), ProviderRequestRefused),
        (422, anthropic(INVALID, "no"), ProviderRequestRefused),
        (408, anthropic("timeout_error", "slow"), ProviderUnavailable),
        (409, anthropic("conflict_error", "again"), ProviderUnavailable),
        (429, anthropic("rate_limit_error", "slow down"), ProviderUnavailable),
        (500, anthropic("api_error", "oops"), ProviderUnavailable),
        (529, anthropic("overloaded_error", "busy"), ProviderUnavailable),
        (401, google("UNAUTHENTICATED", "no token"), CredentialRefused),
        (403, google("PERMISSION_DENIED", "enable billing", details=BILLING), CreditExhausted),
        (429, [google("RESOURCE_EXHAUSTED", "Quota exceeded")], ProviderUnavailable),
        (502, "<html>bad gateway</html>", ProviderUnavailable),
        (400, None, ProviderRequestRefused),
        (400, {"error": "text"}, ProviderRequestRefused),
    ],
)
def test_a_refusal_is_told_by_status_type_and_words(status: int, answer: Any, kind: type[HummingbirdError]) -> None:
    error = classify_error(status, answer)
    assert type(error) is kind
    assert str(status) in str(error)


def test_the_sentence_quotes_the_server_but_not_endlessly() -> None:
    sentence = str(classify_error(400, anthropic(INVALID, "because\n" + "x" * 10_000)))
    assert "It said: because x" in sentence
    assert len(sentence) < ERROR_TEXT_CHARS + 200


def test_google_may_say_when_to_come_back() -> None:
    """Vertex sends it in the body."""
    retry = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}]
    error = classify_error(429, google("RESOURCE_EXHAUSTED", "later", details=retry))
    assert isinstance(error, ProviderUnavailable)
    assert error.retry_after_s == 34.5
