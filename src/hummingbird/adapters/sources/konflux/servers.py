"""Opens the doors to the cluster and to KubeArchive, with the kubeconfig's credentials, when they are first needed.

Credentials go to the two addresses that the operator wrote down and nowhere else: each client adds them for its own
server alone, and redirects to another one are not followed.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx2

from hummingbird.adapters.clusters.client import fixed_secrets, made_client, made_neighbour_client, moved
from hummingbird.adapters.clusters.kubeconfig import Found, Sought, find, origin
from hummingbird.adapters.sources.http.reader import Reader
from hummingbird.adapters.sources.konflux.door import Door
from hummingbird.adapters.sources.konflux.settings import KonfluxSettings, Tenant
from hummingbird.domain.errors import ClusterUnusable

# under which a pod knows the cluster that it runs in
_OWN_CLUSTER = frozenset({"kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "kubernetes.default"})


@dataclass(frozen=True, slots=True)
class Doors:
    """`archive` is None where none is configured."""

    cluster: Door
    archive: Door | None

    @property
    def live_first(self) -> tuple[Door, ...]:
        return (self.cluster, self.archive) if self.archive else (self.cluster,)

    @property
    def archive_first(self) -> tuple[Door, ...]:
        return self.live_first[::-1]


class Servers:
    """After `close` they may be opened anew."""

    def __init__(
        self,
        settings: KonfluxSettings,
        tenant: Tenant,
        environment: Mapping[str, str],
        reading: Callable[[httpx2.AsyncClient], Reader],
    ) -> None:
        self._settings = settings
        self._tenant = tenant
        self._environment = environment
        self._reading = reading
        self._clients: list[httpx2.AsyncClient] = []
        self._doors: Doors | None = None
        self._opening = asyncio.Lock()

    async def doors(self) -> Doors:
        """Raises ClusterUnusable."""
        async with self._opening:
            if self._doors is None:
                self._doors = await asyncio.to_thread(self._opened)  # files are read
            return self._doors

    def secrets(self) -> tuple[str, ...]:
        """Of a kubeconfig that cannot be used there are none."""
        try:
            return fixed_secrets(self._found())
        except ClusterUnusable:
            return ()

    async def close(self) -> None:
        clients, self._clients, self._doors = self._clients, [], None
        for client in clients:
            await client.aclose()

    def _found(self) -> Found:
        chosen = self._settings
        sought = Sought(chosen.kubeconfig, chosen.context, chosen.ca_bundle, server=self._tenant.server)
        found = meant_for(self._tenant.server, find(sought, self._environment), self._environment)
        if not (chosen.kubeconfig or chosen.context or found.in_cluster):
            refuse_strangers(self._tenant.server, found)
        return moved(found, self._tenant.server, chosen.ca_bundle)

    def _opened(self) -> Doors:
        found, tenant = self._found(), self._tenant
        client = made_client(found)
        self._clients.append(client)
        cluster = Door("the cluster", self._reading(client), tenant.server, tenant.namespace)
        if not tenant.archive:
            return Doors(cluster, None)
        if origin(tenant.archive) != origin(tenant.server):
            client = made_neighbour_client(found, tenant.archive, self._settings.ca_bundle)
            self._clients.append(client)
        return Doors(cluster, Door("KubeArchive", self._reading(client), tenant.archive, tenant.namespace))


def refuse_strangers(server: str, found: Found) -> None:
    """A kubeconfig that just lies there may be for another cluster, whose token would be shown to this one. Raises
    ClusterUnusable."""
    if found.server != origin(server):
        raise ClusterUnusable(
            f"The usual kubeconfig has no context for {origin(server)}, and the token of its current one is for "
            "another cluster: log in to that cluster, or name a kubeconfig or a context for Konflux."
        )


def meant_for(server: str, found: Found, environment: Mapping[str, str]) -> Found:
    """The same, unless it is our own pod's account and the server another cluster's. Raises ClusterUnusable."""
    own = _OWN_CLUSTER | {environment.get("KUBERNETES_SERVICE_HOST", "").lower()}
    if found.in_cluster and urlsplit(server).hostname not in own:
        raise ClusterUnusable(
            f"There is no kubeconfig for {origin(server)}, and this pod's own service account is not shown to another "
            "cluster: name a kubeconfig for Konflux."
        )
    return found
