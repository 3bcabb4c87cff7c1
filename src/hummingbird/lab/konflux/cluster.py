"""Stand-in for the cluster's API server, read-only: discovery, objects, lists and logs, as kubectl expects them.

The wording of errors and the details of lists follow a real API server.
"""

import json
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hummingbird.lab.fault_injection import FaultMiddleware, allow_break_off
from hummingbird.lab.konflux.world import GROUPS, KINDS, TEKTON, ContainerLogs, KonfluxItem, KonfluxWorld, compact_json
from hummingbird.lab.kubernetes_api import resources
from hummingbird.lab.kubernetes_api.access import (
    ApiRequest,
    ApiStatusError,
    FieldFault,
    Raw,
    bad_request_error,
    bearer_identity,
    field_invalid,
    invalid_error,
    method_not_allowed_error,
    no_such_path_error,
    not_found_error,
    parse_request,
)
from hummingbird.lab.kubernetes_api.resources import FIELDS, LabelSelector, field_selector

CLUSTER_THRESHOLD_BYTES = 128 * 1024
ShouldCompress = Callable[[int, str], bool]  # given a response's status and media type
_GZIP = 16 + zlib.MAX_WBITS
_FAST = 1


def compress_responses(application: ASGIApp, wanted: ShouldCompress, *, above: int = 0) -> ASGIApp:
    """Compress responses of more than `above` bytes with gzip, for clients that accept it.

    The cluster compresses JSON above 128 KB, KubeArchive everything except errors.
    """

    async def squeezing(scope: Scope, receive: Receive, send: Send) -> None:
        asked = "gzip" in Headers(scope=scope).get("accept-encoding", "")
        await application(scope, receive, GzipSender(send, wanted, above) if asked else send)

    return squeezing


class GzipSender:
    """Hold a response back until it has ended or is known to be large enough, then send it compressed or plain."""

    def __init__(self, send: Send, wanted: ShouldCompress, above: int) -> None:
        self._send = send
        self._wanted = wanted
        self._above = above
        self._start: Message | None = None
        self._held = b""
        self._is_plain = False
        self._squeezer = zlib.compressobj(_FAST, zlib.DEFLATED, _GZIP)

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=list(message["headers"]))
            self._is_plain = not self._wanted(message["status"], headers.get("content-type", ""))
            self._start = message
            return
        more = message.get("more_body", False)
        self._held += message.get("body", b"")
        if self._start is not None and len(self._held) <= self._above and more:
            return
        if self._start is not None:
            await self._begin(self._start)
        await self._pass_on(more=more)

    async def _begin(self, start: Message) -> None:
        self._start = None
        self._is_plain = self._is_plain or len(self._held) <= self._above
        if not self._is_plain:
            headers = MutableHeaders(raw=list(start["headers"]))
            del headers["content-length"]
            headers["content-encoding"] = "gzip"
            headers.add_vary_header("Accept-Encoding")
            start = {**start, "headers": headers.raw}
        await self._send(start)

    async def _pass_on(self, *, more: bool) -> None:
        content, self._held = self._held, b""
        if not self._is_plain:
            content = self._squeezer.compress(content) + (b"" if more else self._squeezer.flush())
        await self._send({"type": "http.response.body", "body": content, "more_body": more})


# Logs

_UNSUPPORTED_PARAMETERS = ("sinceSeconds", "sinceTime", "stream")
_TRUE = {"true", "True", "1"}


def read_pod_log(pod: KonfluxItem, query: Mapping[str, str], logs: ContainerLogs) -> bytes:
    """Return the part of a container's log that the query asks for. Raises Refused."""
    tail, limit = _query_number(pod, query, "tailLines", 0), _query_number(pod, query, "limitBytes", 1)
    unplayed = [name for name in _UNSUPPORTED_PARAMETERS if query.get(name)]
    if unplayed:
        raise bad_request_error(f"This stand-in does not play {', '.join(unplayed)}.")
    container = _choose_container(pod, query.get("container", ""))
    _check_started(pod, container)
    if query.get("previous") in _TRUE:
        raise bad_request_error(f'previous terminated container "{container}" in pod "{pod.name}" not found')
    content = last_lines(logs.read_log(pod.name, container) or b"", tail)
    if query.get("timestamps") in _TRUE:
        content = _add_timestamps(content, pod)
    return content if limit is None else content[:limit]


