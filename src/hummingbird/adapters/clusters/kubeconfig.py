"""Which cluster, and whose entry in the kubeconfig: found the way kubectl finds it, so that the two never differ.

lightkube reads the entries and knows certificates and tokens. It would prefer the service account of its own pod to
the operator's KUBECONFIG, and read one file of several; kubectl does neither, so both are decided here. Knows nothing
of namespaces: whoever asks has one of their own.
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

from hummingbird.domain.errors import ClusterUnusable
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


# Whatever YAML and lightkube make of a file that is none
_UNREADABLE = (OSError, msgspec.MsgspecError, LookupError, TypeError, ValueError, AttributeError, RecursionError)


class ClusterEntry(Cluster, omit_defaults=True):
    """What lightkube leaves out: the name on the server's certificate, where it is not the address's."""

    tls_server_name: str | None = msgspec.field(name="tls-server-name", default=None)


@dataclass(frozen=True, slots=True)
class Sought:
    """What was asked for. `ca_bundle` is for clusters whose kubeconfig names no authority. Without a context, one of
    the cluster at `server` is preferred to the current one."""

    kubeconfig: str = ""
    context: str = ""
    ca_bundle: str = ""
    server: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """`config` is lightkube's. `environment`: all that other programs may know of ours."""

    config: SingleConfig
    environment: Mapping[str, str]
    in_cluster: bool = False

    @property
    def server(self) -> str:
        return origin(self.config.cluster.server)


def origin(address: str) -> str:
    """For people and for comparing: of an address that may hold more, the part that holds no secret."""
    parts = urlsplit(address)
    host = parts.netloc.rpartition("@")[2].lower()
    usual = {"https": ":443", "http": ":80"}.get(parts.scheme, ":")
    return f"{parts.scheme}://{host.removesuffix(usual)}"


def find(sought: Sought, environment: Mapping[str, str], service_account: Path = SERVICE_ACCOUNT) -> Found:
    """Raises ClusterUnusable."""
    carried = {name: environment[name] for name in CARRIED if name in environment}
    files = _files(sought, environment)
    if not files and not sought.context and "KUBERNETES_SERVICE_HOST" in environment:
        config = _trusting(_own_account(service_account, environment), sought.ca_bundle)
        return Found(config, carried, in_cluster=True)
    if not files:
        raise ClusterUnusable(
            "There is no kubeconfig: set KUBECONFIG, log in to a cluster so that ~/.kube/config is written, or run "
            "inside one."
        )
    merged = _merged(files)
    config = _chosen(merged, sought.context or _context_of(merged, sought.server))
    return Found(_trusting(config, sought.ca_bundle), carried)


def _files(sought: Sought, environment: Mapping[str, str]) -> list[Path]:
    if sought.kubeconfig:
        return [Path(sought.kubeconfig).expanduser()]
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
        document = msgspec.yaml.decode(file.read_bytes())
        config = KubeConfig.from_dict(document, fname=file)
        entries = {each["name"]: msgspec.convert(each["cluster"], ClusterEntry) for each in document["clusters"]}
    except _UNREADABLE as error:
        raise ClusterUnusable(f"The kubeconfig {file} cannot be read: mend it ({_fault(error)}).") from None
    config.clusters = {name: _whole_cluster(each, file.parent) for name, each in entries.items()}
    config.users = {name: _whole_user(each, file.parent) for name, each in config.users.items()}
    return config


def _fault(error: Exception) -> str:
    """A parser of YAML may quote the line at which it stumbled, token and all; its number is enough."""
    if isinstance(error, msgspec.DecodeError) and not isinstance(error, msgspec.ValidationError):
        lines = re.findall(r"line (\d+)", str(error))
        return f"it is no YAML at line {lines[-1]}" if lines else "it is no YAML"
    return said(error)


def _whole_cluster(cluster: ClusterEntry, folder: Path) -> Cluster:
    return msgspec.structs.replace(cluster, certificate_auth=_under(folder, cluster.certificate_auth))


def _whole_user(user: User, folder: Path) -> User:
    return msgspec.structs.replace(
        user,
        token_file=_under(folder, user.token_file),
        client_cert=_under(folder, user.client_cert),
        client_key=_under(folder, user.client_key),
        exec=_whole_program(user.exec, folder),
    )


def _whole_program(program: UserExec | None, folder: Path) -> UserExec | None:
    """A bare name is looked for on the PATH, as kubectl does."""
    if program is None or "/" not in program.command:
        return program
    return msgspec.structs.replace(program, command=_under(folder, program.command))


def _under(folder: Path, path: str | None) -> str | None:
    return str(folder / path) if path else path


def _context_of(config: KubeConfig, server: str) -> str:
    """The current one, if it is that server's; the first that is; or none."""
    if not server:
        return ""
    there = [
        name
        for name, context in config.contexts.items()
        if context.cluster in config.clusters and _is_at(config.clusters[context.cluster], server)
    ]
    current = config.current_context or ""
    return current if current in there else next(iter(there), "")


def _is_at(cluster: Cluster, server: str) -> bool:
    try:
        return origin(cluster.server) == origin(server)
    except ValueError:
        return False


def _chosen(config: KubeConfig, context: str) -> SingleConfig:
    try:
        found = config.get(context or None)
    except (ConfigError, KeyError) as error:
        raise ClusterUnusable(
            f"The kubeconfig has no usable context {context or config.current_context or ''!r}: choose one of "
            f"{', '.join(sorted(config.contexts)) or 'none'} with --context or in the settings ({said(error)})."
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
        f"The server of the context {config.context_name!r} is no address: write it like https://cluster.example:6443."
    )


def _own_account(folder: Path, environment: Mapping[str, str]) -> SingleConfig:
    host, port = environment["KUBERNETES_SERVICE_HOST"], environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not (folder / "token").is_file():
        raise ClusterUnusable(
            "This pod has no service account's token and there is no kubeconfig: give the pod a service account, or "
            "set KUBECONFIG."
        )
    cluster = ClusterEntry(
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


def said(error: Exception) -> str:
    return shortened(str(error) or type(error).__name__, 200)
