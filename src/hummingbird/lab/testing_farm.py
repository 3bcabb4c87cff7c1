"""Stand-in for Testing Farm: its API of requests, and the server of the files that its runs leave behind.

The requests of a case are short; what the API adds to each is filled in here. They are read anew for every request,
because addresses may become known late.
"""

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from html import escape
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from hummingbird.lab.case import LabCase
from hummingbird.lab.fault_injection import FaultMiddleware, Faults, ReceivedRequest
from hummingbird.lab.http_server import LabServer

Raw = dict[str, Any]
_USER = "5f1d2c3b-0a49-4e8d-8c55-91b7a2e4d6f0"
_NOT_STARTED = ("new", "queued")
_SAFE_NAME = re.compile(r"[\w-]+")


@dataclass
class TestingFarmWorld:
    """The state of Testing Farm for a case; requests that tests `added` (by id) come before the case's own."""

    __test__ = False  # pytest would take it for a test

    case: LabCase
    added: dict[str, Raw] = field(default_factory=dict)
    api_faults: Faults = field(default_factory=Faults)
    artifacts_faults: Faults = field(default_factory=Faults)
    requests: list[ReceivedRequest] = field(default_factory=list)

    def find_request(self, id_: str) -> Raw | None:
        """Return the request as the API shows it, or None."""
        found = self.added.get(id_)
        if found is None and _SAFE_NAME.fullmatch(id_):
            found = self.case.read_json(f"testing_farm/requests/{id_}.json")
        return None if found is None else complete_request(id_, found, self.case)

    def find_artifact(self, path: str) -> Path | None:
        """Return the file or folder at a path; None if there is none, or if it is outside of the folder."""
        folder = (self.case.folder / "testing_farm" / "artifacts").resolve()
        found = (folder / path.lstrip("/")).resolve()
        inside = found.is_relative_to(folder) and found != folder
        return found if inside and found.exists() else None

    def read_artifact(self, file: Path) -> bytes:
        """Return the content of a file with addresses filled in."""
        content = file.read_bytes()
        for name, address in self.case.addresses.items():
            content = content.replace(b"{{" + name.encode() + b"}}", address.encode())
        return content


def load_testing_farm(case: LabCase) -> TestingFarmWorld:
    """Return the state of Testing Farm for a case."""
    return TestingFarmWorld(case)


def complete_request(id_: str, given: Raw, case: LabCase) -> Raw:
    """Complete a short request. `queued_time` and `run_time` are missing unless given, as in some real responses."""
    state = given.get("state", "complete")
    born = _format_time(str(case.description.get("now", "2026-03-02T10:00:00Z")))
    artifacts = f"{case.addresses.get('artifacts', '')}/{id_}"
    run = None if state in _NOT_STARTED else {"console": None, "stages": None, "artifacts": artifacts}
    return {
        "id": id_,
        "user_id": _USER,
        "test": {"fmf": None, "script": None, "sti": None},
        "state": state,
        "environments_requested": [],
        "notes": [],
        "settings": None,
        "user": {"webpage": None},
        "created": born,
        "updated": born,
        **given,
        "result": _complete_result(given.get("result"), artifacts),
        "run": given.get("run", run),
    }


def _complete_result(given: Mapping[str, Any] | None, artifacts: str) -> Raw | None:
    """Complete a result. It is null while nothing is known; old responses have the xunit inline, others have null."""
    if given is None:
        return None
    whole: Raw = {"overall": None, "summary": None, "xunit": None, "xunit_url": f"{artifacts}/results.xml", **given}
    return whole


def _format_time(moment: str) -> str:
    """Format a time as the API does: in UTC, but without a zone."""
    return datetime.fromisoformat(moment).strftime("%Y-%m-%dT%H:%M:%S.%f")


_KINDS = {
    ".xml": "text/xml",
    ".html": "text/html",
    ".json": "application/json",
    ".log": "text/plain",
    ".txt": "text/plain",
    ".gz": "application/gzip",
}
_BYTES = "application/octet-stream"
_PAGE = "<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n<h1>{title}</h1>{rest}</body>\r\n</html>\r\n"


