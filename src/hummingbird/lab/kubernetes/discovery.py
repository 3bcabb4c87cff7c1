"""What the API says about itself: enough for kubectl to find what there is. One version each, nothing aggregated."""

from collections.abc import Mapping

from hummingbird.lab.kubernetes.refusals import Raw, no_such_path

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


def resource(
    name: str, kind: str, short: list[str], *, namespaced: bool = True, verbs: tuple[str, ...] = READ_AND_WRITE
) -> Raw:
    return {
        "name": name,
        "singularName": kind.lower(),
        "namespaced": namespaced,
        "kind": kind,
        "verbs": list(verbs),
        "shortNames": short,
    }


def subresource(name: str, kind: str, verbs: tuple[str, ...]) -> Raw:
    return {"name": name, "singularName": "", "namespaced": True, "kind": kind, "verbs": list(verbs)}


def documents(core: list[Raw], groups: Mapping[str, list[Raw]]) -> dict[str, Raw]:
    """By address: what a cluster with these resources says, `groups` by their name, each in version v1."""
    found: dict[str, Raw] = {
        "/version": VERSION,
        "/api": {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []},
        "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": core},
        "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(name) for name in groups]},
    }
    for name, resources in groups.items():
        found[f"/apis/{name}"] = {"kind": "APIGroup", "apiVersion": "v1", **_group(name)}
        version = {"groupVersion": f"{name}/v1", "resources": resources}
        found[f"/apis/{name}/v1"] = {"kind": "APIResourceList", "apiVersion": "v1", **version}
    return found


def _group(name: str) -> Raw:
    version = {"groupVersion": f"{name}/v1", "version": "v1"}
    return {"name": name, "versions": [version], "preferredVersion": version}


_DOCUMENTS = documents(
    core=[
        resource("namespaces", "Namespace", ["ns"], namespaced=False),
        resource("pods", "Pod", ["po"]),
        subresource("pods/exec", "PodExecOptions", ("create", "get")),
    ],
    groups={"apps": [resource("deployments", "Deployment", ["deploy"]), resource("replicasets", "ReplicaSet", ["rs"])]},
)
_HEALTH = {"/healthz", "/livez", "/readyz"}


def document(path: str, found: Mapping[str, Raw] = _DOCUMENTS) -> Raw | str:
    path = path.rstrip("/")
    if path in _HEALTH:
        return "ok"
    if path not in found:
        raise no_such_path()
    return found[path]
