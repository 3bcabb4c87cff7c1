"""The whole of this GitLab as one ASGI application: routes, refusals, redirects, planned faults, the record.

    application(load(case))

What the write side serves is included as it is. Knows no endpoint itself.
"""

import time
from collections.abc import Sequence
from email.utils import formatdate
from typing import Any
from urllib.parse import unquote_to_bytes

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hummingbird.lab.gitlab import access, refusals
from hummingbird.lab.gitlab.reading import ci, merge_requests, notes, people, repository, statuses, tokens
from hummingbird.lab.gitlab.store import Seen, World
from hummingbird.lab.gitlab.writing import routes as writing
from hummingbird.lab.planned import Planned

READING = (people, merge_requests, notes, ci, statuses, repository, tokens)
SECRET = ("private-token", "authorization", "job-token", "cookie")
_A_MINUTE = 2_000


def application(world: World, also: Sequence[Route] = ()) -> ASGIApp:
    """`also`: routes besides its own, which come first."""
    routes = [*also, *(route for room in (*READING, writing) for route in room.routes(world))]
    return _Front(world, _Refusing(routes))


class _Refusing:
    """Answers, whatever was raised on the way."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._routes = routes
        self._inner = Router(routes, redirect_slashes=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            _well_formed(scope)
            await self._inner(scope, receive, send)
        except refusals.Refused as refused:
            await refused.response()(scope, receive, send)
        except ClientDisconnect:
            pass  # it left before it had said what it wanted, and nobody is there to be told
        except access.Moved as moved:
            await _elsewhere(moved.location)(scope, receive, send)
        except HTTPException as problem:
            # the router's own no: a path or a method that nobody serves
            known = problem.status_code == 405
            await (self._other_methods(scope) if known else refusals.unknown_route().response())(scope, receive, send)

    def _other_methods(self, scope: Scope) -> Response:
        """OPTIONS is answered for every path that there is."""
        fitting = [route for route in self._routes if route.path_regex.match(scope["path"])]
        allow = ", ".join(sorted({"OPTIONS", *(method for route in fitting for method in route.methods or ())}))
        if scope["method"] == "OPTIONS":
            return Response(status_code=204, headers={"Allow": allow})
        return JSONResponse({"error": "405 Not Allowed"}, 405, {"Allow": allow})


def _well_formed(scope: Scope) -> None:
    """Raises Refused for an address that holds no UTF-8, or NUL: the application never sees it."""
    for part in (scope["path"], scope["query_string"].decode("latin-1")):
        try:
            found = unquote_to_bytes(part).decode("utf-8")
        except UnicodeDecodeError:
            raise refusals.malformed() from None
        if "\x00" in found:
            raise refusals.malformed()


def _elsewhere(location: str) -> Response:
    text = f"This resource has been moved permanently to {location}"
    return Response(text, 301, {"Location": location}, "text/plain")


class _Front:
    """What every request passes: its path is kept as sent, a planned fault is played, the outcome is recorded."""

    def __init__(self, world: World, inner: ASGIApp) -> None:
        self._world = world
        self._inner = Planned("gitlab", inner, world.faults)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        # decoded, acme%2Fwidgets could not be told from two parts of a path
        path = scope["raw_path"].decode("latin-1")
        path = path.removesuffix("/") or path  # which may stand there or not
        inside = {**scope, "path": path, "app": self}
        answered = False

        async def told(message: Message) -> None:
            nonlocal answered
            if message["type"] == "http.response.start":
                # before the client has it, so that whoever has an answer finds it in the record
                answered = True
                self._record(Request(inside), message["status"])
                message = {**message, "headers": [*message["headers"], *self._extra(message)]}
            await send(message)

        try:
            await self._inner(inside, receive, told)
        finally:
            if not answered:
                self._record(Request(inside), 0)

    def _extra(self, answer: Message) -> list[tuple[bytes, bytes]]:
        """What gitlab.com sends with every answer, limits not yet reached among it (facts 2.8)."""
        number = len(self._world.requests)
        extra: dict[str, Any] = {
            "x-request-id": f"01LAB{number:021d}",
            "x-runtime": "0.042",
            "date": formatdate(usegmt=True),
            "x-content-type-options": "nosniff",
            "ratelimit-limit": _A_MINUTE,
            "ratelimit-observed": number,
            "ratelimit-remaining": max(0, _A_MINUTE - number),
            "ratelimit-name": "throttle_authenticated_api",
        }
        if answer["status"] < 400:  # python-gitlab takes it for the time to wait after any failure
            reset = int(time.time()) + 60
            extra |= {"ratelimit-reset": reset, "ratelimit-resettime": formatdate(reset, usegmt=True)}
        there = {name.lower() for name, _value in answer["headers"]}
        return [(name.encode(), str(value).encode()) for name, value in extra.items() if name.encode() not in there]

    def _record(self, request: Request, status: int) -> None:
        headers = {name: value for name, value in request.headers.items() if name not in SECRET}
        query = "&".join(part for part in request.url.query.split("&") if not part.startswith("private_token="))
        self._world.requests.append(
            Seen(request.method, request.scope["path"], query, self._who(request), headers, status)
        )

    def _who(self, request: Request) -> str | None:
        """Whoever the token belongs to, whether or not it was of use."""
        value = access.presented(request) or request.headers.get("job-token")
        token = next((each for each in self._world.tokens if each.value == value), None)
        return self._world.user(token.user_id).username if token else None
