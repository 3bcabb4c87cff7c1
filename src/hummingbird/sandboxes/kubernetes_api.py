"""Talks to a cluster's API about the pods of one namespace: create, get, list, patch and delete.

`hummingbird.clients` finds the cluster and the credentials, as kubectl does; the namespace is chosen here. The requests
are our own, because lightkube's `delete` has no preconditions, and we must never remove a pod that somebody else has
claimed meanwhile. There is no watch: our role does not allow it.
"""

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
import httpx2
import msgspec
from lightkube.config.kubeconfig import SingleConfig

from hummingbird.clients import kubeconfig, kubernetes_client
from hummingbird.clients.kubeconfig import SERVICE_ACCOUNT, ClusterQuery
from hummingbird.core.errors import ClusterUnusable, HummingbirdError, SandboxBroken, SandboxUnavailable
from hummingbird.core.limits import API_TIMEOUT_S, ERROR_TEXT_CHARS, PULL_PATIENCE_S
from hummingbird.core.text import shorten_line
from hummingbird.sandboxes.kubernetes_manifest import (
    CLAIMED_BY_ANNOTATION,
    HELD_FOR_LABEL,
    REAP_BY_ANNOTATION,
    SESSION_LABEL,
    JsonObject,
    parse_timestamp,
)


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """What an operator asks for.

    Attributes:
        namespace: The namespace given on the command line.
        configured_namespace: The namespace from the configuration.
        kubectl: A program to use instead of the kubectl on the PATH.
        ca_bundle: Certificate authorities for clusters whose kubeconfig names none.
    """

    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""
    configured_namespace: str = ""
    kubectl: str = ""
    ca_bundle: str = ""


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """A cluster, the credentials for it, and the namespace for sandboxes."""

    found: kubeconfig.ClusterConfig
    namespace: str

    @property
    def config(self) -> SingleConfig:
        return self.found.config

    @property
    def environment(self) -> Mapping[str, str]:
        return self.found.environment

    @property
    def in_cluster(self) -> bool:
        return self.found.in_cluster

    @property
    def server(self) -> str:
        return self.found.server


@contextmanager
def translate_cluster_errors() -> Iterator[None]:
    """Turn errors of `hummingbird.clients` into SandboxUnavailable."""
    try:
        yield
    except ClusterUnusable as error:
        raise SandboxUnavailable(str(error)) from error


def find_cluster(
    site: ClusterOptions, environment: Mapping[str, str], service_account: Path = SERVICE_ACCOUNT
) -> ClusterAccess:
    """Find the cluster and choose the namespace. Raises SandboxUnavailable.

    In a pod, sandboxes use the pod's own account unless a context is named: $KUBECONFIG may be another cluster's, such
    as that of the Konflux tenant.
    """
    sought = ClusterQuery(
        kubeconfig=site.kubeconfig, context=site.context, ca_bundle=site.ca_bundle, prefer_own_account=True
    )
    with translate_cluster_errors():
        place = kubeconfig.find_cluster(sought, environment, service_account)
    # The namespace of our own pod is not meant for sandboxes; a context's namespace was chosen by somebody.
    return ClusterAccess(place, _choose_namespace(site, None if place.in_cluster else place.config))


def _choose_namespace(site: ClusterOptions, config: SingleConfig | None) -> str:
    """Return the namespace given on the command line, else the context's, else the configured one.

    The configured one does not count when a context was asked for by name: it was written for another cluster.
    """
    of_context = config.context.namespace if config is not None else None
    found = site.namespace or of_context or ("" if site.context else site.configured_namespace)
    if not found:
        where = f"The context {site.context!r} names no namespace" if site.context else "No namespace is known"
        raise SandboxUnavailable(
            f"{where} for sandboxes: say --namespace, set it for the context (kubectl config set-context --current "
            "--namespace …), or set sandbox.namespace in the configuration."
        )
    return found


def create_client(found: ClusterAccess) -> httpx2.AsyncClient:
    """Return an HTTP client for the cluster. Raises SandboxUnavailable."""
    with translate_cluster_errors():
        return kubernetes_client.create_cluster_client(found.found)


FOREVER = float("inf")
# What keeps a container from starting, and for how many seconds we expect that it may pass
_PATIENCE_BY_REASON = dict.fromkeys(("ErrImagePull", "ImagePullBackOff", "RegistryUnavailable"), PULL_PATIENCE_S)
_PULL_REASONS = {*_PATIENCE_BY_REASON, "InvalidImageName", "ErrImageNeverPull"}
_NORMAL_REASONS = {None, "ContainerCreating", "PodInitializing"}
_NEVER_RAN = ("StartError", "ContainerCannotRun")
_END_SENTENCES = {
    "Evicted": "it was evicted",
    "DeadlineExceeded": "its time was up (activeDeadlineSeconds)",
    "OOMKilled": "it ran out of memory",
    "Preempting": "it made room for another pod",
    "Preempted": "it made room for another pod",
    "Terminated": "its node was shut down",
    "NodeShutdown": "its node was shut down",
    "Shutdown": "its node was shut down",
    "NodeLost": "its node was lost",
}


