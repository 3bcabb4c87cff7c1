"""What the API says about itself: enough for kubectl to find pods. One version each, nothing aggregated."""

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
_APPS_V1 = {"groupVersion": "apps/v1", "version": "v1"}
_APPS: Raw = {"name": "apps", "versions": [_APPS_V1], "preferredVersion": _APPS_V1}


def _resource(name: str, kind: str, short: list[str], *, namespaced: bool = True) -> Raw:
    verbs = ["create", "delete", "get", "list", "patch"]
    singular = kind.lower()
    return {
        "name": name,
        "singularName": singular,
        "namespaced": namespaced,
        "kind": kind,
        "verbs": verbs,
        "shortNames": short,
    }


_EXEC = {
    "name": "pods/exec",
    "singularName": "",
    "namespaced": True,
    "kind": "PodExecOptions",
    "verbs": ["create", "get"],
}
_CORE_RESOURCES = [
    _resource("namespaces", "Namespace", ["ns"], namespaced=False),
    _resource("pods", "Pod", ["po"]),
    _EXEC,
]
_APPS_RESOURCES = [_resource("deployments", "Deployment", ["deploy"]), _resource("replicasets", "ReplicaSet", ["rs"])]
_DOCUMENTS: dict[str, Raw] = {
    "/version": VERSION,
    "/api": {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []},
    "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": _CORE_RESOURCES},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_APPS]},
    "/apis/apps": {"kind": "APIGroup", "apiVersion": "v1", **_APPS},
    "/apis/apps/v1": {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": "apps/v1",
        "resources": _APPS_RESOURCES,
    },
}
_HEALTH = {"/healthz", "/livez", "/readyz"}


def document(path: str) -> Raw | str:
    path = path.rstrip("/")
    if path in _HEALTH:
        return "ok"
    if path not in _DOCUMENTS:
        raise no_such_path()
    return _DOCUMENTS[path]
