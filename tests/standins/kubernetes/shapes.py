"""What manifests may look like: the fields that the stand-in plays, and their types.

Stricter than the real API, which drops what it does not know: a field that is misspelt, or one that is real but not
played here, is refused, so that no test passes on the strength of a setting that did nothing.
"""

from typing import Any

from hummingbird.lab.kubernetes_api.access import Raw, bad_request_error

STRING, INTEGER, BOOLEAN, QUANTITY, ANYTHING = "string", "int64", "bool", "quantity", "anything"
WORDS = {"*": STRING}  # a map from any key to a string
_AMOUNTS = {"*": QUANTITY}

OWNER = {
    "apiVersion": STRING,
    "kind": STRING,
    "name": STRING,
    "uid": STRING,
    "controller": BOOLEAN,
    "blockOwnerDeletion": BOOLEAN,
}
METADATA = {
    "name": STRING,
    "generateName": STRING,
    "namespace": STRING,
    "labels": WORDS,
    "annotations": WORDS,
    "ownerReferences": [OWNER],
    "uid": STRING,
    "resourceVersion": STRING,
    "creationTimestamp": STRING,
    "deletionTimestamp": STRING,
    "deletionGracePeriodSeconds": INTEGER,
    "generation": INTEGER,
    "managedFields": ANYTHING,
}
_SECCOMP = {"type": STRING, "localhostProfile": STRING}
POD_SECURITY = {
    "runAsNonRoot": BOOLEAN,
    "runAsUser": INTEGER,
    "runAsGroup": INTEGER,
    "fsGroup": INTEGER,
    "seccompProfile": _SECCOMP,
}
CONTAINER_SECURITY = {
    "runAsNonRoot": BOOLEAN,
    "runAsUser": INTEGER,
    "runAsGroup": INTEGER,
    "seccompProfile": _SECCOMP,
    "allowPrivilegeEscalation": BOOLEAN,
    "privileged": BOOLEAN,
    "readOnlyRootFilesystem": BOOLEAN,
    "capabilities": {"add": [STRING], "drop": [STRING]},
}
CONTAINER = {
    "name": STRING,
    "image": STRING,
    "imagePullPolicy": STRING,
    "command": [STRING],
    "args": [STRING],
    "workingDir": STRING,
    "env": [{"name": STRING, "value": STRING}],
    "ports": [{"name": STRING, "containerPort": INTEGER, "hostPort": INTEGER, "protocol": STRING}],
    "resources": {"limits": _AMOUNTS, "requests": _AMOUNTS},
    "volumeMounts": [{"name": STRING, "mountPath": STRING, "readOnly": BOOLEAN}],
    "securityContext": CONTAINER_SECURITY,
    "terminationMessagePath": STRING,
    "terminationMessagePolicy": STRING,
    "stdin": BOOLEAN,
    "tty": BOOLEAN,
}
VOLUME = {
    "name": STRING,
    "emptyDir": {"medium": STRING, "sizeLimit": QUANTITY},
    "hostPath": {"path": STRING, "type": STRING},
    "projected": ANYTHING,
}
POD_SPEC = {
    "containers": [CONTAINER],
    "volumes": [VOLUME],
    "restartPolicy": STRING,
    "activeDeadlineSeconds": INTEGER,
    "terminationGracePeriodSeconds": INTEGER,
    "automountServiceAccountToken": BOOLEAN,
    "serviceAccountName": STRING,
    "serviceAccount": STRING,
    "enableServiceLinks": BOOLEAN,
    "securityContext": POD_SECURITY,
    "hostNetwork": BOOLEAN,
    "hostPID": BOOLEAN,
    "hostIPC": BOOLEAN,
    "hostname": STRING,
    "nodeName": STRING,
    "nodeSelector": WORDS,
    "tolerations": ANYTHING,
    "affinity": ANYTHING,
    "topologySpreadConstraints": ANYTHING,
    "priority": INTEGER,
    "priorityClassName": STRING,
    "preemptionPolicy": STRING,
    "runtimeClassName": STRING,
    "schedulerName": STRING,
    "dnsPolicy": STRING,
    "imagePullSecrets": ANYTHING,
}
POD = {"apiVersion": STRING, "kind": STRING, "metadata": METADATA, "spec": POD_SPEC, "status": ANYTHING}
DEPLOYMENT = {
    "apiVersion": STRING,
    "kind": STRING,
    "metadata": METADATA,
    "spec": {
        "replicas": INTEGER,
        "selector": {
            "matchLabels": WORDS,
            "matchExpressions": [{"key": STRING, "operator": STRING, "values": [STRING]}],
        },
        "template": {"metadata": METADATA, "spec": POD_SPEC},
        "strategy": ANYTHING,
        "minReadySeconds": INTEGER,
        "revisionHistoryLimit": INTEGER,
        "progressDeadlineSeconds": INTEGER,
    },
    "status": ANYTHING,
}
SHAPES: dict[str, Raw] = {"Pod": POD, "Deployment": DEPLOYMENT}
_TYPES: dict[str, tuple[type, ...]] = {
    STRING: (str,),
    INTEGER: (int,),
    BOOLEAN: (bool,),
    QUANTITY: (str, int, float),
}


def without_nulls(value: Any) -> Any:
    """A null is the same as an absent field, as it is to the real API."""
    if isinstance(value, dict):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value


def find_fault(kind: str, manifest: Any) -> str:
    """What does not fit the shape, in a sentence; empty if all does."""
    return _fault(manifest, SHAPES[kind], "")


def check(kind: str, manifest: Any) -> None:
    """Refuses, as `fieldValidation=Strict` does, what has an unknown field or a field of another type."""
    if fault := find_fault(kind, manifest):
        group = "v1" if kind == "Pod" else "apps/v1"
        raise bad_request_error(f'{kind} in version "{group}" cannot be handled as a {kind}: {fault}')


def _fault(value: Any, shape: Any, path: str) -> str:
    if shape == ANYTHING:
        return ""
    if isinstance(shape, dict):
        return _map_fault(value, shape, path)
    if isinstance(shape, list):
        if not isinstance(value, list):
            return _mistyped(value, path, "list")
        found = (_fault(each, shape[0], f"{path}[{index}]") for index, each in enumerate(value))
        return next(filter(None, found), "")
    # to Python a bool is an int, to the API it is not
    fits = isinstance(value, _TYPES[shape]) and (shape == BOOLEAN or not isinstance(value, bool))
    return "" if fits else _mistyped(value, path, shape)


def _map_fault(value: Any, shape: Raw, path: str) -> str:
    if not isinstance(value, dict):
        return _mistyped(value, path, "map")
    for key, inner in value.items():
        here = f"{path}.{key}" if path else key
        if key not in shape and "*" not in shape:
            return f'strict decoding error: unknown field "{here}" (or one that this stand-in does not play)'
        if found := _fault(inner, shape.get(key, shape.get("*")), here):
            return found
    return ""


def _mistyped(value: Any, path: str, wanted: str) -> str:
    given = {bool: "bool", int: "number", float: "number", str: "string", list: "array"}.get(type(value), "object")
    return f"json: cannot unmarshal {given} into Go struct field .{path} of type {wanted}"