def last_lines(content: bytes, count: int | None) -> bytes:
    """Return the last `count` lines; all of them for None."""
    if count is None:
        return content
    return b"".join(content.splitlines(keepends=True)[-count:]) if count else b""


def _choose_container(pod: KonfluxItem, asked: str) -> str:
    spec = pod.manifest["spec"]
    names = [each["name"] for key in ("initContainers", "containers") for each in spec.get(key) or []]
    if asked:
        if asked not in names:
            raise bad_request_error(f"container {asked} is not valid for pod {pod.name}")
        return asked
    if len(spec["containers"]) == 1:
        return str(spec["containers"][0]["name"])
    # The real message names the init containers too, before the others.
    choice = f", choose one of: [{' '.join(names)}]" if names else ""
    raise bad_request_error(f"a container name must be specified for pod {pod.name}{choice}")


def _check_started(pod: KonfluxItem, container: str) -> None:
    if not pod.manifest["spec"].get("nodeName"):
        raise bad_request_error(f"pod {pod.name} does not have a host assigned")
    waiting = _container_state(pod.manifest["status"], container).get("waiting")
    if waiting is not None:
        reason = waiting.get("reason") or "ContainerCreating"
        raise bad_request_error(f'container "{container}" in pod "{pod.name}" is waiting to start: {reason}')


def _container_state(status: Raw, container: str) -> Raw:
    keys = ("initContainerStatuses", "containerStatuses")
    for each in (each for key in keys for each in status.get(key) or []):
        if each.get("name") == container:
            return each.get("state") or {}
    return {}


def _query_number(pod: KonfluxItem, query: Mapping[str, str], name: str, least: int) -> int | None:
    text = query.get(name, "")
    if not text:
        return None
    try:
        found = int(text)
    except ValueError as problem:
        raise bad_request_error(f'strconv.ParseInt: parsing "{text}": invalid syntax') from problem
    if found < least:
        fault: FieldFault = field_invalid(name, found, f"must be greater than or equal to {least}")
        raise invalid_error("PodLogOptions", pod.name, [fault])
    return found


def _add_timestamps(content: bytes, pod: KonfluxItem) -> bytes:
    """Add a time to each line, a millisecond apart: unlike the kubelet, a case has no times of lines."""
    begun = datetime.fromisoformat(pod.manifest["status"].get("startTime") or pod.created)
    lines = content.splitlines(keepends=True)
    return b"".join(f"{_format_nanoseconds(begun, index)} ".encode() + line for index, line in enumerate(lines))


def _format_nanoseconds(begun: datetime, milliseconds: int) -> str:
    moment = (begun + timedelta(milliseconds=milliseconds)).astimezone(UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f") + "000Z"


# Lists

_CONTINUE_EXPIRED_TEXT = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)
_INCONSISTENT = -1  # the revision in a token that accepts the current state, whatever changed since


@dataclass(frozen=True, slots=True)
class KonfluxListPage:
    """One page of a list, with the metadata of the list."""

    items: list[KonfluxItem]
    metadata: Raw


def list_page(world: KonfluxWorld, ask: ApiRequest) -> KonfluxListPage:
    """Return the page that a query selects, sorted by name; everything if the query has no limit.

    Raises Refused: 400 for an invalid query, 410 for a token that is too old.
    """
    found = _select_items(world, ask)
    limit, token = _parse_limit(ask), ask.query.get("continue", "")
    revision, after = _decode_token(token, world) if token else (world.revision, "")
    rest = [each for each in found if each.name > after]
    metadata: Raw = {"resourceVersion": str(revision)}
    if not limit or len(rest) <= limit:
        # On the last page `continue` is empty for custom resources and absent for built-in ones.
        return KonfluxListPage(rest, metadata if ask.resource == "pods" else {"continue": "", **metadata})
    kept = rest[:limit]
    metadata = {"continue": _encode_token(revision, ask.namespace, kept[-1].name), **metadata}
    # With a selector the server does not know how many objects remain.
    if not ask.query.get("labelSelector") and not ask.query.get("fieldSelector"):
        metadata["remainingItemCount"] = len(rest) - limit
    return KonfluxListPage(kept, dict(sorted(metadata.items())))


