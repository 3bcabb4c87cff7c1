"""Read a kubeconfig as kubectl does: which server a context points to, and with which token."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class ClusterEndpoint:
    """Where a context points to, and with which token."""

    server: str
    token: str
    namespace: str


class KubeconfigUnusable(Exception):
    """The kubeconfig cannot be used; the message is worded like kubectl's."""

    pass


def read_kubeconfig(path: Path, context: str = "") -> ClusterEndpoint:
    """Read one context, by default the current one. Raises KubeconfigUnusable."""
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
