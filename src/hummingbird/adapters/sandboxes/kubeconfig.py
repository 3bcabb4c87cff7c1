"""Which cluster, as whom, in which namespace (X5), for sandboxes.

The first two are found by the room `clusters`, as kubectl finds them; the namespace is chosen here. What that room
cannot use is a sandbox that cannot be had.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
from lightkube.config.kubeconfig import SingleConfig

from hummingbird.adapters.clusters import client, kubeconfig
from hummingbird.adapters.clusters.kubeconfig import SERVICE_ACCOUNT, Sought
from hummingbird.domain.errors import ClusterUnusable, SandboxUnavailable


@dataclass(frozen=True, slots=True)
class Site:
    """What was asked for. `namespace` is the flag, `configured_namespace` the setting; `kubectl` a program to use
    instead of the one on the PATH; `ca_bundle` is for clusters whose kubeconfig names no authority."""

    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""
    configured_namespace: str = ""
    kubectl: str = ""
    ca_bundle: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """A cluster and the namespace in it."""

    place: kubeconfig.Found
    namespace: str

    @property
    def config(self) -> SingleConfig:
        return self.place.config

    @property
    def environment(self) -> Mapping[str, str]:
        return self.place.environment

    @property
    def in_cluster(self) -> bool:
        return self.place.in_cluster

    @property
    def server(self) -> str:
        return self.place.server


@contextmanager
def as_unavailable() -> Iterator[None]:
    """Around whatever asks the room `clusters`. Raises SandboxUnavailable."""
    try:
        yield
    except ClusterUnusable as error:
        raise SandboxUnavailable(str(error)) from error


def find(site: Site, environment: Mapping[str, str], service_account: Path = SERVICE_ACCOUNT) -> Found:
    """Raises SandboxUnavailable."""
    sought = Sought(kubeconfig=site.kubeconfig, context=site.context, ca_bundle=site.ca_bundle)
    with as_unavailable():
        place = kubeconfig.find(sought, environment, service_account)
    # the namespace of our own pod is not the sandboxes': only a context's namespace was chosen by somebody
    return Found(place, _namespace(site, None if place.in_cluster else place.config))


def _namespace(site: Site, config: SingleConfig | None) -> str:
    """The flag, then the context's, then the setting. A context that was asked for by name means a cluster for which
    the setting was not made."""
    of_context = config.context.namespace if config is not None else None
    found = site.namespace or of_context or ("" if site.context else site.configured_namespace)
    if not found:
        where = f"The context {site.context!r} names no namespace" if site.context else "No namespace is known"
        raise SandboxUnavailable(
            f"{where} for sandboxes: say --namespace, set it for the context (kubectl config set-context --current "
            "--namespace …), or set sandbox.namespace in the configuration."
        )
    return found


def made_client(found: Found) -> httpx2.AsyncClient:
    """Raises SandboxUnavailable."""
    with as_unavailable():
        return client.made_client(found.place)
