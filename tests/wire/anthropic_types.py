"""Bodies for Anthropic against the request types of its SDK."""

from functools import cache
from typing import Any

from pydantic_core import SchemaValidator

from tests.wire.strict_types import strict_checker


def check(body: dict[str, Any]) -> None:
    """Raises pydantic's ValidationError. The body as the direct API gets it: with its model."""
    _checker(bool(body.get("stream"))).validate_python(body)


@cache
def _checker(stream: bool) -> SchemaValidator:
    from anthropic.types import message_create_params as params

    return strict_checker(params.MessageCreateParamsStreaming if stream else params.MessageCreateParamsNonStreaming)
