"""A pod's way into the API: checked, filled up with defaults, and later changed within what may change.

Knows manifests alone; who runs them is the kubelet's business.
"""

import copy
import posixpath
import secrets
from collections.abc import Iterator
from typing import Any

from hummingbird.lab.kubernetes_api.access import FieldFault, Raw, bad_request_error, field_invalid, invalid_error
from tests.standins.kubernetes import shapes
from tests.standins.kubernetes.api_errors import field_forbidden, field_not_supported, field_required
from tests.standins.kubernetes.names import label_name_fault, metadata_faults
from tests.standins.kubernetes.quantities import quantity

# of the letters and digits that generated names are made of, the real one leaves out what could spell a word
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_POLICIES = ["Always", "OnFailure", "Never"]
TOKEN_MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"  # a path, not a token
_KEPT = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "namespace", "generateName")
_MAY_CHANGE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def suffix() -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(5))


def newborn(manifest: Any, namespace: str) -> Raw:
    """The pod that a POST makes, without its status; raises Refused."""
    pod: Raw = shapes.without_nulls(manifest)
    if not pod:
        raise bad_request_error("Object 'Kind' is missing in '{}'")
    shapes.check("Pod", pod)
    metadata = pod.setdefault("metadata", {})
    _check_address(pod, namespace)
    metadata["namespace"] = namespace
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = metadata["generateName"][:58] + suffix()
    for given in ("uid", "creationTimestamp", "deletionTimestamp", "managedFields"):
        metadata.pop(given, None)
    _drop_empty(metadata)
    if found := faults(pod):
        raise invalid_error("Pod", metadata.get("name", ""), found)
    _fill(pod["spec"])
    pod["status"] = {"phase": "Pending", "qosClass": _quality(pod["spec"]["containers"])}
    return pod


def _check_address(pod: Raw, namespace: str) -> None:
    metadata = pod["metadata"]
    if pod.get("kind", "Pod") != "Pod" or pod.get("apiVersion", "v1") != "v1":
        raise bad_request_error(f"the object provided is unrecognized: {pod.get('apiVersion')}, {pod.get('kind')}")
    if metadata.get("namespace", namespace) != namespace:
        raise bad_request_error("the namespace of the provided object does not match the namespace sent on the request")
    if metadata.get("resourceVersion"):
        raise bad_request_error("resourceVersion should not be set on objects to be created")


def faults(pod: Raw) -> list[FieldFault]:
    spec = pod.get("spec") or {}
    return [*metadata_faults(pod["metadata"]), *spec_faults(spec, "spec")]


def spec_faults(spec: Raw, at: str) -> Iterator[FieldFault]:
    containers = spec.get("containers") or []
    if not containers:
        yield field_required(f"{at}.containers")
    if len(containers) > 1:
        yield field_forbidden(f"{at}.containers", "this stand-in runs one container a pod")
    if spec.get("restartPolicy", "Always") not in _POLICIES:
        yield field_not_supported(f"{at}.restartPolicy", spec["restartPolicy"], _POLICIES)
    deadline = spec.get("activeDeadlineSeconds", 1)
    if not 1 <= deadline <= 2**31 - 1:
        yield field_invalid(f"{at}.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive")
    for index, volume in enumerate(spec.get("volumes") or []):
        yield from _volume_faults(volume, f"{at}.volumes[{index}]")
    volumes = {volume.get("name") for volume in spec.get("volumes") or []}
    for index, container in enumerate(containers):
        yield from _container_faults(container, volumes, f"{at}.containers[{index}]")


def _volume_faults(volume: Raw, at: str) -> Iterator[FieldFault]:
    if fault := label_name_fault(f"{at}.name", volume.get("name", "")):
        yield fault
    if len(volume) < 2:
        yield field_required(at, "must specify a volume type")
    yield from _amount_faults({"sizeLimit": (volume.get("emptyDir") or {}).get("sizeLimit", 0)}, f"{at}.emptyDir")
    if (medium := (volume.get("emptyDir") or {}).get("medium", "")) not in {"", "Memory"}:
        yield field_not_supported(f"{at}.emptyDir.medium", medium, ["", "Memory"])


def _container_faults(container: Raw, volumes: set[Any], at: str) -> Iterator[FieldFault]:
    if fault := label_name_fault(f"{at}.name", container.get("name", "")):
        yield fault
    if not container.get("image", "").strip():
        yield field_required(f"{at}.image")
    elif container["image"] != container["image"].strip():
        yield field_invalid(f"{at}.image", container["image"], "must not have leading or trailing whitespace")
    for index, mount in enumerate(container.get("volumeMounts") or []):
        if mount.get("name") not in volumes:
            where = f"{at}.volumeMounts[{index}].name"
            yield FieldFault(where, "FieldValueNotFound", f'Not found: "{mount.get("name", "")}"')
        if not posixpath.isabs(mount.get("mountPath", "")):
            yield field_required(f"{at}.volumeMounts[{index}].mountPath")
    for index, variable in enumerate(container.get("env") or []):
        if not variable.get("name"):
            yield field_required(f"{at}.env[{index}].name")
    yield from _resource_faults(container.get("resources") or {}, f"{at}.resources")


