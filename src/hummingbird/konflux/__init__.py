"""The Konflux source: five tools that read PipelineRuns, TaskRuns, Pods and logs from a cluster and from KubeArchive.

The tools only read; nothing here writes to a cluster.
"""

import re
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from hummingbird.core.errors import UsageError
from hummingbird.core.text import shorten_line

_TENANT = re.compile(r"/ns/([a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)/?")
_API = re.compile(r"(?:api\.)?([-a-z0-9]+(?:\.[-a-z0-9]+)*\.[a-z][-a-z0-9]*)")  # no IP address


@dataclass(frozen=True, slots=True)
class KonfluxSettings:
    """What an operator writes.

    Attributes:
        cluster_url: API server and tenant, such as https://api.cluster.example:6443/ns/TENANT.
        kubeconfig: A file; empty for the usual one.
        context: A context of the kubeconfig; empty for the one of that server.
        kubearchive_url: Address of KubeArchive, which may have a path before /apis; without it, only the cluster is
            asked.
        ui_url: Address of the web interface, where it cannot be derived from the cluster's.
        ca_bundle: A file with certificate authorities.
    """

    cluster_url: str
    kubeconfig: str = ""
    context: str = ""
    kubearchive_url: str = ""
    ui_url: str = ""
    ca_bundle: str = ""


@dataclass(frozen=True, slots=True)
class KonfluxTenant:
    """Addresses of one tenant, without a slash at their end. `archive` and `ui` may be empty."""

    server: str
    namespace: str
    archive: str
    ui: str


def parse_tenant(settings: KonfluxSettings) -> KonfluxTenant:
    """Derive the tenant from the settings. Raises UsageError."""
    address = _parse_address("cluster_url", settings.cluster_url)
    found = _TENANT.fullmatch(address.path)
    if found is None:
        raise UsageError(
            "Konflux's cluster_url must end in the tenant's path: write it like "
            f"https://api.cluster.example:6443/ns/TENANT, not {shorten_line(settings.cluster_url, 200)!r}."
        )
    archive = _parse_address("kubearchive_url", settings.kubearchive_url).geturl() if settings.kubearchive_url else ""
    return KonfluxTenant(
        server=f"{address.scheme}://{address.netloc}",
        namespace=found[1],
        archive=archive.rstrip("/"),
        ui=_ui_address(settings.ui_url, address, found[1]),
    )


def _ui_address(ui_url: str, cluster: SplitResult, namespace: str) -> str:
    if ui_url:
        wanted = _parse_address("ui_url", ui_url).geturl().rstrip("/")
        return wanted if _TENANT.search(urlsplit(wanted).path) else f"{wanted}/ns/{namespace}"
    api = _API.fullmatch(cluster.hostname or "")
    return f"https://konflux-ui.apps.{api[1]}/ns/{namespace}" if api else ""


def _parse_address(name: str, url: str) -> SplitResult:
    try:
        address = urlsplit(url)
        sound = address.scheme in {"http", "https"} and bool(address.hostname) and address.port != 0
        if sound and not (set(url) & set("@?#\\ ")) and url.isprintable():
            return address
    except ValueError:
        pass
    raise UsageError(
        f"Konflux's {name} must be an address like https://host.example:6443/path, without a user, a question mark or "
        "a fragment: fix it."
    )