class RawContainerReason(msgspec.Struct, rename="camel", frozen=True):
    reason: str | None = None
    message: str | None = None
    exit_code: int | None = None


class RawContainerState(msgspec.Struct, rename="camel", frozen=True):
    waiting: RawContainerReason | None = None
    terminated: RawContainerReason | None = None


class RawContainerStatus(msgspec.Struct, rename="camel", frozen=True):
    ready: bool = False
    state: RawContainerState | None = None


class RawPodCondition(msgspec.Struct, rename="camel", frozen=True):
    type: str
    status: str
    reason: str | None = None
    message: str | None = None


class RawPodStatus(msgspec.Struct, rename="camel", frozen=True):
    phase: str = ""
    reason: str | None = None
    message: str | None = None
    conditions: list[RawPodCondition] | None = None
    container_statuses: list[RawContainerStatus] | None = None


class RawPodMetadata(msgspec.Struct, rename="camel", frozen=True):
    name: str
    uid: str
    resource_version: str
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    deletion_timestamp: str | None = None


class RawPod(msgspec.Struct, rename="camel", frozen=True):
    metadata: RawPodMetadata
    status: RawPodStatus = msgspec.field(default_factory=RawPodStatus)


@dataclass(frozen=True, slots=True)
class StartObstacle:
    """Why a pod does not run yet. `patience_s` is how long it may last before we stop waiting."""

    reason: str
    sentence: str
    patience_s: float = FOREVER


@dataclass(frozen=True, slots=True)
class PodStatus:
    """A pod as the API describes it, reduced to what we need.

    Attributes:
        version: The resource version, which changes with every change of the pod.
        ready: All containers of the pod run.
        is_terminating: The pod is being deleted.
        end_reason: Why the pod will never run again; empty while it may.
        obstacle: Why the pod does not run yet.
    """

    name: str
    uid: str
    version: str
    ready: bool = False
    is_terminating: bool = False
    end_reason: str = ""
    obstacle: StartObstacle | None = None
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)

    @property
    def reap_by(self) -> float | None:
        return parse_timestamp(self.annotations.get(REAP_BY_ANNOTATION, ""))

    @property
    def session_id(self) -> str:
        """The session whose reply the pod waits for; empty unless it lingers."""
        return self.annotations.get(SESSION_LABEL, "") if SESSION_LABEL in self.labels else ""

    @property
    def held_for(self) -> str:
        """The session that the pod works for; empty if nobody said."""
        return self.annotations.get(HELD_FOR_LABEL, "") if HELD_FOR_LABEL in self.labels else ""

    @property
    def is_lingering(self) -> bool:
        return SESSION_LABEL in self.labels

    @property
    def is_usable(self) -> bool:
        return self.ready and not self.is_terminating and not self.end_reason

    @property
    def was_never_claimed(self) -> bool:
        """Whether nobody ever claimed the pod. False for a used pod that was put back into the pool by hand."""
        return not {REAP_BY_ANNOTATION, SESSION_LABEL, CLAIMED_BY_ANNOTATION} & (
            self.labels.keys() | self.annotations.keys()
        )


def parse_pod(raw: Any) -> PodStatus:
    """Convert the API's description of a pod. Raises SandboxBroken for anything else."""
    try:
        return _pod_from_raw(msgspec.convert(raw, RawPod, strict=True))
    except msgspec.MsgspecError as error:
        raise SandboxBroken(
            f"The cluster's description of a pod cannot be read ({error}): is the server in your kubeconfig a "
            "Kubernetes API?"
        ) from error


def _pod_from_raw(raw: RawPod) -> PodStatus:
    status, metadata = raw.status, raw.metadata
    containers = status.container_statuses or []
    return PodStatus(
        name=metadata.name,
        uid=metadata.uid,
        version=metadata.resource_version,
        ready=status.phase == "Running" and bool(containers) and all(each.ready for each in containers),
        is_terminating=metadata.deletion_timestamp is not None,
        end_reason=_end_reason(status),
        obstacle=_find_obstacle(status),
        labels=metadata.labels or {},
        annotations=metadata.annotations or {},
    )


