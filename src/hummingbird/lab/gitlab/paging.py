"""Pages of lists: by number with its headers, without them, or by cursor.

facts 2.8. Knows nothing of what is listed.
"""

import base64
import json
from collections.abc import Sequence
from typing import Protocol, TypeVar
from urllib.parse import urlencode

from starlette.requests import Request

from hummingbird.lab.gitlab import refusals
from hummingbird.lab.gitlab.store import World

DEFAULT, MOST = 20, 100
Row = TypeVar("Row")


class Numbered(Protocol):
    id: int


Keyed = TypeVar("Keyed", bound=Numbered)


def whole(request: Request, name: str, otherwise: int) -> int:
    """A number among the parameters. Raises Refused as the parameter check does."""
    text = request.query_params.get(name)
    if text is None or text == "":
        return otherwise
    try:
        return int(text)
    except ValueError:
        raise refusals.invalid(name) from None


def asked(request: Request) -> tuple[int, int]:
    """Page and rows a page; too many rows are 100, without a word."""
    page, rows = whole(request, "page", 1), whole(request, "per_page", DEFAULT)
    return max(page, 1), min(rows if rows > 0 else DEFAULT, MOST)


def headless(request: Request, rows: Sequence[Row]) -> list[Row]:
    """The page alone: some lists take the parameters and send no headers (facts 2.2)."""
    page, size = asked(request)
    return list(rows[(page - 1) * size : page * size])


def paged(world: World, request: Request, rows: Sequence[Row]) -> tuple[list[Row], dict[str, str]]:
    """The page and its headers."""
    page, size = asked(request)
    found, total = headless(request, rows), len(rows)
    last = max(1, -(-total // size))
    countable = total <= world.limits.counted_rows
    following = page + 1 if page * size < total else None
    before = page - 1 if page > 1 else None
    links = [("prev", before), ("next", following), ("first", 1), ("last", last if countable else None)]
    headers = {
        "Link": ", ".join(f'<{_address(world, request, page=at)}>; rel="{name}"' for name, at in links if at),
        "X-Next-Page": str(following or ""),
        "X-Page": str(page),
        "X-Per-Page": str(size),
        "X-Prev-Page": str(before or ""),
    }
    if countable:
        headers |= {"X-Total": str(total), "X-Total-Pages": str(last)}
    return found, headers


def _address(world: World, request: Request, **changed: object) -> str:
    """This request's, on the external address, with all its parameters but those that change."""
    kept = [(name, value) for name, value in request.query_params.multi_items() if name not in (*changed, "per_page")]
    query = urlencode([*kept, *changed.items(), ("per_page", asked(request)[1])])
    return f"{world.url}{request.scope['path']}?{query}"


def by_cursor(world: World, request: Request, rows: Sequence[Keyed]) -> tuple[list[Keyed], dict[str, str]]:
    """Keyset pages of rows that are sorted by id, newest first: a next link and no totals.

    Raises Refused for a cursor that is not ours."""
    size = asked(request)[1]
    below = _opened(request.query_params.get("cursor"))
    left = [row for row in rows if below is None or row.id < below]
    found = left[:size]
    if len(left) <= size:
        return found, {}
    link = _address(world, request, cursor=_sealed(found[-1].id))
    return found, {"Link": f'<{link}>; rel="next"'}


def _sealed(below: int) -> str:
    return base64.urlsafe_b64encode(json.dumps({"id": str(below), "_kd": "n"}).encode()).decode()


def _opened(cursor: str | None) -> int | None:
    if not cursor:
        return None
    try:
        return int(json.loads(base64.urlsafe_b64decode(cursor))["id"])
    except (ValueError, KeyError, TypeError, OverflowError):
        raise refusals.invalid("cursor") from None
