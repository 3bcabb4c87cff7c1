"""Authenticate and authorise requests: bearer tokens, roles in one namespace, and a record of every request.

A role is a table of resources and verbs. Beyond it, every known user may read discovery, version and health, as in a
real Kubernetes. The kubeconfig files that lead a client here are JSON, which is also YAML.
"""

import json
import os
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hummingbird.lab.kubernetes_api.requests import ApiRequest, ApiStatusError, credential_error, forbidden_error

Rules = Mapping[str, Iterable[str]]
SANDBOX_RULES: Rules = {
    "pods": ("create", "get", "list", "delete", "patch"),
    "pods/exec": ("create", "get"),
}
ANONYMOUS = "system:anonymous"
_OPEN_TO_ALL = {"/version", "/healthz", "/livez", "/readyz"}
_DISCOVERY = ("/api", "/apis")  # and paths below them that are no resource

GROUPS = {"namespaces": "", "pods": "", "deployments": "apps", "replicasets": "apps"}


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One request as authorisation saw it; `resource` is named as in roles, or is the path of what is no resource."""

    verb: str
    resource: str
    namespace: str
    name: str
    user: str
    allowed: bool


@dataclass(slots=True)
class ServiceAccount:
    """A user with a role in one namespace; with `rules` None, an administrator who may do everything."""

    user: str
    namespace: str = ""
    rules: dict[str, frozenset[str]] | None = None

    def may(self, ask: ApiRequest) -> bool:
        """Tell whether the account may do this."""
        if not ask.resource:
            return ask.method in {"GET", "HEAD"} and self._is_open(ask.path.rstrip("/"))
        if self.rules is None:
            return True
        known_group = GROUPS.get(ask.resource, ask.group) == ask.group
        granted = self.rules.get(ask.full_resource, frozenset())
        return known_group and ask.namespace == self.namespace and bool(self.namespace) and ask.verb in granted

    def _is_open(self, path: str) -> bool:
        below = tuple(f"{place}/" for place in _DISCOVERY)
        known = self.user != ANONYMOUS and (path in _DISCOVERY or path.startswith(below))
        return known or path in _OPEN_TO_ALL


@dataclass
class AccessControl:
    """The accounts by token, and the record of requests."""

    accounts: dict[str, ServiceAccount] = field(default_factory=dict)
    requests: list[RecordedRequest] = field(default_factory=list)

    def add(self, account: ServiceAccount) -> str:
        """Add an account and return its new token."""
        token = secrets.token_urlsafe(24)
        self.accounts[token] = account
        return token

    def grant(self, namespace: str, rules: Rules = SANDBOX_RULES, name: str = "hummingbird") -> str:
        """Add a service account with these rules in a namespace and return its token."""
        return self.add(ServiceAccount(f"system:serviceaccount:{namespace}:{name}", namespace, _freeze_rules(rules)))

    def narrow(self, token: str, rules: Rules) -> None:
        """Replace the rules of an account."""
        self.accounts[token].rules = _freeze_rules(rules)

    def admit(self, token: str, ask: ApiRequest) -> str:
        """Return the user's name. Raises `Refused`: 401 for an unknown token, 403 for what the role does not allow."""
        account = self.accounts.get(token) if token else ServiceAccount(ANONYMOUS, rules={})
        if account is None:
            raise credential_error()
        allowed = account.may(ask)
        what = ask.full_resource or ask.path
        self.requests.append(RecordedRequest(ask.verb, what, ask.namespace, ask.name, account.user, allowed))
        if not allowed:
            raise _forbidden_error(account.user, ask)
        return account.user


def _freeze_rules(rules: Rules) -> dict[str, frozenset[str]]:
    return {resource: frozenset(verbs) for resource, verbs in rules.items()}


def _forbidden_error(user: str, ask: ApiRequest) -> ApiStatusError:
    if not ask.resource:
        return ApiStatusError(403, "Forbidden", f'forbidden: User "{user}" cannot {ask.verb} path "{ask.path}"')
    where = f'in the namespace "{ask.namespace}"' if ask.namespace else "at the cluster scope"
    what = f'cannot {ask.verb} resource "{ask.full_resource}" in API group "{ask.group}" {where}'
    qualified = f"{ask.resource}.{ask.group}" if ask.group else ask.resource
    return forbidden_error(qualified, ask.name, f'User "{user}" {what}')


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
