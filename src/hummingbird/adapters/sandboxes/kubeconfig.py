"""Which cluster, as whom, in which namespace (X5): found the way kubectl finds it, so that the two never differ.

lightkube reads the files and knows certificates and tokens. It would prefer the service account of its own pod to the
operator's KUBECONFIG, and read one file of several; kubectl does neither, so both are decided here.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import msgspec
from lightkube.config.client_adapter import user_auth, verify_cluster
from lightkube.config.kubeconfig import KubeConfig, SingleConfig
from lightkube.config.models import Cluster, User
from lightkube.core.exceptions import ConfigError

from hummingbird.adapters.sandboxes.asked_credential import AskedCredential
from hummingbird.domain.errors import SandboxUnavailable
from hummingbird.domain.limits import API_TIMEOUT_S
from hummingbird.domain.text import shortened

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
CARRIED = (
    "PATH",
    "HOME",
    "KUBECONFIG",
    "KUBERNETES_SERVICE_HOST",
    "KUBERNETES_SERVICE_PORT",
    *(name for pair in ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY") for name in (pair, pair.lower())),
)


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
    """`config` is lightkube's. `environment`: all that other programs may know of ours."""

    config: SingleConfig
    namespace: str
    environment: Mapping[str, str]
    in_cluster: bool = False

    @property
    def server(self) -> str:
        """For people: of an address that may hold more, the part that holds no secret."""
        address = urlsplit(self.config.cluster.server)
        return f"{address.scheme}://{address.netloc.rpartition('@')[2]}"


def find(site: Site, environment: Mapping[str, str], service_account: Path = SERVICE_ACCOUNT) -> Found:
    """Raises SandboxUnavailable."""
    carried = {name: environment[name] for name in CARRIED if name in environment}
    files = _files(site, environment)
    if not files and not site.context and "KUBERNETES_SERVICE_HOST" in environment:
        config = _trusting(_own_account(service_account, environment), site.ca_bundle)
        # the namespace of our own pod is not the sandboxes': only a context's namespace was chosen by somebody
        return Found(config, _namespace(site, None), carried, in_cluster=True)
    if not files:
        raise SandboxUnavailable(
            "There is no kubeconfig: set KUBECONFIG, log in to a cluster so that ~/.kube/config is written, or run "
            "inside one."
        )
    config = _trusting(_chosen(_merged(files), site.context), site.ca_bundle)
    return Found(config, _namespace(site, config), carried)


def _files(site: Site, environment: Mapping[str, str]) -> list[Path]:
    if site.kubeconfig:
        return [Path(site.kubeconfig).expanduser()]
    if listed := environment.get("KUBECONFIG", ""):
        named = [Path(each) for each in listed.split(os.pathsep) if each]
        return [each for each in named if each.is_file()] or named[:1]
    usual = Path(environment.get("HOME", "/nonexistent")) / ".kube" / "config"
    return [usual] if usual.is_file() else []


def _merged(files: list[Path]) -> KubeConfig:
    """Of two that have the same name, the first one counts."""
    read = [_read(file) for file in files]
    return KubeConfig(
        clusters={name: each for config in reversed(read) for name, each in config.clusters.items()},
        users={name: each for config in reversed(read) for name, each in config.users.items()},
        contexts={name: each for config in reversed(read) for name, each in config.contexts.items()},
        current_context=next((config.current_context for config in read if config.current_context), None),
    )


def _read(file: Path) -> KubeConfig:
    try:
        config = KubeConfig.from_file(file)
    except Exception as error:  # whatever YAML and lightkube make of a file that is none
        raise SandboxUnavailable(f"The kubeconfig {file} cannot be read: mend it ({_said(error)}).") from error
    config.clusters = {name: _whole_cluster(each, file.parent) for name, each in config.clusters.items()}
    config.users = {name: _whole_user(each, file.parent) for name, each in config.users.items()}
    return config


def _whole_cluster(cluster: Cluster, folder: Path) -> Cluster:
    return msgspec.structs.replace(cluster, certificate_auth=_under(folder, cluster.certificate_auth))


def _whole_user(user: User, folder: Path) -> User:
    return msgspec.structs.replace(
        user,
        token_file=_under(folder, user.token_file),
        client_cert=_under(folder, user.client_cert),
        client_key=_under(folder, user.client_key),
    )


def _under(folder: Path, path: str | None) -> str | None:
    return str(folder / path) if path else path


def _chosen(config: KubeConfig, context: str) -> SingleConfig:
    try:
        found = config.get(context or None)
    except (ConfigError, KeyError) as error:
        raise SandboxUnavailable(
            f"The kubeconfig has no usable context {context or config.current_context or ''!r}: choose one of "
            f"{', '.join(sorted(config.contexts)) or 'none'} with --context ({_said(error)})."
        ) from error
    assert found is not None
    _check_address(found)
    return found


def _check_address(config: SingleConfig) -> None:
    try:
        if urlsplit(config.cluster.server).scheme in {"http", "https"}:
            return
    except ValueError:
        pass
    raise SandboxUnavailable(
        f"The server of the context {config.context_name!r} is no address: write it like https://cluster.example:6443."
    )


def _own_account(folder: Path, environment: Mapping[str, str]) -> SingleConfig:
    host, port = environment["KUBERNETES_SERVICE_HOST"], environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not (folder / "token").is_file():
        raise SandboxUnavailable(
            "This pod has no service account's token and there is no kubeconfig: give the pod a service account, or "
            "set KUBECONFIG."
        )
    cluster = Cluster(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}", certificate_auth=str(folder / "ca.crt")
    )
    config = KubeConfig.from_one(cluster=cluster, user=User(token_file=str(folder / "token"))).get()
    assert config is not None
    return config


def _trusting(config: SingleConfig, ca_bundle: str) -> SingleConfig:
    cluster = config.cluster
    if not ca_bundle or cluster.insecure or cluster.certificate_auth or cluster.certificate_auth_data:
        return config
    return config._replace(cluster=msgspec.structs.replace(cluster, certificate_auth=ca_bundle))


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
    """Raises SandboxUnavailable. Proxies are the environment's, as they are kubectl's."""
    config = found.config
    user = config.user or User()
    try:
        auth = AskedCredential(user.exec, found.environment) if user.exec else user_auth(user)
        verify = verify_cluster(config.cluster, user, config.abs_file)
        return httpx2.AsyncClient(base_url=config.cluster.server, auth=auth, verify=verify, timeout=API_TIMEOUT_S)
    except (ConfigError, OSError, ValueError, httpx2.InvalidURL) as error:
        raise SandboxUnavailable(
            f"The kubeconfig's entry for {found.server} cannot be used: mend its certificates, keys and address "
            f"({_said(error)})."
        ) from error


def _said(error: Exception) -> str:
    return shortened(str(error) or type(error).__name__, 200)
