"""Validate a parsed document: build the settings, and turn pydantic's errors into readable faults.

It also builds the JSON Schema for editors, which lists the known keys of each section. It reads no file and no
environment variable.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from pydantic import ValidationError

from hummingbird.config.configuration import ConfigFile
from hummingbird.config.defaults import CONFIG_KEYS
from hummingbird.config.document import ConfigDocument, ConfigFault, KeyPath, unknown_key_message
from hummingbird.config.field_types import VARIABLE

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """Return the configuration's JSON Schema as a new copy. Sections may be empty, because the loader allows it."""
    made = ConfigFile.model_json_schema()
    _tidy_schema(made)
    return {"$schema": _DIALECT, **made, "title": "Hummingbird's configuration", "type": "object"}


def _tidy_schema(node: Any) -> None:
    if isinstance(node, list):
        for one in node:
            _tidy_schema(one)
    if not isinstance(node, dict):
        return
    if isinstance(node.get("title"), str):
        del node["title"]  # pydantic derives it from the key, which the editor shows anyway
    if node.get("type") in ("object", "array") and not node.get("required"):
        node["type"] = [node["type"], "null"]
    for one in node.values():
        _tidy_schema(one)


@cache
def _get_schema() -> Mapping[str, Any]:
    return json_schema()


def keys_at(path: KeyPath) -> tuple[str, ...]:
    """Return the known keys of the section at this path; empty where there is no section."""
    places = [_get_schema()]
    for step in path:
        places = [below for place in places for below in _child_schemas(place, step)]
    return tuple(
        dict.fromkeys(name for place in places for one in _resolve_refs(place) for name in one.get("properties", ()))
    )


def _child_schemas(place: Mapping[str, Any], step: str | int) -> Iterator[Mapping[str, Any]]:
    for one in _resolve_refs(place):
        found = one.get("items") if isinstance(step, int) else one.get("properties", {}).get(step)
        found = found or (one.get("additionalProperties") if isinstance(step, str) else None)
        if isinstance(found, dict):
            yield found