def page_pieces(resource: str, version: str, found: KonfluxListPage) -> Iterator[bytes]:
    """Yield a list's JSON as the real server writes it.

    For custom resources keys are sorted, so items come before metadata, and each item has its kind. For built-in ones
    the list's metadata comes first, and items have no kind.
    """
    kind, metadata = f"{KINDS[resource]}List", compact_json(found.metadata)
    typed = resource != "pods"
    if typed:
        yield f'{{"apiVersion":"{version}","items":['.encode()
    else:
        yield f'{{"kind":"{kind}","apiVersion":"{version}","metadata":{metadata},"items":['.encode()
    for index, each in enumerate(found.items):
        yield (b"," if index else b"") + each.to_json(typed=typed)
    yield (f'],"kind":"{kind}","metadata":{metadata}}}\n' if typed else "]}\n").encode()


def _select_items(world: KonfluxWorld, ask: ApiRequest) -> list[KonfluxItem]:
    labels = LabelSelector.parse(ask.query.get("labelSelector", ""))
    version = f"{ask.group}/{ask.version}" if ask.group else f"/{ask.version}"
    allowed = FIELDS if ask.resource == "pods" else ("metadata.name", "metadata.namespace")
    fields = field_selector(ask.query.get("fieldSelector", ""), f"{version}, Resource={ask.resource}", allowed)
    found = [
        each for each in world.live.find(ask.resource, ask.namespace) if labels(each.labels) and fields(each.manifest)
    ]
    return sorted(found, key=lambda each: each.name)


def _parse_limit(ask: ApiRequest) -> int:
    try:
        return max(0, int(ask.query.get("limit") or 0))
    except ValueError as problem:
        raise bad_request_error(f'strconv.ParseInt: parsing "{ask.query["limit"]}": invalid syntax') from problem


def _encode_token(revision: int, namespace: str, last: str) -> str:
    start = f"{namespace}/{last}\0"
    token = json.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": start}, separators=(",", ":"))
    return urlsafe_b64encode(token.encode()).decode().rstrip("=")


def _decode_token(token: str, world: KonfluxWorld) -> tuple[int, str]:
    """Return the revision that is listed, and the name after which the list continues."""
    try:
        found = json.loads(urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        revision, (namespace, _, last) = int(found["rv"]), str(found["start"]).rstrip("\0").partition("/")
    except (ValueError, KeyError, TypeError, NotBase64) as problem:
        raise bad_request_error(f"continue key is not valid: {problem}") from problem
    if revision not in {_INCONSISTENT, world.revision}:
        raise _token_expired_error(_encode_token(_INCONSISTENT, namespace, last))
    return world.revision, last


def _token_expired_error(fresh: str) -> ApiStatusError:
    refused = ApiStatusError(410, "Expired", _CONTINUE_EXPIRED_TEXT)
    refused.status["metadata"] = {"continue": fresh}
    return refused


# Tables, which kubectl requests for its printed output, with the columns of the real server.

_RUN_COLUMNS = (("Succeeded", "string"), ("Reason", "string"), ("StartTime", "date"), ("CompletionTime", "date"))
_POD_COLUMNS = (("Ready", "string"), ("Status", "string"), ("Restarts", "string"), ("Age", "date"))


def wants_table(accept: str) -> bool:
    """Tell whether an Accept header asks for a table."""
    return "as=Table" in accept and "g=meta.k8s.io" in accept


def build_table(resource: str, found: KonfluxListPage) -> Raw:
    """Build the table of a page, with the columns of the real server."""
    columns = (("Name", "string"), *(_POD_COLUMNS if resource == "pods" else _RUN_COLUMNS))
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": found.metadata,
        "columnDefinitions": [
            {"name": name, "type": kind, "format": "name" if name == "Name" else "", "description": "", "priority": 0}
            for name, kind in columns
        ],
        "rows": [_table_row(each) for each in found.items],
    }


def _table_row(each: KonfluxItem) -> Raw:
    cells = _pod_cells(each.manifest) if each.resource == "pods" else _run_cells(each.manifest)
    about = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": each.metadata}
    return {"cells": [each.name, *cells], "object": about}


