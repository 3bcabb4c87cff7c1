"""Find the cluster and the credentials in the kubeconfig, the same way as kubectl.

lightkube reads the entries and understands certificates and tokens. It would prefer the service account of its own pod
to the operator's KUBECONFIG, and read only one of several files; kubectl does neither, so both are decided here. A
caller that wants the pod's own account, as sandboxes do, says so. Namespaces are the caller's affair.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from lightkube.config.kubeconfig import KubeConfig, SingleConfig
from lightkube.config.models import Cluster, User, UserExec
from lightkube.core.exceptions import ConfigError

from hummingbird.clients.pod_environment import IN_POD_VARIABLE, runs_in_pod
from hummingbird.core.errors import ClusterUnusable
from hummingbird.core.text import shorten_line

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_KUBECONFIG_VARIABLES = ("KUBECONFIG", "HOME")  # kubectl also reads ~/.kube/config
PASSED_VARIABLES = (
    "PATH",
    "HOME",
    "KUBECONFIG",
    IN_POD_VARIABLE,
    "KUBERNETES_SERVICE_PORT",
    *(name for pair in ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY") for name in (pair, pair.lower())),
)


# Everything that YAML and lightkube may raise for a file that is not a kubeconfig
_UNREADABLE = (OSError, msgspec.MsgspecError, LookupError, TypeError, ValueError, AttributeError, RecursionError)


class ClusterEntry(Cluster, omit_defaults=True):
    """A cluster with the field that lightkube lacks: the name on the server's certificate, if it differs."""

    tls_server_name: str | None = msgspec.field(name="tls-server-name", default=None)


@dataclass(frozen=True, slots=True)
class ClusterQuery:
    """The cluster that the caller asks for.

    `ca_bundle` is for clusters whose kubeconfig names no authority. Without a context, a context of the cluster at
    `server` is preferred to the current one. With `prefer_own_account`, a caller in a pod that names neither file nor
    context gets the pod's service account, whatever KUBECONFIG says.
    """

    kubeconfig: str = ""
    context: str = ""
    ca_bundle: str = ""
    server: str = ""
    prefer_own_account: bool = False


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """The cluster that was found.

    `config` is lightkube's. `environment` holds the only variables of ours that other programs may see.
    """

    config: SingleConfig
    environment: Mapping[str, str]
    in_cluster: bool = False

    @property
    def server(self) -> str:
        """Return the origin of the cluster's address."""
        return origin_of(self.config.cluster.server)


def origin_of(address: str) -> str:
    """Return scheme, host and port of an address, for people and for comparing.

    Other parts of the address may hold a secret.
    """
    parts = urlsplit(address)
    host = parts.netloc.rpartition("@")[2].lower()
    usual = {"https": ":443", "http": ":80"}.get(parts.scheme, ":")
    return f"{parts.scheme}://{host.removesuffix(usual)}"


def find_cluster(
    sought: ClusterQuery, environment: Mapping[str, str], service_account: Path = SERVICE_ACCOUNT
) -> ClusterConfig:
    """Find the cluster and the credentials to use.

    Raises ClusterUnusable.
    """
    carried = {name: environment[name] for name in PASSED_VARIABLES if name in environment}
    files = [] if _wants_own_account(sought, environment) else _kubeconfig_files(sought, environment)
    if not files and not sought.context and runs_in_pod(environment):
        config = _with_ca_bundle(_service_account_config(service_account, environment), sought.ca_bundle)
        without = {name: value for name, value in carried.items() if name not in _KUBECONFIG_VARIABLES}
        return ClusterConfig(config, without, in_cluster=True)
    if not files:
        raise ClusterUnusable(
            "There is no kubeconfig: set KUBECONFIG, log in to a cluster so that ~/.kube/config is written, or run "
            "inside one."
        )
    merged = _merge_files(files)
    config = _select_context(merged, sought.context or _context_for_server(merged, sought.server))
    return ClusterConfig(_with_ca_bundle(config, sought.ca_bundle), carried)


def _wants_own_account(sought: ClusterQuery, environment: Mapping[str, str]) -> bool:
    return sought.prefer_own_account and not sought.kubeconfig and not sought.context and runs_in_pod(environment)


def _kubeconfig_files(sought: ClusterQuery, environment: Mapping[str, str]) -> list[Path]:
    if sought.kubeconfig:
        return [Path(sought.kubeconfig).expanduser()]
    if listed := environment.get("KUBECONFIG", ""):
        named = [Path(each) for each in listed.split(os.pathsep) if each]
        return [each for each in named if each.is_file()] or named[:1]
    usual = Path(environment.get("HOME", "/nonexistent")) / ".kube" / "config"
    return [usual] if usual.is_file() else []


