"""KubeArchive: the same paths as the cluster's, GET alone, answered from what was archived. Facts: section 4.

Its errors are a message alone, its lists are of no kind, newest first, and its logs come by way of whatever owns a pod.
"""

import re
from collections.abc import Iterator

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from hummingbird.lab.konflux.archive_queries import Rejected, Rows, rows
from hummingbird.lab.konflux.cluster import one_by_one
from hummingbird.lab.konflux.objects import GROUPS, Item, written
from hummingbird.lab.konflux.pod_logs import last_lines
from hummingbird.lab.konflux.squeezed import squeezed
from hummingbird.lab.konflux.world import KonfluxWorld
from hummingbird.lab.kubernetes.asks import Ask, parse
from hummingbird.lab.kubernetes.refusals import Raw
from hummingbird.lab.planned import Answer, Planned, breakable

PREFIX = "/plugins/kubearchive"  # where Konflux's proxy puts it; it may be left out
QUERY_TIMEOUT = Answer(504, {"message": "query timeout"})
_DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
_UID = re.compile(r"/uid/([^/]+)")
_NOTHING_OLD: Raw = {
    "apiVersion": "v1",
    "items": None,
    "kind": "List",
    "metadata": {"continue": "", "resourceVersion": ""},
}


def too_many(retry_after_s: int = 1) -> Answer:
    """Over a user's limit: 100 requests a second, 10 for logs."""
    return Answer(429, {"message": "too many requests"}, {"Retry-After": str(retry_after_s)})


def archive_application(world: KonfluxWorld) -> ASGIApp:
    application = squeezed(breakable(_Archive(world)), _is_no_error)
    return Planned("archive", application, world.archive_faults, world.requests)


def _is_no_error(status: int, _media_type: str) -> bool:
    return status < 400


class _Archive:
    def __init__(self, world: KonfluxWorld) -> None:
        self._world = world

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            response = self._answer(Request(scope, receive))
        except Rejected as rejected:
            response = JSONResponse({"message": str(rejected)}, rejected.code)
        await response(scope, receive, send)

    def _answer(self, request: Request) -> Response:
        path = request.scope["path"].removeprefix(PREFIX)
        if path in {"/livez", "/readyz"}:
            return JSONResponse({"message": "ready" if path == "/readyz" else "healthy"})
        ask = parse(request.method, _UID.sub(r"/\1", path, count=1), request.query_params)
        if request.method != "GET" or not ask.resource or ask.subresource not in {"", "log"}:
            return PlainTextResponse("404 page not found", 404)
        self._admit(request.headers.get("authorization", ""), ask)
        if ask.resource not in GROUPS:
            raise Rejected(400, f"unable to find the API resource {ask.resource} in the Kubernetes cluster")
        if not ask.name:
            return self._list(ask)
        found = self._found(ask, by_uid=_UID.search(path) is not None)
        if ask.subresource == "log":
            return PlainTextResponse(self._log(found, ask))
        return Response(found.text(), media_type="application/json")

    def _admit(self, header: str, ask: Ask) -> None:
        """Facts 4: no header is 400, an unknown token and a denied request are both 401."""
        if not header:
            raise Rejected(400, "empty authorization bearer token given")
        account = self._world.access.accounts.get(header.partition(" ")[2])
        if account is None:
            raise Rejected(401, "authentication failed")
        # every request is checked as a "get" of the resource, lists and logs too
        asked = parse("GET", f"{ask.path}/any" if not ask.name else ask.path.removesuffix("/log"), {})
        if not account.may(asked):
            raise Rejected(401, "unauthorized")

    def _list(self, ask: Ask) -> Response:
        found = rows(self._archived(ask), ask.query)
        if ask.query.get("count") in {"true", "1"}:
            return JSONResponse({"count": found.total})
        if not found.items and self._world.old_archive:
            return JSONResponse(_NOTHING_OLD)
        return StreamingResponse(one_by_one(_pieces(found)), media_type="application/json")

    def _archived(self, ask: Ask) -> list[Item]:
        """Facts 4: objects were stored with the version in which they were written, and are found by it."""
        version = f"{ask.group}/{ask.version}" if ask.group else ask.version
        stored = self._world.archive.of(ask.resource, ask.namespace)
        return [each for each in stored if each.thing["apiVersion"] == version]

    def _found(self, ask: Ask, *, by_uid: bool) -> Item:
        found = [each for each in self._archived(ask) if ask.name == (each.uid if by_uid else each.name)]
        if not found:
            raise Rejected(404, "resource not found")
        if len(found) > 1:
            raise Rejected(500, "more than one resource found")
        return found[0]

    def _log(self, of: Item, ask: Ask) -> bytes:
        pods = sorted(self._pods(of), key=lambda each: (each.created, each.number))
        if not pods:
            raise Rejected(404, "no log URL found")
        pod = pods[-1]  # facts 4: the newest pod's alone
        container = ask.query.get("container") or _default_container(pod.thing)
        content = self._world.archived_logs.read(pod.name, container)
        if content is None:
            raise Rejected(404, "no log URL found")
        tail = ask.query.get("tailLines", "")
        if tail and not tail.isdigit():
            raise Rejected(400, "bad tailLines parameter")
        return last_lines(content, int(tail) if tail else None)

    def _pods(self, owner: Item) -> Iterator[Item]:
        """The pods below an object, by way of owner references."""
        if owner.resource == "pods":
            yield owner
            return
        for each in self._world.archive.items:
            owners = each.metadata.get("ownerReferences") or []
            if any(reference.get("uid") == owner.uid for reference in owners):
                yield from self._pods(each)


def _default_container(pod: Raw) -> str:
    first = pod["spec"]["containers"][0]["name"] if pod["spec"]["containers"] else ""
    return str((pod["metadata"].get("annotations") or {}).get(_DEFAULT_CONTAINER) or first)


def _pieces(found: Rows) -> Iterator[bytes]:
    """Facts 4: a generic kind, and the items before the metadata, because the token is known last."""
    yield b'{"kind": "List", "apiVersion": "v1", "items": ['
    for index, each in enumerate(found.items):
        yield (b"," if index else b"") + each.text()
    yield f'], "metadata": {{"continue": {written(found.token)}}}}}'.encode()
