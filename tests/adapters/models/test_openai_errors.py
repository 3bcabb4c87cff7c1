"""What errors of OpenAI and of servers that imitate it mean (L13, L14)."""

from typing import Any

import pytest

from hummingbird.adapters.models.openai_errors import classify, inside
from hummingbird.domain.errors import (
    ContextOverflow,
    CredentialRefused,
    CreditExhausted,
    HummingbirdError,
    RequestRefused,
    ThinkingRefused,
    Unavailable,
)
from hummingbird.domain.limits import ERROR_TEXT_CHARS


def said(message: str, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": None, "param": None, "code": None, **fields}}


CASES: list[tuple[int, Any, type[HummingbirdError]]] = [
    (401, said("Incorrect API key provided", code="invalid_api_key"), CredentialRefused),
    (403, said("Country not supported"), CredentialRefused),
    (402, said("Insufficient credits"), CreditExhausted),
    (429, said("You exceeded your current quota", type="insufficient_quota"), CreditExhausted),
    (429, said("You exceeded your current quota", code="insufficient_quota"), CreditExhausted),
    (400, said("Your credit balance is too low"), CreditExhausted),
    (429, said("Rate limit reached", code="rate_limit_exceeded"), Unavailable),
    # Gemini's compatible endpoint says this of its rates, without the code: it passes.
    (429, said("You exceeded your current quota, please check your plan"), Unavailable),
    (408, "timeout", Unavailable),
    (409, said("conflict"), Unavailable),
    (500, said("The server had an error", type="server_error"), Unavailable),
    (503, "<html>upstream</html>", Unavailable),
    (529, said("overloaded"), Unavailable),
    (400, said("too long", code="context_length_exceeded"), ContextOverflow),
    (400, said("This model's maximum context length is 8192 tokens."), ContextOverflow),
    (400, {"detail": "Please reduce the length of the messages."}, ContextOverflow),
    (
        400,
        {"object": "error", "message": "the request exceeds the available context size", "code": 400},
        ContextOverflow,
    ),
    (413, said("Your input exceeds the context window of this model."), ContextOverflow),
    (400, said("The encrypted content for item rs_1 could not be verified.", code="x"), ThinkingRefused),
    (400, said("bad", code="invalid_encrypted_content"), ThinkingRefused),
    (
        404,
        said("Item with id 'rs_1' not found. Items are not persisted when `store` is set to false."),
        ThinkingRefused,
    ),
    (400, said("Item 'rs_1' of type 'reasoning' was provided without its required following item."), ThinkingRefused),
    (404, said("The model `gpt-9` does not exist", code="model_not_found"), RequestRefused),
    (400, said("Invalid schema for function 'x'"), RequestRefused),
    (422, {"detail": [{"loc": ["body"], "msg": "extra fields not permitted"}]}, RequestRefused),
]


@pytest.mark.parametrize(("status", "answer", "expected"), CASES)
def test_an_error_is_known_by_status_code_and_words(status: int, answer: Any, expected: type[Exception]) -> None:
    """L13."""
    error = classify("vllm.example", status, answer)
    assert type(error) is expected
    assert "vllm.example" in str(error)
    assert str(status) in str(error)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"error": {"message": "Provider returned error", "code": 429}}, Unavailable),
        ({"error": {"message": "Invalid key", "code": 401}}, CredentialRefused),
        ({"error": {"message": "No credits", "code": 402}}, CreditExhausted),
        ({"error": {"message": "nobody knows"}}, Unavailable),
        ({"error": "just words"}, Unavailable),
        ({"object": "error", "message": "bad schema", "code": 400}, RequestRefused),
        ({"detail": "maximum context length exceeded"}, ContextOverflow),
        ({"type": "error", "code": "rate_limit_exceeded", "message": "slow"}, Unavailable),
        ({"type": "error", "code": "insufficient_quota", "message": "no money"}, CreditExhausted),
        ({"error": {"code": "invalid_prompt", "message": "flagged"}}, RequestRefused),
    ],
)
def test_an_error_inside_a_200_is_known_by_its_code(answer: Any, expected: type[Exception]) -> None:
    """M5: OpenRouter answers 200 with the status as `code`."""
    assert type(inside("The server", answer)) is expected


@pytest.mark.parametrize("answer", [{"choices": [], "detail": "x"}, {"choices": [], "error": None}, "text", None, []])
def test_what_carries_no_error_is_none(answer: Any) -> None:
    """M5."""
    assert inside("The server", answer) is None


def test_the_servers_words_are_quoted_on_one_line_and_capped() -> None:
    """STYLE 11."""
    sentence = str(classify("OpenAI", 400, said("why\n" * 1000)))
    assert "It said: why why" in sentence
    assert len(sentence) < ERROR_TEXT_CHARS + 100
    assert "\n" not in sentence


@pytest.mark.parametrize("code", ["9" * 5000, "٤٢٩", "429 ", -1, 1e400, "", "12", "600"])
def test_a_code_that_is_no_status_decides_nothing(code: Any) -> None:
    """L13."""
    assert type(inside("host.example", said("oh", code=code))) is Unavailable


def test_of_a_refusal_as_long_as_a_request_only_the_beginning_is_read() -> None:
    """L13: searching all of it would take the square of its length."""
    error = classify("host.example", 422, {"detail": "context size " * 200_000})
    assert isinstance(error, RequestRefused)
    assert len(str(error)) < 2 * ERROR_TEXT_CHARS


@pytest.mark.parametrize(
    "message",
    [
        "registry.example/library/gemma:2b does not support tools",
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        "tools param requires --jinja flag",
        "No endpoints found that support tool use.",
        "Function calling is not enabled for this model",
    ],
)
def test_g6_a_model_that_takes_no_tools_is_told_with_what_to_do_about_it(message: str) -> None:
    error = classify("a server", 400, said(message))
    assert isinstance(error, RequestRefused)
    assert str(error).startswith("This model takes no tools at a server (400): name another model, or talk without")
