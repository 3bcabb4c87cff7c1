"""Kubeconfig files: written for a lab, and read by the kubectl double. As JSON, which is YAML too."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CONTEXT = "lab"


@dataclass(frozen=True, slots=True)
class Access:
    server: str
    token: str
    namespace: str


class Unusable(Exception):
    pass


def write(path: Path, server: str, token: str, namespace: str | None = None) -> Path:
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


def read(path: Path, context: str = "") -> Access:
    try:
        document = json.loads(path.read_text())
    except FileNotFoundError:
        raise Unusable(f"stat {path}: no such file or directory") from None
    except ValueError as problem:
        raise Unusable(f'error loading config file "{path}": this double reads JSON alone: {problem}') from problem
    wanted = context or document.get("current-context", "")
    chosen = _named(document, "contexts", wanted).get("context")
    if chosen is None:
        raise Unusable(f'context "{wanted}" does not exist')
    server = _named(document, "clusters", chosen["cluster"])["cluster"]["server"]
    token = _named(document, "users", chosen["user"]).get("user", {}).get("token", "")
    return Access(server, token, chosen.get("namespace", ""))


def where(given: str, environment: Mapping[str, str] = os.environ) -> Path:
    """The flag, then KUBECONFIG, then the place that kubectl looks at last."""
    return Path(given or environment.get("KUBECONFIG", "").split(os.pathsep)[0] or Path.home() / ".kube" / "config")


def _named(document: Any, kind: str, name: str) -> dict[str, Any]:
    return next((each for each in document.get(kind) or [] if each.get("name") == name), {})
