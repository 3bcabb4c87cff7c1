"""Refusals of Anthropic and Google, read whatever they look like (L13)."""

from typing import Any

import pytest

from hummingbird.adapters.models.complaints import complaint


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
    """L13: a code that is no HTTP status decides nothing."""
    said = complaint(answer)
    assert (said.text, said.code, said.retry_after_s) == ("no", None, None)


def test_what_goes_into_a_sentence_is_capped() -> None:
    """STYLE: what is quoted from a server is capped."""
    said = complaint({"error": {"type": "x" * 1000, "message": "y" * 10_000, "code": 429}})
    assert len(said.kind) + len(said.quoted) < 700
    assert said.code == 429
