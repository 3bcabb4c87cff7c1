"""Deployments as manifests: checked, and translated into the ReplicaSet that keeps their pods.

Knows manifests alone; the controller acts on them.
"""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from hummingbird.lab.kubernetes_api.access import FieldFault, Raw, bad_request_error, field_invalid, invalid_error
from hummingbird.lab.kubernetes_api.resources import LabelSelector
from tests.standins.kubernetes import shapes
from tests.standins.kubernetes.api_errors import field_forbidden, field_not_supported, field_required
from tests.standins.kubernetes.names import metadata_faults
from tests.standins.kubernetes.pods import spec_faults

HASH = "pod-template-hash"


def newborn(manifest: Any, namespace: str) -> Raw:
    deployment: Raw = shapes.without_nulls(manifest)
    shapes.check("Deployment", deployment)
    metadata = deployment.setdefault("metadata", {})
    if metadata.get("namespace", namespace) != namespace:
        raise bad_request_error("the namespace of the provided object does not match the namespace sent on the request")
    metadata["namespace"] = namespace
    deployment.setdefault("spec", {}).setdefault("replicas", 1)
    deployment["status"] = {}
    if found := list(_faults(deployment)):
        raise invalid_error("Deployment", metadata.get("name", ""), found)
    return deployment


def changed(current: Raw, wanted: Raw) -> Raw:
    """`current` as a PATCH wants it; its template stays."""
    fresh = newborn(wanted, current["metadata"]["namespace"])
    if fresh["metadata"].get("name") != current["metadata"]["name"]:
        raise bad_request_error("the name of the object does not match the name on the URL")
    if fresh["spec"].get("template") != current["spec"]["template"]:
        fault = field_forbidden("spec.template", "this stand-in plays no rolling update")
        raise invalid_error("Deployment", current["metadata"]["name"], [fault])
    return {**fresh, "status": current["status"]}


def _faults(deployment: Raw) -> Iterator[FieldFault]:
    spec = deployment["spec"]
    template = spec.get("template") or {}
    pod_spec = template.get("spec") or {}
    yield from metadata_faults(deployment["metadata"])
    if spec["replicas"] < 0:
        yield field_invalid("spec.replicas", spec["replicas"], "must be greater than or equal to 0")
    if not spec.get("selector"):
        yield field_required("spec.selector")
    elif not LabelSelector.of(spec["selector"])((template.get("metadata") or {}).get("labels") or {}):
        labels = (template.get("metadata") or {}).get("labels") or {}
        yield field_invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
    yield from spec_faults(pod_spec, "spec.template.spec")
    if (policy := pod_spec.get("restartPolicy", "Always")) != "Always":
        yield field_not_supported("spec.template.spec.restartPolicy", policy, ["Always"])
    if "activeDeadlineSeconds" in pod_spec:
        where = "spec.template.spec.activeDeadlineSeconds"
        yield field_forbidden(where, "activeDeadlineSeconds in ReplicaSet is not Supported")


def replica_set(deployment: Raw) -> Raw:
    """The ReplicaSet that keeps a Deployment's pods; its name and its pods' labels carry a hash of the template."""
    metadata, spec = deployment["metadata"], deployment["spec"]
    digest = hashlib.sha256(json.dumps(spec["template"], sort_keys=True).encode()).hexdigest()[:10]
    template = json.loads(json.dumps(spec["template"]))
    template["metadata"]["labels"][HASH] = digest
    selector = json.loads(json.dumps(spec["selector"]))
    selector.setdefault("matchLabels", {})[HASH] = digest
    return {
        "metadata": {
            "name": f"{metadata['name']}-{digest}",
            "namespace": metadata["namespace"],
            "labels": template["metadata"]["labels"],
            "ownerReferences": [owner_reference("Deployment", deployment)],
        },
        "spec": {"replicas": spec["replicas"], "selector": selector, "template": template},
        "status": {"replicas": 0},
    }


def owner_reference(kind: str, owner: Raw) -> Raw:
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def controller_of(thing: Raw) -> Raw | None:
    owners: list[Raw] = thing["metadata"].get("ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), None)
