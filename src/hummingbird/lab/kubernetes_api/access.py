"""Authenticate and authorise requests to the Kubernetes stand-in, and build its errors.

Bearer tokens, roles in one namespace, and a record of every request. A role is a table of resources and verbs. Beyond
it, every known user may read discovery, version and health, as in a real Kubernetes. Errors are worded like the real
ones: each is a Status object. The kubeconfig files that lead a client here are JSON, which is also YAML.
"""

import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from starlette.requests import HTTPConnection

Raw = dict[str, Any]


class ApiStatusError(Exception):
    """An error response; `status` is its body."""

    def __init__(self, code: int, reason: str, message: str, details: Raw | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.status: Raw = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            **({"details": details} if details else {}),
            "code": code,
        }


@dataclass(frozen=True, slots=True)
class FieldFault:
    """One problem with an object: the field, the kind of problem, and the sentence."""

    field: str
    reason: str
    sentence: str

    @property
    def cause(self) -> Raw:
        """The problem as an entry of `details.causes`."""
        return {"reason": self.reason, "message": self.sentence, "field": self.field}


def field_invalid(field: str, value: object, sentence: str) -> FieldFault:
    shown = f'"{value}"' if isinstance(value, str) else str(value)
    return FieldFault(field, "FieldValueInvalid", f"Invalid value: {shown}: {sentence}")


def invalid_error(kind: str, name: str, faults: list[FieldFault]) -> ApiStatusError:
    said = [f"{fault.field}: {fault.sentence}" for fault in faults]
    words = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    details = {"name": name, "kind": kind, "causes": [fault.cause for fault in faults]}
    return ApiStatusError(422, "Invalid", f'{kind} "{name}" is invalid: {words}', details)


def bad_request_error(message: str) -> ApiStatusError:
    return ApiStatusError(400, "BadRequest", message)


def credential_error() -> ApiStatusError:
    return ApiStatusError(401, "Unauthorized", "Unauthorized")


def forbidden_error(resource: str, name: str, sentence: str) -> ApiStatusError:
    what = f'{resource} "{name}"' if name else resource
    return ApiStatusError(403, "Forbidden", f"{what} is forbidden: {sentence}", _status_details(resource, name))


def not_found_error(resource: str, name: str) -> ApiStatusError:
    return ApiStatusError(404, "NotFound", f'{resource} "{name}" not found', _status_details(resource, name))


def _status_details(resource: str, name: str) -> Raw:
    """Return details of a resource, which may be qualified by its group: deployments.apps."""
    kind, _, group = resource.partition(".")
    return {key: value for key, value in (("name", name), ("group", group), ("kind", kind)) if value}


def no_such_path_error() -> ApiStatusError:
    return ApiStatusError(404, "NotFound", "the server could not find the requested resource")


def method_not_allowed_error() -> ApiStatusError:
    return ApiStatusError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")


# Parse the method and path of a request into verb, resource and name, as the real API server does.


_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get", "HEAD": "get"}


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """What a request asks for; `resource` is empty for paths that are not resources: discovery, version, health."""

    method: str
    path: str
    verb: str
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    name: str = ""
    subresource: str = ""
    query: Mapping[str, str] = field(default_factory=dict)

    @property
    def full_resource(self) -> str:
        """The resource as roles name it: pods, pods/exec."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def parse_request(method: str, path: str, query: Mapping[str, str]) -> ApiRequest:
    """Parse a request."""
    parts = [part for part in path.split("/") if part]
    plain = ApiRequest(method, path, _VERBS.get(method, method.lower()), query=query)
    if parts[:1] == ["api"] and len(parts) > 2:
        return _with_resource(replace(plain, version=parts[1]), parts[2:])
    if parts[:1] == ["apis"] and len(parts) > 3:
        return _with_resource(replace(plain, group=parts[1], version=parts[2]), parts[3:])
    return plain


def _with_resource(ask: ApiRequest, rest: list[str]) -> ApiRequest:
    namespace, verb = "", ask.verb
    if rest[0] == "namespaces" and len(rest) > 1:
        # A request for a namespace object counts as a request within that namespace.
        namespace, rest = rest[1], rest[2:] or rest
    resource, name, subresource = (*rest[:3], "", "")[:3]
    if not name:
        verb = {"get": "list", "delete": "deletecollection"}.get(verb, verb)
    if verb in {"get", "list"} and ask.query.get("watch") in {"true", "1"}:
        verb = "watch"
    return replace(ask, verb=verb, namespace=namespace, resource=resource, name=name, subresource=subresource)


# Find the bearer token of a request, in its header or in its path.


TOKEN_PREFIX = "/as/"  # noqa: S105  # where in an address a token stands, not a token


def bearer_identity(connection: HTTPConnection) -> tuple[str, str]:
    """Return the token and the path. The path may carry the token, because kubectl sends none over plain HTTP."""
    path = connection.scope["path"]
    token = ""
    if path.startswith(TOKEN_PREFIX):
        token, _, rest = path.removeprefix(TOKEN_PREFIX).partition("/")
        path = f"/{rest}"
    scheme, _, given = connection.headers.get("authorization", "").partition(" ")
    return (given.strip() if scheme.lower() == "bearer" else token), path


Rules = Mapping[str, Iterable[str]]
SANDBOX_RULES: Rules = {
    "pods": ("create", "get", "list", "delete", "patch"),
    "pods/exec": ("create", "get"),
}
ANONYMOUS = "system:anonymous"
_OPEN_TO_ALL = {"/version", "/healthz", "/livez", "/readyz"}
_DISCOVERY = ("/api", "/apis")  # and paths below them that are not resources

GROUPS = {"namespaces": "", "pods": "", "deployments": "apps", "replicasets": "apps"}


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One request as authorisation saw it; `resource` is named as in roles, or is the path if it is not a resource."""

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
        """Return the user's name.

        Raises ApiStatusError: 401 for an unknown token, 403 for what the role does not allow.
        """
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
