"""Serve the GitLab stand-in as one ASGI application: routes, errors, redirects, planned faults, the request record.

gitlab_application(load_world(case))
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from email.utils import formatdate
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import unquote_to_bytes

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hummingbird.lab.case import LabCase
from hummingbird.lab.fault_injection import FaultMiddleware
from hummingbird.lab.gitlab import access, error_responses, merge_request_entities
from hummingbird.lab.gitlab.case_loader import (
    EXPIRED_TOKEN,
    JOB_TOKEN,
    NARROW_TOKEN,
    READ_TOKEN,
    WRITE_TOKEN,
    load_world,
)
from hummingbird.lab.gitlab.read import ci, merge_requests, people, repository
from hummingbird.lab.gitlab.records import LabMergeRequest, Raw
from hummingbird.lab.gitlab.routing import MERGE_REQUEST_PATH, json_response, write_route
from hummingbird.lab.gitlab.webhook_delivery import webhook_sender
from hummingbird.lab.gitlab.world import AnsweredRequest, GitLabWorld
from hummingbird.lab.gitlab.write import ci as ci_writes
from hummingbird.lab.gitlab.write import merge_request_changes as changes
from hummingbird.lab.gitlab.write import notes, webhooks
from hummingbird.lab.gitlab.write.merge_request_changes import MergeRequestEdit
from hummingbird.lab.gitlab.write.notes import locate_merge_request
from hummingbird.lab.gitlab.write.parameters import optional_text, parse_int, parse_list, read_parameters
from hummingbird.lab.http_server import LabServer


def merge_request_routes(world: GitLabWorld) -> list[Route]:
    return [write_route(world, "PUT", MERGE_REQUEST_PATH, put_merge_request)]


async def put_merge_request(world: GitLabWorld, request: Request) -> Response:
    given = await read_parameters(request)
    user, _caller, project, mr = locate_merge_request(world, request)
    if user.id != mr.author_id and world.access_level(user, project) < access.DEVELOPER:
        raise error_responses.forbidden()
    event = optional_text(given, "state_event")
    if event not in (None, "close", "reopen"):
        raise error_responses.parameter_invalid("state_event", "does not have a valid value")
    edit = MergeRequestEdit(
        title=optional_text(given, "title"),
        description=optional_text(given, "description"),
        target_branch=optional_text(given, "target_branch"),
        state_event=event,
        labels=labels_after_edit(mr, given),
        assignee_ids=people_parameter(world, given, "assignee_ids"),
        reviewer_ids=people_parameter(world, given, "reviewer_ids"),
    )
    if edit.title is not None and not edit.title.strip():
        raise error_responses.invalid_record({"title": ["can't be blank"]})
    changes.apply_edit(world, mr, user, edit)
    return json_response(merge_request_entities.merge_request(world, mr, user))


def labels_after_edit(mr: LabMergeRequest, given: Raw) -> list[str] | None:
    if not {"labels", "add_labels", "remove_labels"} & set(given):
        return None
    named = parse_list(given.get("labels"))
    found = [*(mr.labels if named is None else named), *(parse_list(given.get("add_labels")) or [])]
    gone = parse_list(given.get("remove_labels")) or []
    return [each for each in dict.fromkeys(found) if each not in gone]


def people_parameter(world: GitLabWorld, given: Raw, name: str) -> list[int] | None:
    """Return the ids of known people; 0 stands for nobody, and unknown ids are ignored."""
    named = parse_list(given.get(name))
    if named is None:
        return None
    known = {each.id for each in world.users}
    wanted = [parse_int(each, name) for each in named]
    return [each for each in wanted if each is not None and each in known]


WRITE_ROUTE_FACTORIES = (
    notes.note_routes,
    notes.award_routes,
    notes.draft_routes,
    ci_writes.ci_routes,
    merge_request_routes,
    webhooks.hook_routes,
)


def write_routes(world: GitLabWorld) -> list[Route]:
    """Return the routes, and start listening for changes that webhooks report."""
    webhook_sender(world)
    return [route for create_routes in WRITE_ROUTE_FACTORIES for route in create_routes(world)]


ROUTE_FACTORIES = (
    people.people_routes,
    merge_requests.merge_request_routes,
    merge_requests.note_routes,
    ci.ci_routes,
    ci.status_routes,
    repository.repository_routes,
    people.token_routes,
    write_routes,
)
SECRET_HEADERS = ("private-token", "authorization", "job-token", "cookie")
_REQUESTS_PER_MINUTE = 2_000


def gitlab_application(world: GitLabWorld, also: Sequence[Route] = ()) -> ASGIApp:
    """Build the application; the routes in `also` come before its own."""
    routes = [*also, *(route for create_routes in ROUTE_FACTORIES for route in create_routes(world))]
    return GitLabMiddleware(world, GitLabErrorHandler(routes))


class GitLabErrorHandler:
    """Turns whatever a route raises into GitLab's response."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._routes = routes
        self._inner = Router(routes, redirect_slashes=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            _check_address(scope)
            await self._inner(scope, receive, send)
        except error_responses.GitLabErrorResponse as refused:
            await refused.to_response()(scope, receive, send)
        except ClientDisconnect:
            pass  # the client left before it had sent its request, so nobody reads a response
        except access.ProjectMoved as moved:
            await _redirect(moved.location)(scope, receive, send)
        except HTTPException as problem:
            # The router found no such path or no such method.
            known = problem.status_code == 405
            await (self._method_not_allowed(scope) if known else error_responses.unknown_route().to_response())(
                scope, receive, send
            )

    def _method_not_allowed(self, scope: Scope) -> Response:
        """Answer OPTIONS for every existing path, and any other method with 405."""
        fitting = [route for route in self._routes if route.path_regex.match(scope["path"])]
        allow = ", ".join(sorted({"OPTIONS", *(method for route in fitting for method in route.methods or ())}))
        if scope["method"] == "OPTIONS":
            return Response(status_code=204, headers={"Allow": allow})
        return JSONResponse({"error": "405 Not Allowed"}, 405, {"Allow": allow})


def _check_address(scope: Scope) -> None:
    """Reject a path or query with invalid UTF-8 or NUL before any route sees it. Raises GitLabErrorResponse."""
    for part in (scope["path"], scope["query_string"].decode("latin-1")):
        try:
            found = unquote_to_bytes(part).decode("utf-8")
        except UnicodeDecodeError:
            raise error_responses.not_well_formed() from None
        if "\x00" in found:
            raise error_responses.not_well_formed()


def _redirect(location: str) -> Response:
    text = f"This resource has been moved permanently to {location}"
    return Response(text, 301, {"Location": location}, "text/plain")


class GitLabMiddleware:
    """What every request passes through: keeps its path undecoded, plays planned faults, records the outcome."""

    def __init__(self, world: GitLabWorld, inner: ASGIApp) -> None:
        self._world = world
        self._inner = FaultMiddleware("gitlab", inner, world.faults)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        # Decoded, acme%2Fwidgets would look like two parts of a path.
        path = scope["raw_path"].decode("latin-1")
        path = path.removesuffix("/") or path  # a trailing slash is optional
        inside = {**scope, "path": path, "app": self}
        answered = False

        async def send_recorded(message: Message) -> None:
            nonlocal answered
            if message["type"] == "http.response.start":
                # Record it before the client has it, so that a client with a response finds it in the record.
                answered = True
                self._record(Request(inside), message["status"])
                message = {**message, "headers": [*message["headers"], *self._extra_headers(message)]}
            await send(message)

        try:
            await self._inner(inside, receive, send_recorded)
        finally:
            if not answered:
                self._record(Request(inside), 0)

    def _extra_headers(self, answer: Message) -> list[tuple[bytes, bytes]]:
        """The headers that gitlab.com adds to every response, including the rate limits."""
        number = len(self._world.requests)
        extra: dict[str, Any] = {
            "x-request-id": f"01LAB{number:021d}",
            "x-runtime": "0.042",
            "date": formatdate(usegmt=True),
            "x-content-type-options": "nosniff",
            "ratelimit-limit": _REQUESTS_PER_MINUTE,
            "ratelimit-observed": number,
            "ratelimit-remaining": max(0, _REQUESTS_PER_MINUTE - number),
            "ratelimit-name": "throttle_authenticated_api",
        }
        if answer["status"] < 400:  # python-gitlab takes RateLimit-Reset as the time to wait after any failure
            reset = int(time.time()) + 60
            extra |= {"ratelimit-reset": reset, "ratelimit-resettime": formatdate(reset, usegmt=True)}
        there = {name.lower() for name, _value in answer["headers"]}
        return [(name.encode(), str(value).encode()) for name, value in extra.items() if name.encode() not in there]

    def _record(self, request: Request, status: int) -> None:
        headers = {name: value for name, value in request.headers.items() if name not in SECRET_HEADERS}
        query = "&".join(part for part in request.url.query.split("&") if not part.startswith("private_token="))
        self._world.requests.append(
            AnsweredRequest(request.method, request.scope["path"], query, self._username(request), headers, status)
        )

    def _username(self, request: Request) -> str | None:
        """Return the owner of the token, whether or not the token was valid for the request."""
        value = access.token_from_request(request) or request.headers.get("job-token")
        token = next((each for each in self._world.tokens if each.value == value), None)
        return self._world.user(token.user_id).username if token else None


SERVER_NAME = "gitlab"
Answer = TypeVar("Answer")


class GitLabLab:
    """A context manager that serves the GitLab part of a case; `addresses` are those of the other stand-ins."""

    read_token = READ_TOKEN
    write_token = WRITE_TOKEN
    expired_token = EXPIRED_TOKEN
    narrow_token = NARROW_TOKEN
    job_token = JOB_TOKEN

    def __init__(self, case: LabCase, *, port: int = 0, addresses: Mapping[str, str] | None = None) -> None:
        self._case = case
        self._addresses = {**case.addresses, **(addresses or {})}
        self._server = LabServer({SERVER_NAME: self._serve}, {SERVER_NAME: port}, name="gitlab-lab")
        self._world: GitLabWorld | None = None
        self._application: ASGIApp | None = None

    @property
    def url(self) -> str:
        return self._server.url(SERVER_NAME)

    @property
    def world(self) -> GitLabWorld:
        """The state of GitLab, for planning faults; to read what requests change, use `run_in_server`."""
        assert self._world is not None, "Enter the lab first: its case is read then."
        return self._world

    @property
    def requests(self) -> list[AnsweredRequest]:
        """The answered requests, in order."""
        return self.run_in_server(lambda world: list(world.requests))

    def run_in_server(self, question: Callable[[GitLabWorld], Answer]) -> Answer:
        """Call `question` in the server's thread, where no request changes anything meanwhile."""
        return self._server.run_in_server(lambda: question(self.world))

    def __enter__(self) -> Self:
        self._server.__enter__()
        self._world = load_world(replace(self._case, addresses={**self._addresses, SERVER_NAME: self.url}))
        self._application = gitlab_application(self._world)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._world is not None:
            webhook_sender(self._world).close()  # first, because a receiver of a webhook may query GitLab
        self._server.close()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self._application is not None
        await self._application(scope, receive, send)
