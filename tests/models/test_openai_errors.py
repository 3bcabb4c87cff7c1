"""What errors of OpenAI and of servers that imitate it mean."""

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
from hummingbird.models.openai_api import classify_openai_error, error_in_answer


def said(message: str, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": None, "param": None, "code": None, **fields}}


CASES: list[tuple[int, Any, type[HummingbirdError]]] = [
    (401, said("Incorrect API key provided", code="invalid_api_key"), CredentialRefused),
    (403, said("Country not supported"), CredentialRefused),
    (402, said("Insufficient credits"), CreditExhausted),
    (429, said("You exceeded your current quota", type="insufficient_quota"), CreditExhausted),
    (429, said("You exceeded your current quota", code="insufficient_quota"), CreditExhausted),
    (400, said("Your credit balance is too low"), CreditExhausted),
    (429, said("Rate limit reached", code="rate_limit_exceeded"), ProviderUnavailable),
    # Gemini's compatible endpoint says this of its rates, without the code: it passes.
    (429, said("You exceeded your current quota, please check your plan"), ProviderUnavailable),
    (408, "timeout", ProviderUnavailable),
    (409, said("conflict"), ProviderUnavailable),
    (500, said("The server had an error", type="server_error"), ProviderUnavailable),
    (503, "<html>upstream</html>", ProviderUnavailable),
    (529, said("overloaded"), ProviderUnavailable),
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
    (404, said("The model `gpt-9` does not exist", code="model_not_found"), ProviderRequestRefused),
    (400, said("Invalid schema for function 'x'"), ProviderRequestRefused),
    (422, {"detail": [{"loc": ["body"], "msg": "extra fields not permitted"}]}, ProviderRequestRefused),
]


@pytest.mark.parametrize(("status", "answer", "expected"), CASES)
def test_an_error_is_known_by_status_code_and_words(status: int, answer: Any, expected: type[Exception]) -> None:
    error = classify_openai_error("vllm.example", status, answer)
    assert type(error) is expected
    assert "vllm.example" in str(error)
    assert str(status) in str(error)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"error": {"message": "Provider returned error", "code": 429}}, ProviderUnavailable),
        ({"error": {"message": "Invalid key", "code": 401}}, CredentialRefused),
        ({"error": {"message": "No credits", "code": 402}}, CreditExhausted),
        ({"error": {"message": "nobody knows"}}, ProviderUnavailable),
        ({"error": "just words"}, ProviderUnavailable),
        ({"object": "error", "message": "bad schema", "code": 400}, ProviderRequestRefused),
        ({"detail": "maximum context length exceeded"}, ContextOverflow),
        ({"type": "error", "code": "rate_limit_exceeded", "message": "slow"}, ProviderUnavailable),
        ({"type": "error", "code": "insufficient_quota", "message": "no money"}, CreditExhausted),
        ({"error": {"code": "invalid_prompt", "message": "flagged"}}, ProviderRequestRefused),
    ],
)
def test_an_error_inside_a_200_is_known_by_its_code(answer: Any, expected: type[Exception]) -> None:
    """OpenRouter answers 200 with the status as `code`."""
    assert type(error_in_answer("The server", answer)) is expected


@pytest.mark.parametrize("answer", [{"choices": [], "detail": "x"}, {"choices": [], "error": None}, "text", None, []])
def test_what_carries_no_error_is_none(answer: Any) -> None:
    assert error_in_answer("The server", answer) is None


def test_the_servers_words_are_quoted_on_one_line_and_capped() -> None:
    """STYLE 11."""
    sentence = str(classify_openai_error("OpenAI", 400, said("why\n" * 1000)))
    assert "It said: why why" in sentence
    assert len(sentence) < ERROR_TEXT_CHARS + 100
    assert "\n" not in sentence


@pytest.mark.parametrize("code", ["9" * 5000, "٤٢٩", "429 ", -1, 1e400, "", "12", "600"])
def test_a_code_that_is_no_status_decides_nothing(code: Any) -> None:
    assert type(error_in_answer("host.example", said("oh", code=code))) is ProviderUnavailable


def test_of_a_refusal_as_long_as_a_request_only_the_beginning_is_read() -> None:
    """Searching all of it would take the square of its length."""
    error = classify_openai_error("host.example", 422, {"detail": "context size " * 200_000})
    assert isinstance(error, ProviderRequestRefused)
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
def test_a_model_that_takes_no_tools_is_told_with_what_to_do_about_it(message: str) -> None:
    error = classify_openai_error("a server", 400, said(message))
    assert isinstance(error, ProviderRequestRefused)
    assert str(error).startswith("This model takes no tools at a server (400): name another model, or talk without")
