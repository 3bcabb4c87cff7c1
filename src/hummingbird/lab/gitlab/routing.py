"""Define routes of the API, read query parameters, and cut lists into pages.

    get_route(world, "/projects/{id}/jobs/{jid}", show_job)      # show_job(world, request) -> Response

Paths are below /api/v4 and are matched as sent, so that acme%2Fwidgets is one part: read parts with
`access.path_segment`. Requests are handled one after the other in the server's own thread.
"""

import base64
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from hummingbird.lab.gitlab import error_responses
from hummingbird.lab.gitlab.world import CAUSING_EVENT, GitLabWorld

API_PREFIX = "/api/v4"
SORT_ORDERS = ("asc", "desc")
MERGE_REQUEST_PATH = "/projects/{id}/merge_requests/{iid}"
ReadHandler = Callable[[GitLabWorld, Request], Response]
WriteHandler = Callable[[GitLabWorld, Request], Awaitable[Response]]


def get_route(world: GitLabWorld, path: str, answer: ReadHandler) -> Route:
    """Make a reading route, which also answers HEAD."""

    async def endpoint(request: Request) -> Response:
        return answer(world, request)

    return Route(API_PREFIX + path, endpoint, methods=["GET"], name=f"GET {path}")


def write_route(world: GitLabWorld, method: str, path: str, answer: WriteHandler) -> Route:
    """Make a route with a body, which `answer` awaits."""

    async def endpoint(request: Request) -> Response:
        CAUSING_EVENT.set(request.headers.get("x-gitlab-event-uuid"))  # each request has its own context
        return await answer(world, request)

    return Route(API_PREFIX + path, endpoint, methods=[method], name=f"{method} {path}")


def json_response(body: Any, headers: Mapping[str, str] | None = None, status: int = 200) -> Response:
    return JSONResponse(body, status, dict(headers or {}))


def query_flag(request: Request, name: str, otherwise: bool = False) -> bool:
    text = request.query_params.get(name)
    return otherwise if text is None else text.lower() in ("true", "1", "t", "yes", "on")


def query_choice(request: Request, name: str, allowed: Sequence[str], otherwise: str) -> str:
    """Return one value of a fixed set. Raises GitLabErrorResponse as GitLab's parameter check does."""
    found = request.query_params.get(name) or otherwise
    if found not in allowed:
        raise error_responses.parameter_invalid(name, "does not have a valid value")
    return found


def query_list(request: Request, name: str) -> list[str]:
    """Return the values of a parameter that may be repeated (name[]=a&name[]=b), listed (name=a) or both."""
    return [*request.query_params.getlist(f"{name}[]"), *request.query_params.getlist(name)]


DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE = 20, 100
Row = TypeVar("Row")


class HasId(Protocol):
    """A row of a list with keyset pages."""

    id: int


Keyed = TypeVar("Keyed", bound=HasId)


def query_int(request: Request, name: str, otherwise: int) -> int:
    """Return a number among the parameters. Raises GitLabErrorResponse as GitLab's parameter check does."""
    text = request.query_params.get(name)
    if text is None or text == "":
        return otherwise
    try:
        return int(text)
    except ValueError:
        raise error_responses.parameter_invalid(name) from None


def page_and_size(request: Request) -> tuple[int, int]:
    """Return the page and its size; GitLab silently reduces a larger size to 100."""
    page, rows = query_int(request, "page", 1), query_int(request, "per_page", DEFAULT_PAGE_SIZE)
    return max(page, 1), min(rows if rows > 0 else DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE)


def cut_page(request: Request, rows: Sequence[Row]) -> list[Row]:
    """Return the rows of the page; some lists are paged but send no headers."""
    page, size = page_and_size(request)
    return list(rows[(page - 1) * size : page * size])


def page_with_headers(world: GitLabWorld, request: Request, rows: Sequence[Row]) -> tuple[list[Row], dict[str, str]]:
    """Return the rows of the page and its headers."""
    page, size = page_and_size(request)
    found, total = cut_page(request, rows), len(rows)
    last = max(1, -(-total // size))
    countable = total <= world.limits.counted_rows
    following = page + 1 if page * size < total else None
    before = page - 1 if page > 1 else None
    links = [("prev", before), ("next", following), ("first", 1), ("last", last if countable else None)]
    headers = {
        "Link": ", ".join(f'<{_page_url(world, request, page=at)}>; rel="{name}"' for name, at in links if at),
        "X-Next-Page": str(following or ""),
        "X-Page": str(page),
        "X-Per-Page": str(size),
        "X-Prev-Page": str(before or ""),
    }
    if countable:
        headers |= {"X-Total": str(total), "X-Total-Pages": str(last)}
    return found, headers


def _page_url(world: GitLabWorld, request: Request, **changed: object) -> str:
    """Return the external address of this request with some parameters changed."""
    kept = [(name, value) for name, value in request.query_params.multi_items() if name not in (*changed, "per_page")]
    query = urlencode([*kept, *changed.items(), ("per_page", page_and_size(request)[1])])
    return f"{world.url}{request.scope['path']}?{query}"


def page_by_cursor(world: GitLabWorld, request: Request, rows: Sequence[Keyed]) -> tuple[list[Keyed], dict[str, str]]:
    """Return keyset pages of rows that are sorted by id, newest first: with a next link and no totals.

    Raises GitLabErrorResponse for an invalid cursor.
    """
    size = page_and_size(request)[1]
    below = _decode_cursor(request.query_params.get("cursor"))
    left = [row for row in rows if below is None or row.id < below]
    found = left[:size]
    if len(left) <= size:
        return found, {}
    link = _page_url(world, request, cursor=_encode_cursor(found[-1].id))
    return found, {"Link": f'<{link}>; rel="next"'}


def _encode_cursor(below: int) -> str:
    return base64.urlsafe_b64encode(json.dumps({"id": str(below), "_kd": "n"}).encode()).decode()


def _decode_cursor(cursor: str | None) -> int | None:
    if not cursor:
        return None
    try:
        return int(json.loads(base64.urlsafe_b64decode(cursor))["id"])
    except (ValueError, KeyError, TypeError, OverflowError):
        raise error_responses.parameter_invalid("cursor") from None
