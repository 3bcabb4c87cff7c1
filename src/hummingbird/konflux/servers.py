"""Reads lists, objects and logs from the cluster and from KubeArchive, which has the same paths.

Connections are opened when they are first needed, with the kubeconfig's credentials. These go only to the two addresses
that the operator configured: each client adds them for its own server, and redirects to another one are not followed.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

import httpx2

from hummingbird.clients.kubeconfig import ClusterConfig, ClusterQuery, find_cluster, origin_of
from hummingbird.clients.kubernetes_client import (
    create_cluster_client,
    create_neighbour_client,
    static_secrets,
    with_server,
)
from hummingbird.clients.url_fetch import FetchedResponse, FetchRefused, UrlFetcher
from hummingbird.core.errors import (
    ClusterUnusable,
    CredentialRefused,
    HummingbirdError,
    SourceError,
    SourceNotFound,
    SourceRefused,
    SourceResponseInvalid,
)
from hummingbird.core.limits import (
    KONFLUX_LOG_BYTES,
    KONFLUX_OBJECT_BYTES,
    KONFLUX_PAGE,
    KONFLUX_PAGE_BYTES,
    KONFLUX_PAGES,
)
from hummingbird.konflux.list_page import KubernetesListPage
from hummingbird.konflux.objects import JsonObject
from hummingbird.konflux.settings import KonfluxSettings, KonfluxTenant, parse_tenant

GROUPS = {"pipelineruns": "apis/tekton.dev/v1", "taskruns": "apis/tekton.dev/v1", "pods": "api/v1"}
SERVER_ERRORS = (SourceError, CredentialRefused, ClusterUnusable)  # after these, the other server may still answer
_JSON = {"Accept": "application/json"}
_STATUS_REASON = re.compile(r"[A-Z][A-Za-z]{2,39}")  # Forbidden, BadRequest: from the API server, never from a user
_NO_HEADER = re.compile(r"\bauthorization (?:header|bearer token)\b", re.IGNORECASE)
_LIST_CHANGED = "The list changed while it was read."
_INCONSISTENT = " It was read on and may be inconsistent: objects that came or went meanwhile may be missing."


class ListTokenExpired(SourceRefused):
    """410: the token of a page is too old. `fresh_token` continues from the same place, if there is one."""

    def __init__(self, sentence: str, fresh: str) -> None:
        super().__init__(sentence)
        self.fresh_token = fresh


class KonfluxServer:
    """One of the two servers. `name` is how messages call it: "the cluster" or "KubeArchive"."""

    def __init__(self, name: str, reader: UrlFetcher, address: str, namespace: str) -> None:
        self.name = name
        self._title = name[:1].upper() + name[1:]
        self._reader = reader
        self._address = address
        self._namespace = namespace

    async def list_items(self, resource: str, selector: str, gaps: list[str]) -> AsyncGenerator[JsonObject, None]:
        """Yield all items of all pages, and add a message to `gaps` for what is missing.

        If nothing came at all, raise CredentialRefused, ClusterUnusable or a SourceError instead.
        """
        token, seen, came = "", {""}, False
        for _ in range(KONFLUX_PAGES):
            page = KubernetesListPage()
            try:
                async with aclosing(self._read_page(page, resource, selector, token)) as items:
                    async for item in items:
                        came = True
                        yield item
                token = page.continue_token
            except ListTokenExpired as error:
                gaps.append(f"{self._list_name(resource)}: {error}")
                token = error.fresh_token
            except SERVER_ERRORS as error:
                if not came and not page.continue_token:
                    raise
                rest = (
                    "The rest of that page is missing." if page.continue_token else "The rest of the list is missing."
                )
                gaps.append(f"{self._list_name(resource)}: {error} {rest}")
                token = page.continue_token
            if page.skipped:
                gaps.append(f"{self._list_name(resource)}: {page.skipped} items could not be read and were left out.")
            if token in seen:
                if token:
                    gaps.append(f"{self._list_name(resource)}: the list leads in a circle, so its rest was not read.")
                return
            seen.add(token)
        gaps.append(f"{self._list_name(resource)}: the list has over {KONFLUX_PAGES} pages; its rest was not read.")

    async def _read_page(
        self, page: KubernetesListPage, resource: str, selector: str, token: str
    ) -> AsyncGenerator[JsonObject, None]:
        query = {"labelSelector": selector, "limit": str(KONFLUX_PAGE), **({"continue": token} if token else {})}
        async with self._open(resource, query=query, most_bytes=KONFLUX_PAGE_BYTES) as answer:
            async with aclosing(answer.chunks()) as chunks:
                try:
                    async for chunk in chunks:
                        for item in page.feed(chunk):
                            yield item
                except SourceError:
                    for item in page.remaining_items():
                        yield item
                    raise
            for item in page.end():
                yield item

    async def get_object(self, resource: str, name: str) -> JsonObject:
        """Return one object. Raises SourceNotFound, CredentialRefused, ClusterUnusable, SourceError."""
        async with self._open(resource, name, most_bytes=KONFLUX_OBJECT_BYTES) as answer:
            found = _decode_json(await answer.read_all())
        if not isinstance(found, dict):
            raise SourceResponseInvalid(
                f"{self._title} answered with something that is not a JSON object. Ask for something else."
            )
        return found

    @asynccontextmanager
    async def open_log(self, pod: str, container: str) -> AsyncIterator[FetchedResponse]:
        """Open a log; without a container, KubeArchive chooses one. Raises the same errors as `get_object`."""
        query = {"container": container} if container else {}
        async with self._open("pods", pod, log=True, query=query, most_bytes=KONFLUX_LOG_BYTES) as answer:
            if "html" in answer.headers.get("content-type", "").lower():
                raise SourceResponseInvalid(
                    f"{self._title} answered with a web page in place of a log, as a login in front of it would: the "
                    "operator must set the address of the server itself."
                )
            yield answer

    @asynccontextmanager
    async def _open(
        self,
        resource: str,
        name: str = "",
        *,
        log: bool = False,
        query: Mapping[str, str] | None = None,
        most_bytes: int,
    ) -> AsyncIterator[FetchedResponse]:
        parts = ["namespaces", self._namespace, resource, *filter(None, (name, "log" if log else ""))]
        path = "/".join([GROUPS[resource], *(quote(part, safe="") for part in parts)])
        headers = {} if log else _JSON  # servers do not negotiate the type of a log
        try:
            async with self._reader.open(
                f"{self._address}/{path}", params=query, headers=headers, most_bytes=most_bytes
            ) as answer:
                yield answer
        except FetchRefused as refused:
            raise self._error_from_refusal(refused, resource, name, log=log) from refused

    def _error_from_refusal(self, refused: FetchRefused, resource: str, name: str, *, log: bool) -> HummingbirdError:
        """Return an error in our words, because an outsider may have chosen names that the server's own text quotes."""
        status = _decode_json(refused.body)
        status = status if isinstance(status, dict) else {}
        reason = status.get("reason")
        known = isinstance(reason, str) and _STATUS_REASON.fullmatch(reason)
        said = f"{refused.status} {reason}" if known else f"{refused.status}"
        if refused.status in {401, 403} or (refused.status == 400 and _wants_credential(status)):
            return CredentialRefused(
                f"{self._title} does not let us read {resource} in the tenant {self._namespace} ({said}): "
                "the operator must log in again, or grant get and list there."
            )
        if refused.status == 404:
            what = f"{resource.removesuffix('s')} {name}" if name else resource
            what = f"log of the {what}" if log else what
            return SourceNotFound(f"{self._title} has no {what} in the tenant {self._namespace} ({said}).")
        if refused.status == 410:
            metadata = status.get("metadata")
            fresh = str(metadata.get("continue") or "") if isinstance(metadata, dict) else ""
            return ListTokenExpired(_LIST_CHANGED + (_INCONSISTENT if fresh else " The rest of it is missing."), fresh)
        hint = " Is there such a container in the pod, and has it begun? The pod itself says." if log else ""
        return SourceRefused(f"{self._title} refuses this request ({said}).{hint}")

    def _list_name(self, resource: str) -> str:
        return f"{self._title}, {resource}"


