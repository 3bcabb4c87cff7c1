"""An SDK's own request types as a strict checker: unknown keys are refused, also deep inside.

The TypedDicts of the SDKs are read leniently by pydantic, so their schemas are rewritten: no extra keys, lists
instead of one-shot iterables, and in unions the request types only (the SDKs also list their response models
there, which take any key).
"""

from typing import Any

from pydantic import TypeAdapter
from pydantic_core import SchemaValidator


def strict_checker(request_type: Any) -> SchemaValidator:
    schema = TypeAdapter(request_type).core_schema
    models = {found["ref"] for found in _all(schema) if found.get("type") == "model" and "ref" in found}
    return SchemaValidator(_strict(schema, models))


def _all(schema: Any) -> list[Any]:
    if isinstance(schema, dict):
        return [schema, *(found for value in schema.values() for found in _all(value))]
    if isinstance(schema, list | tuple):
        return [found for value in schema for found in _all(value)]
    return []


def _strict(schema: Any, models: set[str]) -> Any:
    if isinstance(schema, list | tuple):
        return type(schema)(_strict(value, models) for value in schema)
    if not isinstance(schema, dict):
        return schema
    rewritten = {key: _strict(value, models) for key, value in schema.items()}
    match rewritten.get("type"):
        case "generator":
            rewritten["type"] = "list"
        case "typed-dict" if not _open(rewritten):
            rewritten["extra_behavior"] = "forbid"
        case "union":
            asked = [choice for choice in rewritten["choices"] if not _is_model(choice, models)]
            rewritten["choices"] = asked or rewritten["choices"]
    return rewritten


def _open(typed_dict: dict[str, Any]) -> bool:
    """JSON Schema types say themselves that they take more keys."""
    return (typed_dict.get("config") or {}).get("extra_fields_behavior") == "allow"


def _is_model(choice: Any, models: set[str]) -> bool:
    schema = choice[0] if isinstance(choice, tuple) else choice
    match schema.get("type"):
        case "union":
            return all(_is_model(inner, models) for inner in schema["choices"])
        case "definition-ref":
            return schema.get("schema_ref") in models
    return bool(schema.get("type") == "model")
