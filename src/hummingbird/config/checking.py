"""Plain values to settings, and the library's complaints to sentences of ours. Reads no file and no variable."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from hummingbird.config.configuration import Written
from hummingbird.config.defaults import TABLE
from hummingbird.config.document import Document
from hummingbird.config.faults import Fault, KeyPath, unknown
from hummingbird.config.kinds import VARIABLE
from hummingbird.config.schema import keys_at

_SENTENCES: Mapping[str, str] = {
    "missing": "expected this key: it must be written",
    "int_type": "expected a whole number",
    "int_from_float": "expected a whole number",
    "float_type": "expected a number",
    "finite_number": "expected a number that ends",
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


def checked(document: Document) -> tuple[Written | None, list[Fault]]:
    """The settings if they can be made, and everything that is wrong."""
    faults = list(document.faults)
    written = None
    try:
        written = Written.model_validate(document.value)
    except ValidationError as error:
        faults += (_fault(document, one) for one in error.errors(include_url=False, include_input=False))
    faults += _contradictions(document)
    return written, faults


def variables(document: Document) -> Iterator[tuple[KeyPath, str]]:
    """Every variable that the workflows name, and where. Of the text as it is, so that one fault hides no other."""
    for path, value in document.leaves():
        if _names_a_variable(path) and isinstance(value, str) and VARIABLE.fullmatch(value):
            yield path, value


def prompts(document: Document) -> Iterator[tuple[KeyPath, str]]:
    for path, value in document.leaves():
        if path[:1] == ("workflows",) and path[2:] == ("prompt",) and isinstance(value, str) and value:
            yield path, value


def _names_a_variable(path: KeyPath) -> bool:
    if path[:1] != ("workflows",):
        return False
    declared = path[2:3] == ("data_sources",) and len(path) == 5 and path[4] in ("token_env", "kubeconfig_env")
    return declared or (path[2:3] == ("projects",) and len(path) == 6 and path[4] == "tokens")


def _fault(document: Document, error: Any) -> Fault:
    kind, path = error["type"], tuple(error["loc"])
    if kind == "extra_forbidden":
        return Fault(path, document.place(path, of_key=True), unknown(str(path[-1]), keys_at(path[:-1])))
    if path and path[-1] == "[key]" and path not in document.keys:
        return Fault(path[:-1], document.place(path[:-1], of_key=True), _sentence(error))
    if kind == "missing":
        return Fault(path, document.place(path[:-1], of_key=len(path) > 1), _sentence(error))
    return Fault(path, document.place(path), _sentence(error))


def _sentence(error: Any) -> str:
    kind = error["type"]
    if kind in _BOUNDS:
        return _BOUNDS[kind](error["ctx"])
    return _SENTENCES.get(kind) or f"expected something else: {error['msg']}"


def _contradictions(document: Document) -> Iterator[Fault]:
    """What is sound by itself and makes no sense together."""
    written = dict(document.leaves())
    path: KeyPath = ("settings", "session_store")
    if written.get(path) and written.get(("settings", "s3_session_bucket")):
        yield Fault(path, document.place(path, of_key=True), "expected this key or s3_session_bucket, not both")
    path = ("settings", "sqs_queue_url")
    if written.get(path) and not written.get(("settings", "sqs_fifo_queue_url")):
        sentence = "expected sqs_fifo_queue_url as well: events of this queue become work on that one"
        yield Fault(path, document.place(path, of_key=True), sentence)
    yield from _caps(document, written)
    seen: dict[tuple[Any, ...], KeyPath] = {}
    for path, place in document.keys.items():
        if len(path) == 4 and path[0] == "workflows" and path[2] == "projects":
            first = seen.setdefault((path[1], str(path[3]).casefold()), path)
            if first != path:
                yield Fault(path, place, "the project is there twice: GitLab ignores case")


def _caps(document: Document, written: Mapping[KeyPath, Any]) -> Iterator[Fault]:
    """A cap that is lower than what it caps; each of the two may be the default."""
    names = ("settle_seconds", "settle_cap_seconds")
    least, most = (written.get(("settings", name), TABLE[f"settings.{name}"].default) for name in names)
    if isinstance(least, int) and isinstance(most, int) and most < least:
        path: KeyPath = next(("settings", name) for name in reversed(names) if ("settings", name) in written)
        yield Fault(path, document.place(path), "expected settle_cap_seconds to be no less than settle_seconds")
