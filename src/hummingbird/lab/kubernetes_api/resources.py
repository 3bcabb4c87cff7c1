"""Match objects by label and field selectors, from a query string or from the `selector` of a workload."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from hummingbird.lab.kubernetes_api.access import Raw, bad_request_error, no_such_path_error

Labels = Mapping[str, str]
Requirement = Callable[[Labels], bool]
Selects = Callable[[Raw], bool]

_OUTSIDE_BRACKETS = re.compile(r",(?![^(]*\))")
_SET = re.compile(r"(\S+)\s+(in|notin)\s*\(([^()]*)\)")
_EQUAL = re.compile(r"([^\s=!,()]+)\s*(==|=|!=)\s*([^\s=!,()]*)")
_EXISTS = re.compile(r"(!?)\s*([^\s=!,()]+)")

FIELDS = ("metadata.name", "metadata.namespace", "spec.nodeName", "spec.restartPolicy", "status.phase", "status.podIP")


class LabelSelector:
    """A predicate on labels: all requirements must hold; none at all selects everything."""

    def __init__(self, requirements: list[Requirement]) -> None:
        self._requirements = requirements

    def __call__(self, labels: Labels) -> bool:
        return all(holds(labels) for holds in self._requirements)

    @classmethod
    def parse(cls, text: str) -> "LabelSelector":
        """Parse the selector of a query string. Raises ApiStatusError (400)."""
        parts = [part.strip() for part in _OUTSIDE_BRACKETS.split(text)] if text.strip() else []
        return cls([_requirement(part) for part in parts])

    @classmethod
    def of(cls, selector: Raw) -> "LabelSelector":
        """Make a selector from the form that workloads use: matchLabels and matchExpressions."""
        equal = [_in(key, {value}) for key, value in (selector.get("matchLabels") or {}).items()]
        return cls([*equal, *(_expression(each) for each in selector.get("matchExpressions") or [])])


def _requirement(text: str) -> Requirement:
    if found := _SET.fullmatch(text):
        wanted = {value.strip() for value in found[3].split(",")}
        return _in(found[1], wanted) if found[2] == "in" else _not_in(found[1], wanted)
    if found := _EQUAL.fullmatch(text):
        return _not_in(found[1], {found[3]}) if found[2] == "!=" else _in(found[1], {found[3]})
    if found := _EXISTS.fullmatch(text):
        return _absent(found[2]) if found[1] else _present(found[2])
    raise bad_request_error(f"unable to parse requirement: found '{text}', expected: a key, '=', '!=', 'in' or 'notin'")


def _expression(expression: Raw) -> Requirement:
    key, values = expression["key"], set(expression.get("values") or [])
    match expression["operator"]:
        case "In":
            return _in(key, values)
        case "NotIn":
            return _not_in(key, values)
        case "Exists":
            return _present(key)
        case "DoesNotExist":
            return _absent(key)
        case other:
            raise bad_request_error(f'"{other}" is not a valid label selector operator')


def _in(key: str, wanted: set[str]) -> Requirement:
    return lambda labels: key in labels and labels[key] in wanted


def _not_in(key: str, wanted: set[str]) -> Requirement:
    # An object without the label passes, as in the real API.
    return lambda labels: labels.get(key) not in wanted


def _present(key: str) -> Requirement:
    return lambda labels: key in labels


def _absent(key: str) -> Requirement:
    return lambda labels: key not in labels


def field_selector(text: str, resource: str = "/v1, Resource=pods", fields: tuple[str, ...] = FIELDS) -> Selects:
    """Parse a field selector. Only `fields` may be used; `resource` is the name for error messages."""
    tests = [_field(part.strip(), resource, fields) for part in text.split(",") if part.strip()]
    return lambda thing: all(holds(thing) for holds in tests)


def _field(text: str, resource: str, fields: tuple[str, ...]) -> Selects:
    found = _EQUAL.fullmatch(text)
    if found is None:
        raise bad_request_error(f"invalid selector: '{text}'; can't understand '{text}'")
    path, operator, value = found[1], found[2], found[3]
    if path not in fields:
        raise bad_request_error(
            f'Unable to find "{resource}" that match label selector "", field selector "{text}": '
            f"field label not supported: {path}"
        )
    return lambda thing: (_at(thing, path) == value) != (operator == "!=")


def _at(thing: Raw, path: str) -> str:
    here: Any = thing
    for step in path.split("."):
        here = here.get(step, "") if isinstance(here, dict) else ""
    return str(here)


# Build the discovery documents by which kubectl finds the resources of a cluster; one version of each group.


VERSION = {
    "major": "1",
    "minor": "33",
    "gitVersion": "v1.33.0",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "2025-04-23T13:07:12Z",
    "goVersion": "go1.24.2",
    "compiler": "gc",
    "platform": "linux/amd64",
}
READ_AND_WRITE = ("create", "delete", "get", "list", "patch")


def resource_entry(
    name: str, kind: str, short: list[str], *, namespaced: bool = True, verbs: tuple[str, ...] = READ_AND_WRITE
) -> Raw:
    """Describe a resource."""
    return {
        "name": name,
        "singularName": kind.lower(),
        "namespaced": namespaced,
        "kind": kind,
        "verbs": list(verbs),
        "shortNames": short,
    }


def subresource_entry(name: str, kind: str, verbs: tuple[str, ...]) -> Raw:
    """Describe a subresource, such as pods/exec."""
    return {"name": name, "singularName": "", "namespaced": True, "kind": kind, "verbs": list(verbs)}


def discovery_documents(core: list[Raw], groups: Mapping[str, list[Raw]]) -> dict[str, Raw]:
    """Return the documents of a cluster with these resources by path; `groups` are by name, each in version v1."""
    found: dict[str, Raw] = {
        "/version": VERSION,
        "/api": {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []},
        "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": core},
        "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group_entry(name) for name in groups]},
    }
    for name, resources in groups.items():
        found[f"/apis/{name}"] = {"kind": "APIGroup", "apiVersion": "v1", **_group_entry(name)}
        version = {"groupVersion": f"{name}/v1", "resources": resources}
        found[f"/apis/{name}/v1"] = {"kind": "APIResourceList", "apiVersion": "v1", **version}
    return found


def _group_entry(name: str) -> Raw:
    version = {"groupVersion": f"{name}/v1", "version": "v1"}
    return {"name": name, "versions": [version], "preferredVersion": version}


_DOCUMENTS = discovery_documents(
    core=[
        resource_entry("namespaces", "Namespace", ["ns"], namespaced=False),
        resource_entry("pods", "Pod", ["po"]),
        subresource_entry("pods/exec", "PodExecOptions", ("create", "get")),
    ],
    groups={
        "apps": [
            resource_entry("deployments", "Deployment", ["deploy"]),
            resource_entry("replicasets", "ReplicaSet", ["rs"]),
        ]
    },
)
_HEALTH = {"/healthz", "/livez", "/readyz"}


def find_document(path: str, found: Mapping[str, Raw] = _DOCUMENTS) -> Raw | str:
    """Return the document at a path, or "ok" for a health check. Raises ApiStatusError (404)."""
    path = path.rstrip("/")
    if path in _HEALTH:
        return "ok"
    if path not in found:
        raise no_such_path_error()
    return found[path]
