"""The hardened manifests (X5, X6, I5): JSON files beside this module, and pure functions that fill them in.

Whoever fills in a manifest can decide what is in `PodShape`, and none of what keeps a pod harmless. The user is not
set: OpenShift assigns one, elsewhere the image's own is taken, and one that is root is refused by the kubelet.

/tmp is disk, not memory: 2 GiB of files would not fit beside 1 GiB of memory. Kubernetes measures such a volume every
minute or so and evicts a pod that went over; until then the limit of one file's size holds.
"""

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from hummingbird.adapters.sandboxes.marks import ROLE, STANDBY
from hummingbird.adapters.sandboxes.quantities import LIMITS, REQUESTS
from hummingbird.adapters.sandboxes.source import keeper
from hummingbird.domain.limits import SANDBOX_DEADLINE_S

Raw: TypeAlias = dict[str, Any]

CONTAINER = "sandbox"
_SHIPPED = Path(__file__).parent / "manifests"
_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class PodShape:
    """What an operator decides. `labels` and `annotations` cannot replace ours. `deadline_s` ends a pod of its own; the
    pods of a pool have none, since it would count from their creation."""

    image: str
    requests: Mapping[str, str] = field(default_factory=lambda: REQUESTS)
    limits: Mapping[str, str] = field(default_factory=lambda: LIMITS)
    labels: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    annotations: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    deadline_s: int = SANDBOX_DEADLINE_S


def pod(shape: PodShape, name: str, labels: Mapping[str, str], annotations: Mapping[str, str]) -> Raw:
    """A pod of its own. `labels` and `annotations` are the marks that we read again."""
    made = _shipped("pod")
    made["metadata"] = {
        "name": name,
        "labels": {**shape.labels, **made["metadata"]["labels"], **labels},
        "annotations": {**shape.annotations, **annotations},
    }
    made["spec"]["activeDeadlineSeconds"] = shape.deadline_s
    _furnish(made["spec"], shape)
    return made


def deployment(shape: PodShape, replicas: int | None = None) -> Raw:
    """The pool: pods that wait to be claimed."""
    made, each = _shipped("pool"), _shipped("pod")
    if replicas is not None:
        made["spec"]["replicas"] = replicas
    del each["spec"]["activeDeadlineSeconds"]
    each["spec"]["restartPolicy"] = "Always"
    _furnish(each["spec"], shape)
    labels = {**shape.labels, **each["metadata"]["labels"], ROLE: STANDBY}
    made["spec"]["template"] = {
        "metadata": {"labels": labels, "annotations": dict(shape.annotations)},
        "spec": each["spec"],
    }
    return made


def role() -> Raw:
    """All that we may do in the sandboxes' namespace."""
    return _shipped("role")


def _furnish(spec: Raw, shape: PodShape) -> None:
    [container] = spec["containers"]
    container["image"] = shape.image
    container["command"] = list(keeper())
    container["resources"] = {"requests": dict(shape.requests), "limits": dict(shape.limits)}
    if "ephemeral-storage" in shape.limits:
        spec["volumes"][0]["emptyDir"]["sizeLimit"] = shape.limits["ephemeral-storage"]


@cache
def _read(name: str) -> Raw:
    read: Raw = json.loads((_SHIPPED / f"{name}.json").read_text("utf-8"))
    return read


def _shipped(name: str) -> Raw:
    return copy.deepcopy(_read(name))