def _resource_faults(resources: Raw, at: str) -> Iterator[FieldFault]:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    bad = [*_amount_faults(limits, f"{at}.limits"), *_amount_faults(requests, f"{at}.requests")]
    yield from bad
    for name in () if bad else requests.keys() & limits.keys():
        if quantity(requests[name]) > quantity(limits[name]):
            sentence = f"must be less than or equal to {name} limit of {limits[name]}"
            yield field_invalid(f"{at}.requests", requests[name], sentence)


def _amount_faults(amounts: Raw, at: str) -> Iterator[FieldFault]:
    for name, amount in amounts.items():
        try:
            negative = quantity(amount) < 0
        except ValueError as problem:  # found when the object is read, before it is checked
            raise bad_request_error(f'Pod in version "v1" cannot be handled as a Pod: {problem}') from problem
        else:
            if negative:
                yield field_invalid(f"{at}.{name}", amount, "must be greater than or equal to 0")


def _fill(spec: Raw) -> None:
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("enableServiceLinks", True)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("serviceAccountName", "default")
    spec.setdefault("securityContext", {})
    for container in spec["containers"]:
        newest = container["image"].rpartition("/")[2].partition(":")[2] in {"", "latest"}
        container.setdefault("imagePullPolicy", "Always" if newest else "IfNotPresent")
        resources = container.setdefault("resources", {})
        if resources.get("limits"):
            resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}
    if spec.get("automountServiceAccountToken") is not False:
        _mount_token(spec)


def _mount_token(spec: Raw) -> None:
    """Admission gives every pod a token that did not say no."""
    name = f"kube-api-access-{suffix()}"
    spec.setdefault("volumes", []).append({"name": name, "projected": {"sources": []}})
    for container in spec["containers"]:
        mounts = container.setdefault("volumeMounts", [])
        mounts.append({"name": name, "mountPath": TOKEN_MOUNT, "readOnly": True})


def _quality(containers: list[Raw]) -> str:
    resources = [each["resources"] for each in containers]
    if not any(each.get("requests") or each.get("limits") for each in resources):
        return "BestEffort"
    both = all({"cpu", "memory"} <= (each.get("limits") or {}).keys() for each in resources)
    same = all(each.get("limits") == each.get("requests") for each in resources)
    return "Guaranteed" if both and same else "Burstable"


def changed(current: Raw, wanted: Raw) -> Raw:
    """`current` as a PATCH wants it, with what no client may change put back; raises Refused."""
    name = current["metadata"]["name"]
    wanted = shapes.without_nulls(wanted)
    if fault := shapes.find_fault("Pod", wanted):
        raise invalid_error("Pod", name, [field_invalid("patch", "", fault)])
    metadata = wanted.setdefault("metadata", {})
    if metadata.get("name") != name:
        raise bad_request_error(
            f"the name of the object ({metadata.get('name', '')}) does not match the name on the URL"
        )
    if metadata.get("uid") != current["metadata"]["uid"]:
        given = metadata.get("uid", "")
        raise invalid_error("Pod", name, [field_invalid("metadata.uid", given, "field is immutable")])
    _put_back(current, wanted)
    if found := [*metadata_faults(metadata), *_spec_changes(current["spec"], wanted.get("spec") or {})]:
        raise invalid_error("Pod", name, found)
    return wanted


def _put_back(current: Raw, wanted: Raw) -> None:
    for field in _KEPT:
        wanted["metadata"].pop(field, None)
        if field in current["metadata"]:
            wanted["metadata"][field] = current["metadata"][field]
    _drop_empty(wanted["metadata"])
    wanted.update(apiVersion="v1", kind="Pod", status=copy.deepcopy(current["status"]))


def _drop_empty(metadata: Raw) -> None:
    for field in ("labels", "annotations", "ownerReferences"):
        if not metadata.get(field):
            metadata.pop(field, None)


def _spec_changes(old: Raw, new: Raw) -> Iterator[FieldFault]:
    before, after = copy.deepcopy(old), copy.deepcopy(new)
    was, is_now = before.pop("activeDeadlineSeconds", None), after.pop("activeDeadlineSeconds", None)
    for spec in (before, after):
        spec.pop("tolerations", None)
        for container in spec.get("containers") or []:
            container.pop("image", None)
    if before != after:
        yield field_forbidden("spec", _MAY_CHANGE)
    at = "spec.activeDeadlineSeconds"
    if was is not None and is_now is None:
        yield field_invalid(at, "null", "must not update from a positive integer to nil value")
    elif was is not None and is_now > was:
        yield field_invalid(at, is_now, "must be less than or equal to previous value")
    elif is_now is not None and is_now < 1:
        yield field_invalid(at, is_now, "must be between 1 and 2147483647, inclusive")