def _merge_files(files: list[Path]) -> KubeConfig:
    """Merge several files; of two entries with the same name, the first counts."""
    read = [_read_file(file) for file in files]
    return KubeConfig(
        clusters={name: each for config in reversed(read) for name, each in config.clusters.items()},
        users={name: each for config in reversed(read) for name, each in config.users.items()},
        contexts={name: each for config in reversed(read) for name, each in config.contexts.items()},
        current_context=next((config.current_context for config in read if config.current_context), None),
    )


def _read_file(file: Path) -> KubeConfig:
    try:
        document = msgspec.yaml.decode(file.read_bytes())
        config = KubeConfig.from_dict(document, fname=file)
        entries = {each["name"]: msgspec.convert(each["cluster"], ClusterEntry) for each in document["clusters"]}
    except _UNREADABLE as error:
        raise ClusterUnusable(f"The kubeconfig {file} cannot be read: fix it ({_parse_error_text(error)}).") from None
    config.clusters = {name: _resolve_cluster_paths(each, file.parent) for name, each in entries.items()}
    config.users = {name: _resolve_user_paths(each, file.parent) for name, each in config.users.items()}
    return config


def _parse_error_text(error: Exception) -> str:
    """Describe an error without the line that a YAML parser may quote, which may hold a token."""
    if isinstance(error, msgspec.DecodeError) and not isinstance(error, msgspec.ValidationError):
        lines = re.findall(r"line (\d+)", str(error))
        return f"it is not YAML at line {lines[-1]}" if lines else "it is not YAML"
    return error_text(error)


def _resolve_cluster_paths(cluster: ClusterEntry, folder: Path) -> Cluster:
    return msgspec.structs.replace(cluster, certificate_auth=_resolve_path(folder, cluster.certificate_auth))


def _resolve_user_paths(user: User, folder: Path) -> User:
    return msgspec.structs.replace(
        user,
        token_file=_resolve_path(folder, user.token_file),
        client_cert=_resolve_path(folder, user.client_cert),
        client_key=_resolve_path(folder, user.client_key),
        exec=_resolve_program_path(user.exec, folder),
    )


def _resolve_program_path(program: UserExec | None, folder: Path) -> UserExec | None:
    """Resolve a relative path; a bare name is searched on the PATH, as kubectl does."""
    if program is None or "/" not in program.command:
        return program
    return msgspec.structs.replace(program, command=_resolve_path(folder, program.command))


def _resolve_path(folder: Path, path: str | None) -> str | None:
    return str(folder / path) if path else path


def _context_for_server(config: KubeConfig, server: str) -> str:
    """Return the current context if it is that server's, else the first that is, else an empty name."""
    if not server:
        return ""
    there = [
        name
        for name, context in config.contexts.items()
        if context.cluster in config.clusters and _is_server(config.clusters[context.cluster], server)
    ]
    current = config.current_context or ""
    return current if current in there else next(iter(there), "")


def _is_server(cluster: Cluster, server: str) -> bool:
    try:
        return origin_of(cluster.server) == origin_of(server)
    except ValueError:
        return False


def _select_context(config: KubeConfig, context: str) -> SingleConfig:
    try:
        found = config.get(context or None)
    except (ConfigError, KeyError) as error:
        raise ClusterUnusable(
            f"The kubeconfig has no usable context {context or config.current_context or ''!r}: choose one of "
            f"{', '.join(sorted(config.contexts)) or 'none'} with --context or in the settings ({error_text(error)})."
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
    raise ClusterUnusable(
        f"The server of the context {config.context_name!r} is not an address: write it like https://cluster.example:6443."
    )


def _service_account_config(folder: Path, environment: Mapping[str, str]) -> SingleConfig:
    host, port = environment["KUBERNETES_SERVICE_HOST"], environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not (folder / "token").is_file():
        raise ClusterUnusable(
            "This pod has no service account's token, so it cannot ask its cluster: give the pod a service account, or "
            "name a context of a kubeconfig."
        )
    cluster = ClusterEntry(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}", certificate_auth=str(folder / "ca.crt")
    )
    config = KubeConfig.from_one(cluster=cluster, user=User(token_file=str(folder / "token"))).get()
    assert config is not None
    return config


def _with_ca_bundle(config: SingleConfig, ca_bundle: str) -> SingleConfig:
    cluster = config.cluster
    if not ca_bundle or cluster.insecure or cluster.certificate_auth or cluster.certificate_auth_data:
        return config
    return config._replace(cluster=msgspec.structs.replace(cluster, certificate_auth=ca_bundle))


def error_text(error: Exception) -> str:
    """Return the error's text on one short line."""
    return shorten_line(str(error) or type(error).__name__, 200)
