"""Bodies for Gemini against the models of Google's SDK, which refuse unknown fields by themselves."""

from typing import Any

from google.genai import types

_PARTS: dict[str, type[Any]] = {
    "systemInstruction": types.Content,
    "toolConfig": types.ToolConfig,
    "generationConfig": types.GenerationConfig,
}
_LISTS: dict[str, type[Any]] = {"contents": types.Content, "tools": types.Tool}


def check(body: dict[str, Any]) -> None:
    """Raises pydantic's ValidationError, or AssertionError for a field that no request has."""
    for key, value in body.items():
        if key in _LISTS:
            for item in value:
                _LISTS[key].model_validate(item)
        else:
            assert key in _PARTS, f"a request has no field {key}"
            _PARTS[key].model_validate(value)