def artifacts_application(world: TestingFarmWorld) -> ASGIApp:
    """Serve the files below /ID/, and folders as plain lists of links.

    A run that ended early may leave no results.xml, or half of one: its case simply has no such file, or half of it.
    """

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        response = _serve_file(world, Request(scope, receive))
        await response(scope, receive, send)

    return FaultMiddleware("artifacts", application, world.artifacts_faults, world.requests)


def _serve_file(world: TestingFarmWorld, request: Request) -> Response:
    if request.method not in {"GET", "HEAD"}:
        return _html_page("405 Not Allowed", 405)
    path = request.scope["path"]
    found = world.find_artifact(path)
    if found is None or (found.is_file() and path.endswith("/")):
        return _html_page("404 Not Found", 404)
    if found.is_file():
        return Response(world.read_artifact(found), media_type=_media_type(found))
    if not path.endswith("/"):
        return RedirectResponse(f"{quote(path)}/", 301)
    return _html_page(f"Index of {path}", 200, f"<hr><pre>{_folder_links(found)}</pre><hr>")


def _media_type(file: Path) -> str:
    return _KINDS.get(file.suffix, _BYTES if file.suffix else "text/plain")


def _folder_links(folder: Path) -> str:
    names = [f"{each.name}/" if each.is_dir() else each.name for each in sorted(folder.iterdir())]
    return "".join(f'<a href="{quote(name)}">{escape(name)}</a>\r\n' for name in ["../", *names])


def _html_page(title: str, status: int, rest: str = "") -> HTMLResponse:
    return HTMLResponse(_PAGE.format(title=escape(title), rest=rest), status)


def testing_farm_application(world: TestingFarmWorld) -> ASGIApp:
    """Serve the API: a request by its id, which anybody may read."""

    async def request(asked: Request) -> JSONResponse:
        id_ = asked.path_params["id"]
        if not _is_uuid(id_):
            return _error_response(400, "Invalid request id, it is not a UUID.")
        found = world.find_request(id_)
        return _error_response(404, "No such entity.") if found is None else JSONResponse(found)

    async def not_found(_asked: Request, _problem: Exception) -> JSONResponse:
        return _error_response(404, "Not found.")

    async def not_allowed(_asked: Request, _problem: Exception) -> JSONResponse:
        return _error_response(405, "Method not allowed.")

    routes = [Route("/v0.1/requests/{id}", request, methods=["GET"])]
    application = Starlette(routes=routes, exception_handlers={404: not_found, 405: not_allowed})
    return FaultMiddleware("testing_farm", application, world.api_faults, world.requests)


def _is_uuid(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


def _error_response(code: int, message: str) -> JSONResponse:
    return JSONResponse({"code": code, "message": message}, code)


class TestingFarmLab:
    """A context manager that serves the Testing Farm part of a case."""

    __test__ = False  # pytest would take it for a test

    def __init__(self, case: LabCase) -> None:
        self._addresses = dict(case.addresses)
        self.world: TestingFarmWorld = load_testing_farm(replace(case, addresses=self._addresses))
        applications = {
            "testing_farm": testing_farm_application(self.world),
            "artifacts": artifacts_application(self.world),
        }
        self._server = LabServer(applications, name="testing-farm-lab")

    @property
    def api_url(self) -> str:
        """The address without the version; requests are below /v0.1."""
        return self._server.url("testing_farm")

    @property
    def artifacts_url(self) -> str:
        return self._server.url("artifacts")

    @property
    def api_faults(self) -> Faults:
        return self.world.api_faults

    @property
    def artifacts_faults(self) -> Faults:
        return self.world.artifacts_faults

    @property
    def requests(self) -> list[ReceivedRequest]:
        """All requests so far to both servers, in order of arrival; available after the end, too."""
        return list(self.world.requests)

    def add(self, id_: str, request: Raw) -> None:
        """Add a request, or replace one of the case's; short, as in a case."""
        self._server.run_in_server(lambda: self.world.added.update({id_: request}))

    def __enter__(self) -> Self:
        self._server.__enter__()
        own = {"testing_farm": self.api_url, "artifacts": self.artifacts_url}
        self._addresses.update({name: url for name, url in own.items() if name not in self._addresses})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
