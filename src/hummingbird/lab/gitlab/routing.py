"""Routes of the API: a path below /api/v4, a method, and a plain function that answers.

    get(world, "/projects/{id}/jobs/{jid}", show_job)      # show_job(world, request) -> Response

Paths are matched as they were sent, so that acme%2Fwidgets is one part: read parts with access.segment. Everything is
answered in the server's own thread, one after the other.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from hummingbird.lab.gitlab import refusals
from hummingbird.lab.gitlab.store import CAUSE, World

PREFIX = "/api/v4"
ORDERS = ("asc", "desc")
MR = "/projects/{id}/merge_requests/{iid}"
Answer = Callable[[World, Request], Response]
AsyncAnswer = Callable[[World, Request], Awaitable[Response]]


def get(world: World, path: str, answer: Answer) -> Route:
    """A reading one; HEAD is answered too."""

    async def endpoint(request: Request) -> Response:
        return answer(world, request)

    return Route(PREFIX + path, endpoint, methods=["GET"], name=f"GET {path}")


def written(world: World, method: str, path: str, answer: AsyncAnswer) -> Route:
    """One that reads a body: `answer` awaits it."""

    async def endpoint(request: Request) -> Response:
        CAUSE.set(request.headers.get("x-gitlab-event-uuid"))  # every request has a context of its own
        return await answer(world, request)

    return Route(PREFIX + path, endpoint, methods=[method], name=f"{method} {path}")


def shown(body: Any, headers: Mapping[str, str] | None = None, status: int = 200) -> Response:
    return JSONResponse(body, status, dict(headers or {}))


def flag(request: Request, name: str, otherwise: bool = False) -> bool:
    text = request.query_params.get(name)
    return otherwise if text is None else text.lower() in ("true", "1", "t", "yes", "on")


def picked(request: Request, name: str, allowed: Sequence[str], otherwise: str) -> str:
    """One of a fixed set. Raises Refused as the parameter check does."""
    found = request.query_params.get(name) or otherwise
    if found not in allowed:
        raise refusals.invalid(name, "does not have a valid value")
    return found


def many(request: Request, name: str) -> list[str]:
    """A parameter that may be repeated (name[]=a&name[]=b), listed (name=a) or both."""
    return [*request.query_params.getlist(f"{name}[]"), *request.query_params.getlist(name)]
