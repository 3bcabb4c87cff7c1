"""Write kubeconfig files for a lab, and read them for the kubectl stand-in. They are JSON, which is also YAML."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CONTEXT = "lab"


@dataclass(frozen=True, slots=True)
class ClusterEndpoint:
    """Where a context points to, and with which token."""

    server: str
    token: str
    namespace: str


class KubeconfigUnusable(Exception):
    """The kubeconfig cannot be used; the message is worded like kubectl's."""

    pass


def write_kubeconfig(path: Path, server: str, token: str, namespace: str | None = None) -> Path:
    """Write a kubeconfig with one context and return its path."""
    context = {"cluster": CONTEXT, "user": CONTEXT, **({"namespace": namespace} if namespace else {})}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CONTEXT, "cluster": {"server": server}}],
        "users": [{"name": CONTEXT, "user": {"token": token}}],
        "contexts": [{"name": CONTEXT, "context": context}],
        "current-context": CONTEXT,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(json.dumps(document, indent=2))
    return path


def read_kubeconfig(path: Path, context: str = "") -> ClusterEndpoint:
    """Read one context, by default the current one. Raises `Unusable`."""
    try:
        document = json.loads(path.read_text())
    except FileNotFoundError:
        raise KubeconfigUnusable(f"stat {path}: no such file or directory") from None
    except ValueError as problem:
        raise KubeconfigUnusable(
            f'error loading config file "{path}": this double reads JSON alone: {problem}'
        ) from problem
    wanted = context or document.get("current-context", "")
    chosen = _find_item(document, "contexts", wanted).get("context")
    if chosen is None:
        raise KubeconfigUnusable(f'context "{wanted}" does not exist')
    server = _find_item(document, "clusters", chosen["cluster"])["cluster"]["server"]
    token = _find_item(document, "users", chosen["user"]).get("user", {}).get("token", "")
    return ClusterEndpoint(server, token, chosen.get("namespace", ""))


def kubeconfig_path(given: str, environment: Mapping[str, str] = os.environ) -> Path:
    """Return the path to read: the flag, then KUBECONFIG, then kubectl's default."""
    return Path(given or environment.get("KUBECONFIG", "").split(os.pathsep)[0] or Path.home() / ".kube" / "config")


def _find_item(document: Any, kind: str, name: str) -> dict[str, Any]:
    return next((each for each in document.get(kind) or [] if each.get("name") == name), {})
