"""Arguments for a call, out of what is known: only such as the tool's own schema takes.

A required parameter that cannot be filled means that the call is not made. Knows no role and no conversation.
"""

from collections.abc import Callable, Mapping, Set
from functools import lru_cache
from typing import Any

import msgspec

from hummingbird.adapters.models.digest.roles import Kind, Offer

_OPTIONAL = frozenset({Kind.PROJECT, Kind.JOB, Kind.CONTAINER, Kind.LIMIT})
"""Worth giving where they are optional: what is meant, and how much of it."""


def filled(offer: Offer, known: Mapping[Kind, Any], meant: Set[Kind] = frozenset()) -> dict[str, Any] | None:
    """The arguments, or None when they cannot be made. Each value of `known` is one to use as it is; `meant` are those
    that this call is about."""
    arguments: dict[str, Any] = {}
    asked = _asked(offer, meant)
    for name, kind in offer.kinds.items():
        if kind in known and (name in offer.required or kind in _OPTIONAL or kind in asked):
            arguments[name] = _fitting(known[kind], _types(offer.tool.schema, name))
    if not offer.required <= arguments.keys() or not _valid(offer.tool.schema)(arguments):
        return None
    return arguments


def _asked(offer: Offer, meant: Set[Kind]) -> Set[Kind]:
    """Where nothing is required something must say what is meant all the same: what the call is about, and only where
    it takes none of that, all that is known. Tools that list by this or by that refuse both."""
    if offer.required:
        return frozenset()
    takes = frozenset(offer.kinds.values()) - {Kind.OTHER, Kind.FIRST, Kind.LAST}
    return takes & meant or takes


def _types(schema: Mapping[str, Any], name: str) -> set[str]:
    properties = schema.get("properties")
    about = properties.get(name) if isinstance(properties, Mapping) else None
    found: set[str] = set()
    if isinstance(about, Mapping):
        for one in [about, *(o for key in ("anyOf", "oneOf") for o in _listed(about.get(key)))]:
            if isinstance(one, Mapping):
                found |= {t for t in _listed(one.get("type")) if isinstance(t, str)}
    return found


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _fitting(value: Any, types: set[str]) -> Any:
    """A number where numbers are taken, a text where texts are."""
    if isinstance(value, str) and types & {"integer", "number"} and value.isdecimal() and value.isascii():
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and types and not types & {"integer", "number"}:
        return str(value)
    return value


def _valid(schema: Mapping[str, Any]) -> Callable[[dict[str, Any]], bool]:
    try:
        return _validator(msgspec.json.encode(schema))
    except (TypeError, ValueError, RecursionError):
        return _never


@lru_cache(maxsize=256)
def _validator(schema: bytes) -> Callable[[dict[str, Any]], bool]:
    import jsonschema_rs  # noqa: PLC0415 - a compiled library, loaded when the first call is planned

    try:
        return jsonschema_rs.validator_for(msgspec.json.decode(schema), retriever=_no_remote_references).is_valid
    except (ValueError, TypeError, jsonschema_rs.ValidationError):
        return _never


def _never(_arguments: dict[str, Any]) -> bool:
    return False


def _no_remote_references(uri: str) -> Any:
    raise ValueError(f"a schema may not refer to {uri[:120]}")
