"""The parameters of a write: from JSON, a form and the address, as Grape takes them.

Unknown ones are ignored without a word (facts 2); whoever answers picks what it knows. Knows no endpoint.
"""

import json
import math
from collections.abc import Iterator
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request

from hummingbird.lab.gitlab import refusals
from hummingbird.lab.gitlab.loading import time_or_none
from hummingbird.lab.gitlab.records import Raw

TRUE, FALSE = ("true", "1", "t", "yes", "on"), ("false", "0", "f", "no", "off")
NESTING_MOST = 100  # Ruby's JSON reads no deeper


async def parameters(request: Request) -> Raw:
    """Raises Refused for a body that cannot be read, and for text that a database cannot keep."""
    body = await request.body()
    found: Raw = {}
    for name, value in request.query_params.multi_items():
        _put(found, name, value)
    kind = request.headers.get("content-type", "")
    if body:
        _add_body(found, body, kind)
    if not all(_storable(each) for each in _strings(found)):
        raise refusals.malformed()
    return found


def _add_body(found: Raw, body: bytes, kind: str) -> None:
    match kind.partition(";")[0].strip().lower():
        case "application/json":
            found.update(_json(_decoded(body)))
        case "application/x-www-form-urlencoded":
            for name, value in _form(_decoded(body)):
                _put(found, name, value)
        case "multipart/form-data":
            for name, value in _multipart(body, kind):
                _put(found, name, value)
        case "text/plain":
            pass  # one of the formats that the API declares, and there are no parameters in it
        case other:
            raise refusals.unsupported(other)


def _decoded(body: bytes) -> str:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        raise refusals.malformed() from None


def _json(text: str) -> Raw:
    """What is JSON but no object has no parameters."""
    try:
        found = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        raise refusals.unparsable() from None
    return found if isinstance(found, dict) else {}


def _form(text: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(text, keep_blank_values=True, errors="strict")
    except UnicodeDecodeError:
        raise refusals.malformed() from None


def _multipart(body: bytes, kind: str) -> Iterator[tuple[str, str]]:
    """What `curl --form` sends."""
    head = f"Content-Type: {kind}\r\n\r\n".encode("latin-1")
    whole = BytesParser(policy=HTTP).parsebytes(head + body)
    for part in whole.iter_parts() if whole.is_multipart() else ():
        name, content = part.get_param("name", header="content-disposition"), part.get_payload(decode=True)
        if isinstance(name, str) and isinstance(content, bytes):
            yield name, _decoded(content)


def _put(found: Raw, name: str, value: str) -> None:
    """position[new_line]=3 goes into a dictionary, labels[]=a onto a list. Raises Refused where both are one's name."""
    first, *inner = name.replace("]", "").split("[")
    if not inner:
        found[first] = value
    elif inner == [""]:
        _as(list, found.setdefault(first, [])).append(value)
    else:
        at = _as(dict, found.setdefault(first, {}))
        for part in inner[:-1]:
            at = _as(dict, at.setdefault(part, {}))
        at[inner[-1]] = value


def _as(kind: type[Any], value: Any) -> Any:
    if not isinstance(value, kind):
        raise refusals.malformed()
    return value


def _strings(found: Raw) -> Iterator[str]:
    """All that there are, names too. Raises Refused for what is nested too deeply."""
    level: list[Any] = [found]
    for _ in range(NESTING_MOST):
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
    raise refusals.unparsable()


def _storable(text: str) -> bool:
    """Neither NUL nor half of a surrogate pair."""
    return "\x00" not in text and not any("\ud800" <= each <= "\udfff" for each in text if each > "\ud7ff")


def text(given: Raw, name: str) -> str:
    """One that must be there. Raises Refused."""
    found = given.get(name)
    if found is None:
        raise refusals.missing(name)
    if isinstance(found, (dict, list)):
        raise refusals.invalid(name)
    return str(found)


def text_or_none(given: Raw, name: str) -> str | None:
    return None if given.get(name) is None else text(given, name)


def truth(given: Raw, name: str) -> bool | None:
    """None where it is not given. Raises Refused for what is neither true nor false."""
    found = given.get(name)
    if found is None or isinstance(found, bool):
        return found
    word = str(found).lower()
    if word not in TRUE + FALSE:
        raise refusals.invalid(name)
    return word in TRUE


def whole(value: Any, name: str) -> int | None:
    """A number, None where none is given. Raises Refused."""
    if value is None or value == "":
        return None
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        raise refusals.invalid(name) from None


def decimal(given: Raw, name: str) -> float | None:
    """Raises Refused for what is no number."""
    if given.get(name) is None:
        return None
    try:
        found = float(given[name])
    except (TypeError, ValueError, OverflowError):
        raise refusals.invalid(name) from None
    if not math.isfinite(found):
        raise refusals.invalid(name)
    return found


def time(given: Raw, name: str) -> str | None:
    """As records keep it. Raises Refused for what is no time."""
    try:
        return time_or_none(text_or_none(given, name))
    except (ValueError, OverflowError):
        raise refusals.invalid(name) from None


def nested(given: Raw, name: str) -> Raw | None:
    """Parameters of their own. Raises Refused for anything else."""
    found = given.get(name)
    if found is not None and not isinstance(found, dict):
        raise refusals.invalid(name)
    return found


def listed(value: Any) -> list[str] | None:
    """Names as a list or with commas between them."""
    if value is None:
        return None
    names = value if isinstance(value, list) else str(value).split(",")
    return [str(each).strip() for each in names if str(each).strip()]
