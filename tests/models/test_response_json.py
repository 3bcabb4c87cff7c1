"""Refusals of Anthropic and Google, read whatever they look like."""

from typing import Any

import pytest

from hummingbird.models.response_json import parse_error_details


@pytest.mark.parametrize(
    "answer",
    [
        {"error": {"details": 5, "message": "no"}},
        {"error": {"details": "text", "message": "no"}},
        {"error": {"details": {"reason": "x"}, "message": "no"}},
        {"error": {"details": [None, 3, {"retryDelay": 7}, {"retryDelay": "soon"}], "message": "no"}},
        {"error": {"code": 7, "message": "no"}},
        {"error": {"code": True, "message": "no"}},
        {"error": {"code": "429", "message": "no"}},
        [{"error": {"message": "no"}}],
        {"error": "no"},
        {"message": "no"},
        "no",
    ],
)
def test_a_refusal_of_any_shape_is_read(answer: Any) -> None:
    """A code that is no HTTP status decides nothing."""
    said = parse_error_details(answer)
    assert (said.text, said.code, said.retry_after_s) == ("no", None, None)


def test_what_goes_into_a_sentence_is_capped() -> None:
    """What is quoted from a server is capped."""
    said = parse_error_details({"error": {"type": "x" * 1000, "message": "y" * 10_000, "code": 429}})
    assert len(said.kind) + len(said.quoted) < 700
    assert said.code == 429
