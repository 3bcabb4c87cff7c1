"""Stand-in for KubeArchive: the cluster's paths, GET only, answered from the archived objects.

Unlike the cluster, it answers errors with a message only, lists the newest object first with the generic kind `List`,
and gives the log of any object that owns a pod.
"""

import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from hummingbird.lab.fault_injection import FaultMiddleware, FaultResponse, allow_break_off
from hummingbird.lab.konflux.cluster import compress_responses, last_lines, stream_parts
from hummingbird.lab.konflux.world import GROUPS, KonfluxItem, KonfluxWorld, compact_json
from hummingbird.lab.kubernetes_api.access import ApiRequest, ApiStatusError, Raw, parse_request
from hummingbird.lab.kubernetes_api.resources import LabelSelector

DEFAULT_LIMIT = 100
MAX_LIMIT = 1000


class KubeArchiveError(Exception):
    """An error response; its text is the message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class ArchiveRows:
    """One page of rows. `total` counts the rows of all pages."""

    items: list[KonfluxItem]
    token: str
    total: int


def select_rows(stored: list[KonfluxItem], query: Mapping[str, str]) -> ArchiveRows:
    """Return the page of rows that a query selects, newest first. Raises KubeArchiveError."""
    limit, selects = _parse_limit(query), _build_filter(query)
    found = sorted((each for each in stored if selects(each)), key=_sort_key, reverse=True)  # newest first
    last = _decode_token(query.get("continue", ""))
    rest = found if last is None else [each for each in found if _sort_key(each) < last]
    kept = rest[:limit]
    # A full page has a token even if nothing follows: KubeArchive does not ask the database for more.
    full = bool(kept) and len(kept) == limit
    return ArchiveRows(kept, _encode_token(kept[-1]) if full else "", len(found))


def _sort_key(each: KonfluxItem) -> tuple[datetime, int]:
    return datetime.fromisoformat(each.created), each.number


def _parse_limit(query: Mapping[str, str]) -> int:
    text = query.get("limit") or str(DEFAULT_LIMIT)
    if not text.isdigit() or not 0 < int(text) <= MAX_LIMIT:
        raise KubeArchiveError(400, "bad limit parameter")
    return int(text)


def _build_filter(query: Mapping[str, str]) -> Callable[[KonfluxItem], bool]:
    try:
        labels = LabelSelector.parse(query.get("labelSelector", ""))
    except ApiStatusError as refused:
        raise KubeArchiveError(400, str(refused)) from refused
    name = _compile_wildcard(query.get("name", "*"))
    after, before = (_query_time(query, f"creationTimestamp{word}") for word in ("After", "Before"))

    def selects(each: KonfluxItem) -> bool:
        born = datetime.fromisoformat(each.created)
        in_time = (after is None or born > after) and (before is None or born < before)
        return in_time and labels(each.labels) and name.fullmatch(each.name) is not None

    return selects


def _compile_wildcard(text: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in text.split("*")), re.IGNORECASE)


def _query_time(query: Mapping[str, str], name: str) -> datetime | None:
    if not query.get(name):
        return None
    try:
        found = datetime.fromisoformat(query[name])
    except ValueError as problem:
        raise KubeArchiveError(400, f"bad {name} parameter") from problem
    if found.tzinfo is None:
        raise KubeArchiveError(400, f"bad {name} parameter")
    return found


def _encode_token(last: KonfluxItem) -> str:
    """Encode a continue token. Like the real one it often ends with `=`, so clients must URL-encode it."""
    return b64encode(f"{last.number} {last.created}".encode()).decode()


def _decode_token(token: str) -> tuple[datetime, int] | None:
    if not token:
        return None
    try:
        number, moment = b64decode(token, validate=True).decode().split(" ")
        found = datetime.fromisoformat(moment), int(number)
    except (ValueError, NotBase64) as problem:
        raise KubeArchiveError(400, "bad continue token") from problem
    if found[0].tzinfo is None:
        raise KubeArchiveError(400, "bad continue token")
    return found


PROXY_PREFIX = "/plugins/kubearchive"  # the path at Konflux's proxy; optional here
QUERY_TIMEOUT = FaultResponse(504, {"message": "query timeout"})
_DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
_UID = re.compile(r"/uid/([^/]+)")
_OLD_EMPTY_LIST: Raw = {
    "apiVersion": "v1",
    "items": None,
    "kind": "List",
    "metadata": {"continue": "", "resourceVersion": ""},
}


def too_many_requests(retry_after_s: int = 1) -> FaultResponse:
    """Return the response to a user above the limit of 100 requests per second, or 10 for logs."""
    return FaultResponse(429, {"message": "too many requests"}, {"Retry-After": str(retry_after_s)})


def archive_application(world: KonfluxWorld) -> ASGIApp:
    """Create the application of KubeArchive, with compression and planned faults."""
    application = compress_responses(allow_break_off(KubeArchiveApp(world)), _is_no_error)
    return FaultMiddleware("archive", application, world.archive_faults, world.requests)


def _is_no_error(status: int, _media_type: str) -> bool:
    return status < 400


class KubeArchiveApp:
    """Answer requests to KubeArchive from the archived objects."""

    def __init__(self, world: KonfluxWorld) -> None:
        self._world = world

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            response = self._respond(Request(scope, receive))
        except KubeArchiveError as rejected:
            response = JSONResponse({"message": str(rejected)}, rejected.code)
        await response(scope, receive, send)

    def _respond(self, request: Request) -> Response:
        path = request.scope["path"].removeprefix(PROXY_PREFIX)
        if path in {"/livez", "/readyz"}:
            return JSONResponse({"message": "ready" if path == "/readyz" else "healthy"})
        ask = parse_request(request.method, _UID.sub(r"/\1", path, count=1), request.query_params)
        if request.method != "GET" or not ask.resource or ask.subresource not in {"", "log"}:
            return PlainTextResponse("404 page not found", 404)
        self._check_access(request.headers.get("authorization", ""), ask)
        if ask.resource not in GROUPS:
            raise KubeArchiveError(400, f"unable to find the API resource {ask.resource} in the Kubernetes cluster")
        if not ask.name:
            return self._list(ask)
        found = self._find_item(ask, by_uid=_UID.search(path) is not None)
        if ask.subresource == "log":
            return PlainTextResponse(self._read_log(found, ask))
        return Response(found.to_json(), media_type="application/json")

    def _check_access(self, header: str, ask: ApiRequest) -> None:
        """Check the token as KubeArchive does: no header is 400, an unknown token and a denied request are both 401."""
        if not header:
            raise KubeArchiveError(400, "empty authorization bearer token given")
        account = self._world.access.accounts.get(header.partition(" ")[2])
        if account is None:
            raise KubeArchiveError(401, "authentication failed")
        # KubeArchive checks every request as a "get" of the resource, lists and logs too.
        asked = parse_request("GET", f"{ask.path}/any" if not ask.name else ask.path.removesuffix("/log"), {})
        if not account.may(asked):
            raise KubeArchiveError(401, "unauthorized")

    def _list(self, ask: ApiRequest) -> Response:
        found = select_rows(self._find_stored(ask), ask.query)
        if ask.query.get("count") in {"true", "1"}:
            return JSONResponse({"count": found.total})
        if not found.items and self._world.old_archive:
            return JSONResponse(_OLD_EMPTY_LIST)
        return StreamingResponse(stream_parts(_list_pieces(found)), media_type="application/json")

    def _find_stored(self, ask: ApiRequest) -> list[KonfluxItem]:
        """Return the stored objects. KubeArchive finds an object only under the API version it was written in."""
        version = f"{ask.group}/{ask.version}" if ask.group else ask.version
        stored = self._world.archive.find(ask.resource, ask.namespace)
        return [each for each in stored if each.manifest["apiVersion"] == version]

    def _find_item(self, ask: ApiRequest, *, by_uid: bool) -> KonfluxItem:
        found = [each for each in self._find_stored(ask) if ask.name == (each.uid if by_uid else each.name)]
        if not found:
            raise KubeArchiveError(404, "resource not found")
        if len(found) > 1:
            raise KubeArchiveError(500, "more than one resource found")
        return found[0]

    def _read_log(self, of: KonfluxItem, ask: ApiRequest) -> bytes:
        pods = sorted(self._pods_below(of), key=lambda each: (each.created, each.number))
        if not pods:
            raise KubeArchiveError(404, "no log URL found")
        pod = pods[-1]  # KubeArchive returns only the newest pod's log
        container = ask.query.get("container") or _default_container(pod.manifest)
        content = self._world.archived_logs.read_log(pod.name, container)
        if content is None:
            raise KubeArchiveError(404, "no log URL found")
        tail = ask.query.get("tailLines", "")
        if tail and not tail.isdigit():
            raise KubeArchiveError(400, "bad tailLines parameter")
        return last_lines(content, int(tail) if tail else None)

    def _pods_below(self, owner: KonfluxItem) -> Iterator[KonfluxItem]:
        """Yield the pods below an object, following owner references."""
        if owner.resource == "pods":
            yield owner
            return
        for each in self._world.archive.items:
            owners = each.metadata.get("ownerReferences") or []
            if any(reference.get("uid") == owner.uid for reference in owners):
                yield from self._pods_below(each)


def _default_container(pod: Raw) -> str:
    first = pod["spec"]["containers"][0]["name"] if pod["spec"]["containers"] else ""
    return str((pod["metadata"].get("annotations") or {}).get(_DEFAULT_CONTAINER) or first)


def _list_pieces(found: ArchiveRows) -> Iterator[bytes]:
    """Yield a list's JSON. KubeArchive writes items before metadata, because it knows the token last."""
    yield b'{"kind": "List", "apiVersion": "v1", "items": ['
    for index, each in enumerate(found.items):
        yield (b"," if index else b"") + each.to_json()
    yield f'], "metadata": {{"continue": {compact_json(found.token)}}}}}'.encode()