def _resolve_refs(place: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and all schemas it refers to. The recursion ends because no section contains itself."""
    if "$ref" in place:
        yield from _resolve_refs(_get_schema()["$defs"][place["$ref"].rsplit("/", 1)[-1]])
    for other in place.get("anyOf", ()):
        yield from _resolve_refs(other)
    yield place


_SENTENCES: Mapping[str, str] = {
    "missing": "expected this key: it must be written",
    "int_type": "expected a whole number",
    "int_from_float": "expected a whole number",
    "float_type": "expected a number",
    "finite_number": "expected a finite number",
    "is_instance_of": "expected a number",
    "bool_type": "expected true or false",
    "string_type": "expected text; put it in quotes if it looks like a number or like yes and no",
    "tuple_type": "expected a list",
    "mapping_type": "expected a mapping of names to values",
    "dict_type": "expected a mapping of names to values",
    "model_type": "expected a mapping of names to values",
    "model_attributes_type": "expected a mapping of names to values",
    "string_too_short": "expected some text",
}
_BOUNDS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "greater_than": lambda bound: f"expected a number above {bound['gt']}",
    "greater_than_equal": lambda bound: f"expected a number of at least {bound['ge']}",
    "less_than": lambda bound: f"expected a number below {bound['lt']}",
    "less_than_equal": lambda bound: f"expected a number of at most {bound['le']}",
    "literal_error": lambda bound: f"expected {bound['expected']}",
    "expected": lambda bound: str(bound["sentence"]),
}


def validate_document(document: ConfigDocument) -> tuple[ConfigFile | None, list[ConfigFault]]:
    """Return the settings, or None if they cannot be built, and all faults."""
    faults = list(document.faults)
    written = None
    try:
        written = ConfigFile.model_validate(document.value)
    except ValidationError as error:
        faults += (_fault_from_error(document, one) for one in error.errors(include_url=False, include_input=False))
    faults += _find_contradictions(document)
    return written, faults


def find_variables(document: ConfigDocument) -> Iterator[tuple[KeyPath, str]]:
    """Yield every variable that the workflows name, with its path.

    This reads the raw document, not the settings, so that it also works when the document has other faults.
    """
    for path, value in document.leaves():
        if _is_variable_path(path) and isinstance(value, str) and VARIABLE.fullmatch(value):
            yield path, value


def find_prompts(document: ConfigDocument) -> Iterator[tuple[KeyPath, str]]:
    """Yield every prompt file that the workflows name, with its path."""
    for path, value in document.leaves():
        if path[:1] == ("workflows",) and path[2:] == ("prompt",) and isinstance(value, str) and value:
            yield path, value


def _is_variable_path(path: KeyPath) -> bool:
    if path[:1] != ("workflows",):
        return False
    declared = path[2:3] == ("data_sources",) and len(path) == 5 and path[4] in ("token_env", "kubeconfig_env")
    return declared or (path[2:3] == ("projects",) and len(path) == 6 and path[4] == "tokens")


def _fault_from_error(document: ConfigDocument, error: Any) -> ConfigFault:
    kind, path = error["type"], tuple(error["loc"])
    if kind == "extra_forbidden":
        return ConfigFault(
            path, document.position(path, of_key=True), unknown_key_message(str(path[-1]), keys_at(path[:-1]))
        )
    if path and path[-1] == "[key]" and path not in document.keys:
        return ConfigFault(path[:-1], document.position(path[:-1], of_key=True), _error_sentence(error))
    if kind == "missing":
        return ConfigFault(path, document.position(path[:-1], of_key=len(path) > 1), _error_sentence(error))
    return ConfigFault(path, document.position(path), _error_sentence(error))


def _error_sentence(error: Any) -> str:
    kind = error["type"]
    if kind in _BOUNDS:
        return _BOUNDS[kind](error["ctx"])
    return _SENTENCES.get(kind) or f"expected something else: {error['msg']}"


def _find_contradictions(document: ConfigDocument) -> Iterator[ConfigFault]:
    """Yield faults for values that are valid on their own but contradict each other."""
    written = dict(document.leaves())
    path: KeyPath = ("settings", "session_store")
    if written.get(path) and written.get(("settings", "s3_session_bucket")):
        yield ConfigFault(
            path, document.position(path, of_key=True), "expected this key or s3_session_bucket, not both"
        )
    path = ("settings", "sqs_queue_url")
    if written.get(path) and not written.get(("settings", "sqs_fifo_queue_url")):
        sentence = "expected sqs_fifo_queue_url as well: events of this queue become work on that one"
        yield ConfigFault(path, document.position(path, of_key=True), sentence)
    yield from _find_low_caps(document, written)
    seen: dict[tuple[Any, ...], KeyPath] = {}
    for path, place in document.keys.items():
        if len(path) == 4 and path[0] == "workflows" and path[2] == "projects":
            first = seen.setdefault((path[1], str(path[3]).casefold()), path)
            if first != path:
                yield ConfigFault(path, place, "the project is there twice: GitLab ignores case")


def _find_low_caps(document: ConfigDocument, written: Mapping[KeyPath, Any]) -> Iterator[ConfigFault]:
    """Yield a fault if settle_cap_seconds is below settle_seconds. Either of them may be the default."""
    names = ("settle_seconds", "settle_cap_seconds")
    least, most = (written.get(("settings", name), CONFIG_KEYS[f"settings.{name}"].default) for name in names)
    if isinstance(least, int) and isinstance(most, int) and most < least:
        path: KeyPath = next(("settings", name) for name in reversed(names) if ("settings", name) in written)
        yield ConfigFault(
            path, document.position(path), "expected settle_cap_seconds to be no less than settle_seconds"
        )
