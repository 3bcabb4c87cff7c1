"""Build the errors of the Kubernetes API, worded like the real ones: every error is a Status object."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
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


def field_required(field: str, sentence: str = "") -> FieldFault:
    return FieldFault(field, "FieldValueRequired", f"Required value{f': {sentence}' if sentence else ''}")


def field_invalid(field: str, value: object, sentence: str) -> FieldFault:
    shown = f'"{value}"' if isinstance(value, str) else str(value)
    return FieldFault(field, "FieldValueInvalid", f"Invalid value: {shown}: {sentence}")


def field_forbidden(field: str, sentence: str) -> FieldFault:
    return FieldFault(field, "FieldValueForbidden", f"Forbidden: {sentence}")


def field_not_supported(field: str, value: object, allowed: list[str]) -> FieldFault:
    words = ", ".join(f'"{each}"' for each in allowed)
    return FieldFault(field, "FieldValueNotSupported", f'Unsupported value: "{value}": supported values: {words}')


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


def already_exists_error(resource: str, name: str) -> ApiStatusError:
    return ApiStatusError(409, "AlreadyExists", f'{resource} "{name}" already exists', {"name": name, "kind": resource})


def conflict_error(resource: str, name: str, sentence: str = "") -> ApiStatusError:
    why = sentence or "the object has been modified; please apply your changes to the latest version and try again"
    message = f'Operation cannot be fulfilled on {resource} "{name}": {why}'
    return ApiStatusError(409, "Conflict", message, {"name": name, "kind": resource})


def media_type_error(given: str, taken: tuple[str, ...]) -> ApiStatusError:
    words = ", ".join(taken)
    sentence = f"the body of the request was in an unknown format - accepted media types include: {words}"
    return ApiStatusError(415, "UnsupportedMediaType", f"{sentence} (it was {given or 'not named'})")


# Parse the method and path of a request into verb, resource and name, as the real API server does.


_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get", "HEAD": "get"}


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """What a request asks for; `resource` is empty for paths that are no resource: discovery, version, health."""

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
