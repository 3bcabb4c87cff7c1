"""Bodies for OpenAI against the request types of its SDK."""

from functools import cache
from typing import Any

from pydantic_core import SchemaValidator

from tests.wire.strict_types import strict_checker


def check_chat(body: dict[str, Any]) -> None:
    """Raises pydantic's ValidationError."""
    _chat(bool(body.get("stream"))).validate_python(body)


def check_responses(body: dict[str, Any]) -> None:
    """Raises pydantic's ValidationError."""
    _responses(bool(body.get("stream"))).validate_python(body)


@cache
def _chat(stream: bool) -> SchemaValidator:
    from openai.types.chat import completion_create_params as chat_params

    kind = chat_params.CompletionCreateParamsStreaming if stream else chat_params.CompletionCreateParamsNonStreaming
    return strict_checker(kind)


@cache
def _responses(stream: bool) -> SchemaValidator:
    from openai.types.responses import response_create_params as responses_params

    kind = (
        responses_params.ResponseCreateParamsStreaming if stream else responses_params.ResponseCreateParamsNonStreaming
    )
    return strict_checker(kind)
