"""Where Konflux is (D5): what an operator writes, and what follows from it. Nothing is read or asked here."""

import re
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from hummingbird.domain.errors import UsageFault
from hummingbird.domain.text import shortened

_TENANT = re.compile(r"/ns/([a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)/?")
_API = re.compile(r"api\.([-a-z0-9]+(?:\.[-a-z0-9]+)+)")


@dataclass(frozen=True, slots=True)
class KonfluxSettings:
    """`cluster_url` is the API server and the tenant, https://api.cluster.example:6443/ns/TENANT. `kubeconfig` empty
    means the usual one, `context` empty the one of that server. Without `kubearchive_url` the cluster alone is asked;
    it may have a path before /apis. `ui_url` is for where the web interface cannot be derived from the cluster."""

    cluster_url: str
    kubeconfig: str = ""
    context: str = ""
    kubearchive_url: str = ""
    ui_url: str = ""
    ca_bundle: str = ""


@dataclass(frozen=True, slots=True)
class Tenant:
    """`server` and `archive` are addresses without a slash at their end; `archive` and `ui` may be empty."""

    server: str
    namespace: str
    archive: str
    ui: str


def tenant(settings: KonfluxSettings) -> Tenant:
    """Raises UsageFault."""
    address = _address("cluster_url", settings.cluster_url)
    found = _TENANT.fullmatch(address.path)
    if found is None:
        raise UsageFault(
            "Konflux's cluster_url must end in the tenant's path: write it like "
            f"https://api.cluster.example:6443/ns/TENANT, not {shortened(settings.cluster_url, 200)!r}."
        )
    archive = _address("kubearchive_url", settings.kubearchive_url).geturl() if settings.kubearchive_url else ""
    return Tenant(
        server=f"{address.scheme}://{address.netloc}",
        namespace=found[1],
        archive=archive.rstrip("/"),
        ui=_ui(settings.ui_url, address, found[1]),
    )


def _ui(ui_url: str, cluster: SplitResult, namespace: str) -> str:
    if ui_url:
        wanted = _address("ui_url", ui_url).geturl().rstrip("/")
        return wanted if _TENANT.search(urlsplit(wanted).path) else f"{wanted}/ns/{namespace}"
    api = _API.fullmatch(cluster.hostname or "")
    return f"https://konflux-ui.apps.{api[1]}/ns/{namespace}" if api else ""


def _address(name: str, url: str) -> SplitResult:
    try:
        address = urlsplit(url)
        sound = address.scheme in {"http", "https"} and bool(address.hostname) and address.port != 0
        if sound and not (set(url) & set("@?#\\ ")) and url.isprintable():
            return address
    except ValueError:
        pass
    raise UsageFault(
        f"Konflux's {name} must be an address like https://host.example:6443/path, without a user, a question mark or "
        "a fragment: mend it."
    )
