"""The API server: takes a request, asks who may, and answers as the real one does. No business of its own."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from hummingbird.lab.kubernetes_api import resources
from hummingbird.lab.kubernetes_api.access import (
    GROUPS,
    AccessControl,
    ApiRequest,
    ApiStatusError,
    Raw,
    bad_request_error,
    bearer_identity,
    method_not_allowed_error,
    no_such_path_error,
    parse_request,
)
from hummingbird.lab.kubernetes_api.resources import LabelSelector, field_selector
from tests.standins.kubernetes import channels, deployments
from tests.standins.kubernetes.execs import Execs, Target, Wish
from tests.standins.kubernetes.kubelet import Kubelet
from tests.standins.kubernetes.patches import patched
from tests.standins.kubernetes.registry import Pods
from tests.standins.kubernetes.store import KINDS, Key, Store, api_version


class Api:
    def __init__(self, store: Store, pods: Pods, access: AccessControl, kubelet: Kubelet, execs: Execs) -> None:
        self._store = store
        self._pods = pods
        self._access = access
        self._kubelet = kubelet
        self._execs = execs

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._exec(WebSocket(scope, receive, send))
            return
        request = Request(scope, receive)
        try:
            response = await self._answer(request)
        except ApiStatusError as refused:
            response = JSONResponse(refused.status, refused.code)
        await response(scope, receive, send)

    def _admit(self, connection: HTTPConnection, method: str) -> ApiRequest:
        token, path = bearer_identity(connection)
        ask = parse_request(method, path, connection.query_params)
        self._access.admit(token, ask)
        return ask

    async def _answer(self, request: Request) -> Response:
        ask = self._admit(request, request.method)
        if not ask.resource:
            found = resources.find_document(ask.path)
            return PlainTextResponse(found) if isinstance(found, str) else JSONResponse(found)
        if GROUPS.get(ask.resource) != ask.group or ask.version != "v1":
            raise no_such_path_error()
        if ask.subresource:
            self._exec_target(ask, request.query_params.getlist("command"))
            raise bad_request_error("Upgrade request required: this stand-in speaks WebSockets, not SPDY")
        if ask.query.get("dryRun"):
            raise bad_request_error("This stand-in plays no dry runs.")
        body, media_type = await _body(request), _media_type(request)
        return JSONResponse(self._do(ask, body, media_type), 201 if ask.verb == "create" else 200)

    def _do(self, ask: ApiRequest, body: Any, media_type: str) -> Raw:
        match ask.verb, ask.resource:
            case "get", _:
                return self._store.get(_key(ask))
            case "list", _:
                return self._list(ask)
            case "create", "pods" if ask.namespace:
                return self._pods.create(ask.namespace, body)
            case "patch", "pods":
                return self._pods.patch(_key(ask), body, media_type)
            case "delete", "pods":
                return self._pods.delete(_key(ask), _delete_options(ask, body))
            case "create", "deployments" if ask.namespace:
                return self._store.create("deployments", deployments.newborn(body, ask.namespace))
            case "patch", "deployments":
                return self._patch_deployment(_key(ask), body, media_type)
            case "delete", "deployments":
                thing = self._store.get(_key(ask))
                return self._store.remove(_key(ask), thing["metadata"]["uid"]) or thing
        raise method_not_allowed_error()

    def _patch_deployment(self, key: Key, patch: Any, media_type: str) -> Raw:
        current = self._store.get(key)
        return self._store.replace(key, deployments.changed(current, patched(current, patch, media_type)))

    def _list(self, ask: ApiRequest) -> Raw:
        labels = LabelSelector.parse(ask.query.get("labelSelector", ""))
        fields = field_selector(ask.query.get("fieldSelector", ""))
        found = [
            thing
            for thing in self._store.list(ask.resource, ask.namespace)
            if labels(thing["metadata"].get("labels") or {}) and fields(thing)
        ]
        page, metadata = _page(found, ask)
        return {
            "kind": f"{KINDS[ask.resource]}List",
            "apiVersion": api_version(ask.resource),
            "metadata": {"resourceVersion": self._store.version, **metadata},
            "items": [{name: each[name] for name in each if name not in {"kind", "apiVersion"}} for each in page],
        }

    async def _exec(self, socket: WebSocket) -> None:
        try:
            ask = self._admit(socket, "GET")
            target, wish = self._exec_target(ask, socket.query_params.getlist("command"))
            if not {channels.V5, channels.V4} & set(socket.scope.get("subprotocols") or []):
                raise bad_request_error(f"This stand-in speaks {channels.V5} and {channels.V4} alone.")
        except ApiStatusError as refused:
            await socket.send_denial_response(JSONResponse(refused.status, refused.code))
            return
        await self._execs.serve(socket, target, wish)

    def _exec_target(self, ask: ApiRequest, command: list[str]) -> tuple[Target, Wish]:
        if ask.full_resource != "pods/exec":
            raise no_such_path_error()
        pod = self._store.get(_key(ask))
        if not command:
            raise bad_request_error("you must specify at least one command for the container")
        target = self._target(pod, ask.query.get("container", ""))
        if not pod["spec"].get("nodeName"):
            raise bad_request_error(f"pod {ask.name} does not have a host assigned")
        return target, _wish(ask, command)

    def _target(self, pod: Raw, asked: str) -> Target:
        name = pod["spec"]["containers"][0]["name"]
        if asked not in {"", name}:
            raise bad_request_error(f"container {asked} is not valid for pod {pod['metadata']['name']}")
        runs = "running" in ((pod["status"].get("containerStatuses") or [{}])[0].get("state") or {})
        return Target(self._kubelet.container(pod["metadata"]["uid"]) if runs else None, name)


async def _body(request: Request) -> Any:
    content = await request.body()
    if not content:
        return {}
    try:
        return json.loads(content)
    except ValueError as problem:
        raise bad_request_error(f"couldn't get version/kind; json parse error: {problem}") from problem


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip()


def _delete_options(ask: ApiRequest, body: Any) -> Raw:
    options: Raw = dict(body) if isinstance(body, dict) else {}
    if "gracePeriodSeconds" not in options and ask.query.get("gracePeriodSeconds"):
        try:
            options["gracePeriodSeconds"] = int(ask.query["gracePeriodSeconds"])
        except ValueError as problem:
            raise bad_request_error(f"invalid gracePeriodSeconds: {problem}") from problem
    return options


def _page(found: list[Raw], ask: ApiRequest) -> tuple[list[Raw], Raw]:
    """`limit` items after the one that `continue` names."""
    try:
        after = urlsafe_b64decode(ask.query.get("continue", "")).decode()
        limit = int(ask.query.get("limit") or 0)
    except ValueError as problem:
        raise bad_request_error(f"invalid limit or continue: {problem}") from problem
    rest = [thing for thing in found if thing["metadata"]["name"] > after]
    if not limit or len(rest) <= limit:
        return rest, {}
    last = rest[limit - 1]["metadata"]["name"]
    token = urlsafe_b64encode(last.encode()).decode()
    return rest[:limit], {"continue": token, "remainingItemCount": len(rest) - limit}


def _wish(ask: ApiRequest, command: list[str]) -> Wish:
    asked = {name: ask.query.get(name) in {"true", "True", "1"} for name in ("stdin", "stdout", "stderr")}
    return Wish(command, **asked)


def _key(ask: ApiRequest) -> Key:
    return Key(ask.resource, "" if ask.resource == "namespaces" else ask.namespace, ask.name)
