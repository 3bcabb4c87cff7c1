"""The artifacts' server: files below /ID/, folders as plain lists of links. Facts: section 5.

A static web server that knows nothing of tests. results.xml may not be there, or half there, as in a run that ended
early: a case simply has no such file, or half of it.
"""

from html import escape
from pathlib import Path
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from hummingbird.lab.planned import Planned
from hummingbird.lab.testing_farm.world import TestingFarmWorld

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
    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        response = _answer(world, Request(scope, receive))
        await response(scope, receive, send)

    return Planned("artifacts", application, world.artifacts_faults, world.requests)


def _answer(world: TestingFarmWorld, request: Request) -> Response:
    if request.method not in {"GET", "HEAD"}:
        return _page("405 Not Allowed", 405)
    path = request.scope["path"]
    found = world.artifact(path)
    if found is None or (found.is_file() and path.endswith("/")):
        return _page("404 Not Found", 404)
    if found.is_file():
        return Response(world.content(found), media_type=_kind(found))
    if not path.endswith("/"):
        return RedirectResponse(f"{quote(path)}/", 301)
    return _page(f"Index of {path}", 200, f"<hr><pre>{_links(found)}</pre><hr>")


def _kind(file: Path) -> str:
    return _KINDS.get(file.suffix, _BYTES if file.suffix else "text/plain")


def _links(folder: Path) -> str:
    names = [f"{each.name}/" if each.is_dir() else each.name for each in sorted(folder.iterdir())]
    return "".join(f'<a href="{quote(name)}">{escape(name)}</a>\r\n' for name in ["../", *names])


def _page(title: str, status: int, rest: str = "") -> HTMLResponse:
    return HTMLResponse(_PAGE.format(title=escape(title), rest=rest), status)