def _end_reason(status: RawPodStatus) -> str:
    if status.phase not in {"Failed", "Succeeded"}:
        return ""
    ends = [each.state.terminated for each in status.container_statuses or () if each.state and each.state.terminated]
    last = ends[0] if ends else RawContainerReason()
    reason = status.reason or last.reason or status.phase
    said = _END_SENTENCES.get(reason, f"it ended ({reason})")
    # Of a container that ran, the message is what its commands wrote to /dev/termination-log: words of strangers.
    of_runtime = last.message if last.reason in _NEVER_RAN else ""
    message = shorten_line(status.message or of_runtime or "", 300).rstrip(".")
    return f"{said}: {message}" if message else said


def _find_obstacle(status: RawPodStatus) -> StartObstacle | None:
    for each in status.container_statuses or ():
        waiting = each.state.waiting if each.state else None
        if waiting is not None and waiting.reason not in _NORMAL_REASONS:
            return _obstacle_from_reason(waiting)
    for condition in status.conditions or ():
        if condition.type == "PodScheduled" and condition.status == "False":
            said = shorten_line(condition.message or condition.reason or "", 300).rstrip(".")
            return StartObstacle(
                "Unschedulable", f"no node can take it ({said}); add nodes or ask for less in `resources`"
            )
    return None


def _obstacle_from_reason(waiting: RawContainerReason) -> StartObstacle:
    reason, said = waiting.reason or "", shorten_line(waiting.message or "", 300).rstrip(".")
    if reason in _PULL_REASONS:
        what = f"its image cannot be pulled ({reason}: {said}); check `image` and the namespace's pull secrets"
    elif "root" in said or "non-root" in said:
        what = f"its image runs as root ({said}); give the image a numeric USER, such as 65532"
    else:
        what = f"its container cannot be started ({reason}: {said})"
    return StartObstacle(reason, what, _PATIENCE_BY_REASON.get(reason, 0.0))


MERGE_PATCH = "application/merge-patch+json"
_PAGE_SIZE = 500
# Errors of the layers below httpx2 that it lets through; RuntimeError is what it raises after the client was closed.
_TRANSPORT_ERRORS = (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, RuntimeError)


class PodGoneError(SandboxBroken):
    """There is no such pod, or another pod has that name."""


class PodConflictError(SandboxBroken):
    """Somebody changed the pod since we read it. Nothing was done."""


class ClusterUnreachableError(SandboxBroken):
    """The cluster did not confirm the request, so the outcome is unknown. Worth another try."""


