"""Bodies for Gemini against the models of Google's SDK, which refuse unknown fields by themselves."""

from typing import Any

_PARTS = {"systemInstruction": "Content", "toolConfig": "ToolConfig", "generationConfig": "GenerationConfig"}
_LISTS = {"contents": "Content", "tools": "Tool"}


def check(body: dict[str, Any]) -> None:
    """Raises pydantic's ValidationError, or AssertionError for a field that no request has."""
    from google.genai import types

    for key, value in body.items():
        if key in _LISTS:
            for item in value:
                getattr(types, _LISTS[key]).model_validate(item)
        else:
            assert key in _PARTS, f"a request has no field {key}"
            getattr(types, _PARTS[key]).model_validate(value)