def _decode_json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _wants_credential(status: Mapping[str, Any]) -> bool:
    """Return whether KubeArchive asks for a credential: its errors have only a message, a cluster's have a kind."""
    return "kind" not in status and _NO_HEADER.search(str(status.get("message") or "")) is not None


# names by which a pod reaches the cluster that it runs in
_OWN_CLUSTER = frozenset({"kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "kubernetes.default"})


@dataclass(frozen=True, slots=True)
class KonfluxServers:
    """Both servers; `archive` is None where none is configured."""

    cluster: KonfluxServer
    archive: KonfluxServer | None

    @property
    def live_first(self) -> tuple[KonfluxServer, ...]:
        return (self.cluster, self.archive) if self.archive else (self.cluster,)

    @property
    def archive_first(self) -> tuple[KonfluxServer, ...]:
        return self.live_first[::-1]


class KonfluxConnections:
    """Opens the connections to both servers when they are needed; after `close` they can be opened again."""

    def __init__(
        self,
        settings: KonfluxSettings,
        tenant: KonfluxTenant,
        environment: Mapping[str, str],
        reading: Callable[[httpx2.AsyncClient], UrlFetcher],
    ) -> None:
        self._settings = settings
        self._tenant = tenant
        self._environment = environment
        self._reading = reading
        self._clients: list[httpx2.AsyncClient] = []
        self._servers: KonfluxServers | None = None
        self._connect_lock = asyncio.Lock()

    async def connect(self) -> KonfluxServers:
        """Return the servers. Raises ClusterUnusable."""
        async with self._connect_lock:
            if self._servers is None:
                self._servers = await asyncio.to_thread(self._open_servers)  # reads files
            return self._servers

    def secrets(self) -> tuple[str, ...]:
        """Return the kubeconfig's secrets; none if it cannot be used."""
        try:
            return static_secrets(self._find_cluster())
        except ClusterUnusable:
            return ()

    async def close(self) -> None:
        clients, self._clients, self._servers = self._clients, [], None
        for client in clients:
            await client.aclose()

    def _find_cluster(self) -> ClusterConfig:
        chosen = self._settings
        sought = ClusterQuery(chosen.kubeconfig, chosen.context, chosen.ca_bundle, server=self._tenant.server)
        found = check_service_account(self._tenant.server, find_cluster(sought, self._environment), self._environment)
        if not (chosen.kubeconfig or chosen.context or found.in_cluster):
            refuse_other_cluster(self._tenant.server, found)
        return with_server(found, self._tenant.server, chosen.ca_bundle)

    def _open_servers(self) -> KonfluxServers:
        found, tenant = self._find_cluster(), self._tenant
        client = create_cluster_client(found)
        self._clients.append(client)
        cluster = KonfluxServer("the cluster", self._reading(client), tenant.server, tenant.namespace)
        if not tenant.archive:
            return KonfluxServers(cluster, None)
        if origin_of(tenant.archive) != origin_of(tenant.server):
            client = create_neighbour_client(found, tenant.archive, self._settings.ca_bundle)
            self._clients.append(client)
        return KonfluxServers(
            cluster, KonfluxServer("KubeArchive", self._reading(client), tenant.archive, tenant.namespace)
        )


def refuse_other_cluster(server: str, found: ClusterConfig) -> None:
    """Raise ClusterUnusable if the usual kubeconfig is for another cluster, whose token this server must not see."""
    if found.server != origin_of(server):
        raise ClusterUnusable(
            f"The usual kubeconfig has no context for {origin_of(server)}, and the token of its current one is for "
            "another cluster: log in to that cluster, or name a kubeconfig or a context for Konflux."
        )


def check_service_account(server: str, found: ClusterConfig, environment: Mapping[str, str]) -> ClusterConfig:
    """Raise ClusterUnusable if only our pod's service account is there and the server belongs to another cluster."""
    own = _OWN_CLUSTER | {environment.get("KUBERNETES_SERVICE_HOST", "").lower()}
    if found.in_cluster and urlsplit(server).hostname not in own:
        raise ClusterUnusable(
            f"There is no kubeconfig for {origin_of(server)}, and this pod's own service account is "
            "not shown to another "
            "cluster: name a kubeconfig for Konflux."
        )
    return found


_MATCHES_NOTHING = "hummingbird/doctor=asks"


async def check_servers(settings: KonfluxSettings, environment: Mapping[str, str]) -> dict[str, str]:
    """Check for `hummingbird doctor` that each configured server can be read, with a short list request.

    Return, by the server's name, why it cannot be read, or an empty string. Raises UsageError, ClusterUnusable.
    """
    servers = KonfluxConnections(settings, parse_tenant(settings), environment, UrlFetcher)
    try:
        return {server.name: await _check_server(server) for server in (await servers.connect()).live_first}
    finally:
        await servers.close()


async def _check_server(server: KonfluxServer) -> str:
    gaps: list[str] = []
    try:
        async with aclosing(server.list_items("pipelineruns", _MATCHES_NOTHING, gaps)) as items:
            async for _ in items:
                break
    except HummingbirdError as error:
        return str(error)
    return gaps[0] if gaps else ""