class PodApi:
    """The pods of one namespace. Connects with the first request; cannot be used after `close`."""

    def __init__(self, found: ClusterAccess) -> None:
        self._access = found
        self._client: httpx2.AsyncClient | None = None
        self._closed = False

    @property
    def namespace(self) -> str:
        return self._access.namespace

    async def create(self, manifest: JsonObject) -> PodStatus:
        """Create a pod.

        Raises SandboxUnavailable, ClusterUnreachableError, or PodConflictError when a pod of that name exists.
        """
        return parse_pod(await self._request("create", "POST", body=manifest))

    async def get(self, name: str) -> PodStatus:
        """Return the pod. Raises PodGoneError, SandboxUnavailable, ClusterUnreachableError."""
        return parse_pod(await self._request("get", "GET", name))

    async def list(self, selector: Mapping[str, str]) -> list[PodStatus]:
        """Return the pods that have all these labels. Raises SandboxUnavailable, ClusterUnreachableError."""
        query = {
            "labelSelector": ",".join(f"{key}={value}" for key, value in selector.items()),
            "limit": str(_PAGE_SIZE),
        }
        found: list[PodStatus] = []
        while True:
            page = await self._request("list", "GET", query=query)
            found += [parse_pod(each) for each in page.get("items") or ()]
            more = (page.get("metadata") or {}).get("continue")
            if not more:
                return found
            query["continue"] = more

    async def patch(self, pod: PodStatus, changes: JsonObject, *, unchanged: bool) -> PodStatus:
        """Merge `changes` into the pod's metadata, if it is still the same pod.

        With `unchanged`, do it only if nobody has changed the pod since we read it. Raises PodGoneError,
        PodConflictError, SandboxUnavailable, ClusterUnreachableError.
        """
        known = {"uid": pod.uid, "resourceVersion": pod.version} if unchanged else {"uid": pod.uid}
        return parse_pod(await self._request("patch", "PATCH", pod.name, body={"metadata": {**changes, **known}}))

    async def delete(self, name: str, uid: str = "", version: str = "") -> None:
        """Delete the pod at once, without a grace period.

        With `uid`, delete only that very pod; with `version`, only if nobody has changed it since we read it. Raises
        PodGoneError, PodConflictError, SandboxUnavailable, ClusterUnreachableError.
        """
        known = {"uid": uid, "resourceVersion": version}
        options: JsonObject = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
        if preconditions := {key: value for key, value in known.items() if value}:
            options["preconditions"] = preconditions
        await self._request("delete", "DELETE", name, body=options)

    async def close(self) -> None:
        self._closed = True
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _request(
        self,
        verb: str,
        method: str,
        name: str = "",
        *,
        body: JsonObject | None = None,
        query: Mapping[str, str] | None = None,
    ) -> Any:
        path = f"/api/v1/namespaces/{quote(self.namespace, safe='')}/pods" + (
            f"/{quote(name, safe='')}" if name else ""
        )
        headers = {"Content-Type": MERGE_PATCH if method == "PATCH" else "application/json"}
        content = None if body is None else json.dumps(body).encode()
        client = self._get_client()
        try:
            with translate_cluster_errors():  # the client fetches credentials with the request
                async with asyncio.timeout(API_TIMEOUT_S):
                    response = await client.request(method, path, params=query, content=content, headers=headers)
        except (TimeoutError, httpx2.HTTPError, httpx2.InvalidURL, *_TRANSPORT_ERRORS) as error:
            raise self._connection_error(error) from error
        if not response.is_success:
            raise self._response_error(verb, response.status_code, response.content)
        return _decode_json(response.content)

    def _get_client(self) -> httpx2.AsyncClient:
        if self._closed:
            raise ClusterUnreachableError("The connection to the cluster was closed: start a new sandbox.")
        if self._client is None:
            self._client = create_client(self._access)
        return self._client

    def _connection_error(self, error: Exception) -> HummingbirdError:
        said = shorten_line(str(error) or type(error).__name__, 200)
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            return SandboxUnavailable(
                f"The certificate of {self._access.server} is not trusted: set certificate-authority "
                "in the kubeconfig, "
                f"or ca_bundle ({said})."
            )
        return ClusterUnreachableError(
            f"The cluster at {self._access.server} does not answer ({said}): check that it is up and that this machine "
            "reaches it."
        )

    def _response_error(self, verb: str, code: int, content: bytes) -> HummingbirdError:
        status = _decode_json(content, {})
        status = status if isinstance(status, dict) else {}
        said = shorten_line(str(status.get("message") or f"HTTP {code}"), ERROR_TEXT_CHARS).rstrip(".")
        if code == 401:
            return SandboxUnavailable(
                f"The cluster at {self._access.server} does not accept your credentials: log in again ({said})."
            )
        if code == 403:
            return SandboxUnavailable(_forbidden_message(verb, self.namespace, said))
        if code == 404 and verb == "create":
            return SandboxUnavailable(
                f"There is no namespace {self.namespace}: create it or name another one ({said})."
            )
        if code == 404 or (code == 422 and verb == "patch" and _is_uid_conflict(status)):
            return PodGoneError(f"The pod is gone ({said}). Start a new sandbox.")
        if code == 409:
            return PodConflictError(f"Somebody else changed the pod first ({said}). Try again.")
        if code in {400, 405, 413, 415, 422}:
            return SandboxUnavailable(
                f"The cluster refuses to {verb} a sandbox's pod: fix image, resources and metadata in the settings "
                f"({said})."
            )
        return ClusterUnreachableError(
            f"The cluster at {self._access.server} is in trouble: try again ({code}: {said})."
        )


def _forbidden_message(verb: str, namespace: str, said: str) -> str:
    if "violates PodSecurity" in said or "security context constraint" in said:
        return (
            f"The security policy of the namespace {namespace} refuses a sandbox's pod, although it is hardened: a "
            f"webhook changes the pod, or the policy demands more. Check its labels and webhooks ({said})."
        )
    if "quota" in said:
        return (
            f"The quota of the namespace {namespace} is used up: wait until other sandboxes end, raise it, or ask for "
            f"less in `resources` ({said})."
        )
    return (
        f"You may not {verb} pods in the namespace {namespace}: bind the role hummingbird-sandboxes there (pods: "
        f"create, get, list, delete, patch; pods/exec: create, get) ({said})."
    )


def _is_uid_conflict(status: JsonObject) -> bool:
    """Return whether a patch was refused because it names another pod's uid, which would change the uid."""
    causes = (status.get("details") or {}).get("causes") or ()
    return any(isinstance(cause, dict) and cause.get("field") == "metadata.uid" for cause in causes)


def _decode_json(content: bytes, otherwise: JsonObject | None = None) -> Any:
    try:
        return json.loads(content)
    except ValueError as error:
        if otherwise is not None:
            return otherwise
        raise ClusterUnreachableError("The cluster's answer is not JSON: is a proxy between you and it?") from error
