"""Read the parameters of a write from JSON, a form or the query, as GitLab's API framework (Grape) does.

Unknown parameters are silently ignored.
"""

import math
from collections.abc import Iterator
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request

from hummingbird.core.json_codec import InvalidJson, decode_lenient_json
from hummingbird.lab.gitlab import error_responses
from hummingbird.lab.gitlab.case_loader import format_time_or_none
from hummingbird.lab.gitlab.records import Raw

TRUE, FALSE = ("true", "1", "t", "yes", "on"), ("false", "0", "f", "no", "off")
MAX_NESTING = 100  # Ruby's JSON parser accepts no more


async def read_parameters(request: Request) -> Raw:
    """Return all parameters. Raises GitLabErrorResponse for a body or text that GitLab cannot read or store."""
    body = await request.body()
    found: Raw = {}
    for name, value in request.query_params.multi_items():
        _put_parameter(found, name, value)
    kind = request.headers.get("content-type", "")
    if body:
        _add_body(found, body, kind)
    if not all(_is_storable(each) for each in _all_strings(found)):
        raise error_responses.not_well_formed()
    return found


def _add_body(found: Raw, body: bytes, kind: str) -> None:
    match kind.partition(";")[0].strip().lower():
        case "application/json":
            found.update(_parse_json(_decode_utf8(body)))
        case "application/x-www-form-urlencoded":
            for name, value in _parse_form(_decode_utf8(body)):
                _put_parameter(found, name, value)
        case "multipart/form-data":
            for name, value in _parse_multipart(body, kind):
                _put_parameter(found, name, value)
        case "text/plain":
            pass  # the API declares this format, but it contains no parameters
        case other:
            raise error_responses.content_type_not_supported(other)


def _decode_utf8(body: bytes) -> str:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        raise error_responses.not_well_formed() from None


def _parse_json(text: str) -> Raw:
    """Parse JSON; anything but an object has no parameters."""
    try:
        found = decode_lenient_json(text) if text.strip() else {}
    except InvalidJson:
        raise error_responses.body_not_parsable() from None
    return found if isinstance(found, dict) else {}


def _parse_form(text: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(text, keep_blank_values=True, errors="strict")
    except UnicodeDecodeError:
        raise error_responses.not_well_formed() from None


def _parse_multipart(body: bytes, kind: str) -> Iterator[tuple[str, str]]:
    """Parse what `curl --form` sends."""
    head = f"Content-Type: {kind}\r\n\r\n".encode("latin-1")
    whole = BytesParser(policy=HTTP).parsebytes(head + body)
    for part in whole.iter_parts() if whole.is_multipart() else ():
        name, content = part.get_param("name", header="content-disposition"), part.get_payload(decode=True)
        if isinstance(name, str) and isinstance(content, bytes):
            yield name, _decode_utf8(content)


def _put_parameter(found: Raw, name: str, value: str) -> None:
    """Put position[new_line]=3 into a dictionary and labels[]=a into a list. Raises GitLabErrorResponse on conflict."""
    first, *inner = name.replace("]", "").split("[")
    if not inner:
        found[first] = value
    elif inner == [""]:
        _require_type(list, found.setdefault(first, [])).append(value)
    else:
        at = _require_type(dict, found.setdefault(first, {}))
        for part in inner[:-1]:
            at = _require_type(dict, at.setdefault(part, {}))
        at[inner[-1]] = value


def _require_type(kind: type[Any], value: Any) -> Any:
    if not isinstance(value, kind):
        raise error_responses.not_well_formed()
    return value


def _all_strings(found: Raw) -> Iterator[str]:
    """Yield all strings, names too. Raises GitLabErrorResponse for what is nested too deeply."""
    level: list[Any] = [found]
    for _ in range(MAX_NESTING):
        inside: list[Any] = []
        for each in level:
            if isinstance(each, str):
                yield each
            elif isinstance(each, dict):
                inside += [*each, *each.values()]
            elif isinstance(each, list):
                inside += each
        if not inside:
            return
        level = inside
    raise error_responses.body_not_parsable()


def _is_storable(text: str) -> bool:
    """Tell whether the text has neither NUL nor half of a surrogate pair."""
    return "\x00" not in text and not any("\ud800" <= each <= "\udfff" for each in text if each > "\ud7ff")


def text_parameter(given: Raw, name: str) -> str:
    """Return a required parameter. Raises GitLabErrorResponse."""
    found = given.get(name)
    if found is None:
        raise error_responses.parameter_missing(name)
    if isinstance(found, (dict, list)):
        raise error_responses.parameter_invalid(name)
    return str(found)


def optional_text(given: Raw, name: str) -> str | None:
    return None if given.get(name) is None else text_parameter(given, name)


def bool_parameter(given: Raw, name: str) -> bool | None:
    """Return None if it is not given. Raises GitLabErrorResponse for what is neither true nor false."""
    found = given.get(name)
    if found is None or isinstance(found, bool):
        return found
    word = str(found).lower()
    if word not in TRUE + FALSE:
        raise error_responses.parameter_invalid(name)
    return word in TRUE


def parse_int(value: Any, name: str) -> int | None:
    """Return a number, or None if none is given. Raises GitLabErrorResponse."""
    if value is None or value == "":
        return None
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        raise error_responses.parameter_invalid(name) from None


def float_parameter(given: Raw, name: str) -> float | None:
    """Return None if it is not given. Raises GitLabErrorResponse for what is not a number."""
    if given.get(name) is None:
        return None
    try:
        found = float(given[name])
    except (TypeError, ValueError, OverflowError):
        raise error_responses.parameter_invalid(name) from None
    if not math.isfinite(found):
        raise error_responses.parameter_invalid(name)
    return found


def time_parameter(given: Raw, name: str) -> str | None:
    """Return a time as records keep it. Raises GitLabErrorResponse for what is not a time."""
    try:
        return format_time_or_none(optional_text(given, name))
    except (ValueError, OverflowError):
        raise error_responses.parameter_invalid(name) from None


def object_parameter(given: Raw, name: str) -> Raw | None:
    """Return nested parameters. Raises GitLabErrorResponse for anything else."""
    found = given.get(name)
    if found is not None and not isinstance(found, dict):
        raise error_responses.parameter_invalid(name)
    return found


def parse_list(value: Any) -> list[str] | None:
    """Return names that are given as a list or separated by commas."""
    if value is None:
        return None
    names = value if isinstance(value, list) else str(value).split(",")
    return [str(each).strip() for each in names if str(each).strip()]