def _run_cells(run: Raw) -> list[Any]:
    status = run.get("status") or {}
    ending: Raw = next((each for each in status.get("conditions") or [] if each.get("type") == "Succeeded"), {})
    return [ending.get("status"), ending.get("reason"), status.get("startTime"), status.get("completionTime")]


def _pod_cells(pod: Raw) -> list[Any]:
    statuses = pod["status"].get("containerStatuses") or []
    ready = sum(bool(each.get("ready")) for each in statuses)
    restarts = sum(int(each.get("restartCount", 0)) for each in statuses)
    word = pod["status"].get("reason") or pod["status"]["phase"]
    return [f"{ready}/{len(pod['spec']['containers'])}", word, str(restarts), pod["metadata"]["creationTimestamp"]]


_READ_VERBS = ("get", "list")
_DISCOVERY_DOCUMENTS = resources.discovery_documents(
    core=[
        resources.resource_entry("pods", "Pod", ["po"], verbs=_READ_VERBS),
        resources.subresource_entry("pods/log", "Pod", ("get",)),
    ],
    groups={
        TEKTON: [
            resources.resource_entry("pipelineruns", "PipelineRun", ["pr", "prs"], verbs=_READ_VERBS),
            resources.resource_entry("taskruns", "TaskRun", ["tr", "trs"], verbs=_READ_VERBS),
        ]
    },
)


def cluster_application(world: KonfluxWorld) -> ASGIApp:
    """Create the application of the cluster, with compression and planned faults."""
    application = compress_responses(allow_break_off(KonfluxClusterApp(world)), _is_json, above=CLUSTER_THRESHOLD_BYTES)
    return FaultMiddleware("cluster", application, world.cluster_faults, world.requests)


def _is_json(_status: int, media_type: str) -> bool:
    """Tell whether a response is JSON: the cluster never compresses logs."""
    return media_type.startswith("application/json")


class KonfluxClusterApp:
    """Answer requests to the cluster from its state."""

    def __init__(self, world: KonfluxWorld) -> None:
        self._world = world

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            response = self._respond(request)
        except ApiStatusError as refused:
            response = JSONResponse(refused.status, refused.code)
        await response(scope, receive, send)

    def _respond(self, request: Request) -> Response:
        token, path = bearer_identity(request)
        ask = parse_request(request.method, path, request.query_params)
        self._world.access.admit(token, ask)
        if not ask.resource:
            found = resources.find_document(ask.path, _DISCOVERY_DOCUMENTS)
            return PlainTextResponse(found) if isinstance(found, str) else JSONResponse(found)
        if GROUPS.get(ask.resource) != ask.group or ask.version != "v1":
            raise no_such_path_error()
        if ask.verb == "watch":
            raise bad_request_error("This stand-in plays no watches.")
        if ask.verb not in _READ_VERBS:
            raise method_not_allowed_error()
        return self._read(ask, request.headers.get("accept", ""))

    def _read(self, ask: ApiRequest, accept: str) -> Response:
        if ask.full_resource == "pods/log":
            return PlainTextResponse(read_pod_log(self._find_item(ask), ask.query, self._world.live_logs))
        if ask.subresource:
            raise no_such_path_error()
        if ask.verb == "list":
            found = list_page(self._world, ask)
        else:
            found = KonfluxListPage([self._find_item(ask)], {"resourceVersion": str(self._world.revision)})
        if wants_table(accept):
            return JSONResponse(build_table(ask.resource, found))
        if ask.verb == "get":
            return Response(found.items[0].to_json() + b"\n", media_type="application/json")
        version = f"{ask.group}/v1" if ask.group else "v1"
        return StreamingResponse(stream_parts(page_pieces(ask.resource, version, found)), media_type="application/json")

    def _find_item(self, ask: ApiRequest) -> KonfluxItem:
        for each in self._world.live.find(ask.resource, ask.namespace):
            if each.name == ask.name:
                return each
        raise not_found_error(f"{ask.resource}.{ask.group}" if ask.group else ask.resource, ask.name)


async def stream_parts(parts: Iterable[bytes]) -> AsyncIterator[bytes]:
    """Yield the parts from the server's own thread, the only one that changes the state."""
    for each in parts:
        yield each
