"""The configuration as JSON Schema, for editors (G2) and for the names that are known at a place."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from hummingbird.config.configuration import Written
from hummingbird.config.faults import KeyPath

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema() -> dict[str, Any]:
    """A new copy each time. Sections may be left empty, as the loader allows it."""
    made = Written.model_json_schema()
    _tidy(made)
    return {"$schema": _DIALECT, **made, "title": "Hummingbird's configuration", "type": "object"}


def _tidy(node: Any) -> None:
    if isinstance(node, list):
        for one in node:
            _tidy(one)
    if not isinstance(node, dict):
        return
    if isinstance(node.get("title"), str):
        del node["title"]  # the library makes it of the key, which the editor shows anyway
    if node.get("type") in ("object", "array") and not node.get("required"):
        node["type"] = [node["type"], "null"]
    for one in node.values():
        _tidy(one)


@cache
def _known() -> Mapping[str, Any]:
    return schema()


def keys_at(path: KeyPath) -> tuple[str, ...]:
    """The names that are known in the section at this path; none where there is no section."""
    places = [_known()]
    for step in path:
        places = [below for place in places for below in _below(place, step)]
    return tuple(dict.fromkeys(name for place in places for one in _meant(place) for name in one.get("properties", ())))


def _below(place: Mapping[str, Any], step: str | int) -> Iterator[Mapping[str, Any]]:
    for one in _meant(place):
        found = one.get("items") if isinstance(step, int) else one.get("properties", {}).get(step)
        found = found or (one.get("additionalProperties") if isinstance(step, str) else None)
        if isinstance(found, dict):
            yield found


def _meant(place: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """What a place refers to; our sections do not contain themselves."""
    if "$ref" in place:
        yield from _meant(_known()["$defs"][place["$ref"].rsplit("/", 1)[-1]])
    for other in place.get("anyOf", ()):
        yield from _meant(other)
    yield place
