"""The cluster's API server, read-only: discovery, objects, lists and logs, as kubectl and clients expect them.

Takes a request, asks who may, and answers from the world. Facts: section 4.
"""

from collections.abc import AsyncIterator, Iterable

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from hummingbird.lab.konflux import tables
from hummingbird.lab.konflux.lists import Page, page, pieces
from hummingbird.lab.konflux.objects import GROUPS, TEKTON, Item
from hummingbird.lab.konflux.pod_logs import log
from hummingbird.lab.konflux.squeezed import CLUSTER_THRESHOLD_BYTES, squeezed
from hummingbird.lab.konflux.world import KonfluxWorld
from hummingbird.lab.kubernetes import discovery
from hummingbird.lab.kubernetes.asks import Ask, parse
from hummingbird.lab.kubernetes.identity import identity
from hummingbird.lab.kubernetes.refusals import Refused, bad_request, no_such_path, not_allowed, not_found
from hummingbird.lab.planned import Planned, breakable

_READ = ("get", "list")
_DOCUMENTS = discovery.documents(
    core=[
        discovery.resource("pods", "Pod", ["po"], verbs=_READ),
        discovery.subresource("pods/log", "Pod", ("get",)),
    ],
    groups={
        TEKTON: [
            discovery.resource("pipelineruns", "PipelineRun", ["pr", "prs"], verbs=_READ),
            discovery.resource("taskruns", "TaskRun", ["tr", "trs"], verbs=_READ),
        ]
    },
)


def cluster_application(world: KonfluxWorld) -> ASGIApp:
    application = squeezed(breakable(_Cluster(world)), _is_json, above=CLUSTER_THRESHOLD_BYTES)
    return Planned("cluster", application, world.cluster_faults, world.requests)


def _is_json(_status: int, media_type: str) -> bool:
    """Logs are never compressed."""
    return media_type.startswith("application/json")


class _Cluster:
    def __init__(self, world: KonfluxWorld) -> None:
        self._world = world

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            response = self._answer(request)
        except Refused as refused:
            response = JSONResponse(refused.status, refused.code)
        await response(scope, receive, send)

    def _answer(self, request: Request) -> Response:
        token, path = identity(request)
        ask = parse(request.method, path, request.query_params)
        self._world.access.admit(token, ask)
        if not ask.resource:
            found = discovery.document(ask.path, _DOCUMENTS)
            return PlainTextResponse(found) if isinstance(found, str) else JSONResponse(found)
        if GROUPS.get(ask.resource) != ask.group or ask.version != "v1":
            raise no_such_path()
        if ask.verb == "watch":
            raise bad_request("This stand-in plays no watches.")
        if ask.verb not in _READ:
            raise not_allowed()
        return self._read(ask, request.headers.get("accept", ""))

    def _read(self, ask: Ask, accept: str) -> Response:
        if ask.full_resource == "pods/log":
            return PlainTextResponse(log(self._found(ask), ask.query, self._world.live_logs))
        if ask.subresource:
            raise no_such_path()
        if ask.verb == "list":
            found = page(self._world, ask)
        else:
            found = Page([self._found(ask)], {"resourceVersion": str(self._world.revision)})
        if tables.asked_for(accept):
            return JSONResponse(tables.table(ask.resource, found))
        if ask.verb == "get":
            return Response(found.items[0].text() + b"\n", media_type="application/json")
        version = f"{ask.group}/v1" if ask.group else "v1"
        return StreamingResponse(one_by_one(pieces(ask.resource, version, found)), media_type="application/json")

    def _found(self, ask: Ask) -> Item:
        for each in self._world.live.of(ask.resource, ask.namespace):
            if each.name == ask.name:
                return each
        raise not_found(f"{ask.resource}.{ask.group}" if ask.group else ask.resource, ask.name)


async def one_by_one(parts: Iterable[bytes]) -> AsyncIterator[bytes]:
    """In the server's own thread, where the world is changed too."""
    for each in parts:
        yield each
