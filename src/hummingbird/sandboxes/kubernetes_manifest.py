"""Fills in the hardened Kubernetes manifests (JSON files in `manifests/`), and reads and writes our marks on pods.

A caller decides what is in `PodSettings`; what keeps a pod harmless is fixed in the JSON files. No user is set:
OpenShift assigns one, elsewhere the image's own applies, and the kubelet refuses root.

/tmp is disk, not memory: 2 GiB of files would not fit beside 1 GiB of memory. Kubernetes measures such a volume about
every minute and evicts a pod that exceeded it; until then only the limit on the size of one file holds.
"""

import copy
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from hummingbird.core.errors import UsageError
from hummingbird.core.limits import SANDBOX_DEADLINE_S
from hummingbird.core.text import shorten_line
from hummingbird.sandboxes.runner_client import init_process_argv

DEFAULT_REQUESTS = MappingProxyType({"cpu": "100m", "memory": "256Mi", "ephemeral-storage": "256Mi"})
DEFAULT_LIMITS = MappingProxyType({"cpu": "1", "memory": "1Gi", "ephemeral-storage": "2Gi"})

_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)(m|k|[MGTPE]|[KMGTPE]i)?")
_UNITS = {"": Decimal(1), "m": Decimal("0.001"), "k": Decimal(1000)}
_UNITS |= {letter: Decimal(1000) ** power for power, letter in enumerate("MGTPE", 2)}
_UNITS |= {f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", 1)}


def parse_bytes(quantity: str) -> int:
    """Convert an amount such as `1.5Gi` to bytes. Raises UsageError."""
    return int(_parse_quantity(quantity))


def parse_cores(quantity: str) -> float:
    """Convert an amount such as `500m` to a number of cores. Raises UsageError."""
    return float(_parse_quantity(quantity))


def _parse_quantity(quantity: str) -> Decimal:
    found = _QUANTITY.fullmatch(quantity)
    if found is None or not (amount := Decimal(found[1]) * _UNITS[found[2] or ""]):
        raise UsageError(
            f"{shorten_line(quantity, 40)!r} is not an amount for a sandbox: write it like 500m, 2 or 1Gi."
        )
    return amount


# Marks that processes share through pods. Labels are for selecting pods, annotations for values.


ROLE_LABEL = "hummingbird/role"
STANDBY = "standby"
ACTIVE = "active"
REAP_BY_ANNOTATION = "hummingbird/reap-by"
SESSION_LABEL = "hummingbird/session-id"
HELD_FOR_LABEL = "hummingbird/held-for"  # the session that an active pod works for
CLAIMED_BY_ANNOTATION = "hummingbird/claimed-by"

_LABEL = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


def format_timestamp(moment: float) -> str:
    """Format seconds since the epoch as RFC 3339 in UTC, with whole seconds."""
    return datetime.fromtimestamp(int(moment), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_timestamp(stamped: str) -> float | None:
    """Return seconds since the epoch, or None for text that is not a time or has no time zone."""
    try:
        read = datetime.fromisoformat(stamped)
        return None if read.tzinfo is None else read.timestamp()
    except (ValueError, OverflowError):
        return None


def session_label(session_id: str) -> str:
    """Return the label value for a session id.

    A label's value may hold 63 characters of a small alphabet, so other ids are replaced by their digest. Whoever
    selects pods by this label must compare the annotation too.
    """
    if _LABEL.fullmatch(session_id):
        return session_id
    return "sha256-" + hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()[:48]


JsonObject: TypeAlias = dict[str, Any]

CONTAINER_NAME = "sandbox"
_MANIFEST_FOLDER = Path(__file__).parent / "manifests"
_EMPTY: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class PodSettings:
    """What an operator decides about sandbox pods.

    `labels` and `annotations` cannot replace the marks that we read again. `deadline_s` ends a pod that was made
    for one session; the pods of a pool have no such deadline, because Kubernetes would count it from their
    creation.
    """

    image: str
    requests: Mapping[str, str] = field(default_factory=lambda: DEFAULT_REQUESTS)
    limits: Mapping[str, str] = field(default_factory=lambda: DEFAULT_LIMITS)
    labels: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    annotations: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    deadline_s: int = SANDBOX_DEADLINE_S


def build_pod(shape: PodSettings, name: str, labels: Mapping[str, str], annotations: Mapping[str, str]) -> JsonObject:
    """Build a pod for one session. `labels` and `annotations` are the marks that we read again later.

    The operator's own labels take the place of our descriptive ones, such as app.kubernetes.io/name, but of no mark.
    """
    made = _copy_manifest("pod")
    made["metadata"] = {
        "name": name,
        "labels": {**made["metadata"]["labels"], **shape.labels, **labels},
        "annotations": {**shape.annotations, **annotations},
    }
    made["spec"]["activeDeadlineSeconds"] = shape.deadline_s
    _fill_spec(made["spec"], shape)
    return made


def build_deployment(shape: PodSettings, replicas: int | None = None) -> JsonObject:
    """Build the Deployment of a pool: pods that wait to be claimed."""
    made, each = _copy_manifest("pool"), _copy_manifest("pod")
    if replicas is not None:
        made["spec"]["replicas"] = replicas
    del each["spec"]["activeDeadlineSeconds"]
    each["spec"]["restartPolicy"] = "Always"
    _fill_spec(each["spec"], shape)
    labels = {**each["metadata"]["labels"], **shape.labels, ROLE_LABEL: STANDBY}
    selector = made["spec"]["selector"]["matchLabels"]
    selector |= {name: labels[name] for name in selector}
    made["spec"]["template"] = {
        "metadata": {"labels": labels, "annotations": dict(shape.annotations)},
        "spec": each["spec"],
    }
    return made


def build_role() -> JsonObject:
    """Build the Role with all permissions that we need in the sandboxes' namespace."""
    return _copy_manifest("role")


def _fill_spec(spec: JsonObject, shape: PodSettings) -> None:
    [container] = spec["containers"]
    container["image"] = shape.image
    container["command"] = list(init_process_argv())
    container["resources"] = {"requests": dict(shape.requests), "limits": dict(shape.limits)}
    if "ephemeral-storage" in shape.limits:
        spec["volumes"][0]["emptyDir"]["sizeLimit"] = shape.limits["ephemeral-storage"]


@cache
def _read_manifest(name: str) -> JsonObject:
    read: JsonObject = json.loads((_MANIFEST_FOLDER / f"{name}.json").read_text("utf-8"))
    return read


def _copy_manifest(name: str) -> JsonObject:
    return copy.deepcopy(_read_manifest(name))
