"""A pod as its API describes it, reduced to what we ask of one. Parsed once; nothing here asks anybody anything."""

from dataclasses import dataclass, field
from typing import Any

import msgspec

from hummingbird.adapters.sandboxes.marks import CLAIMED_BY, REAP_BY, SESSION, moment
from hummingbird.domain.errors import SandboxBroken
from hummingbird.domain.limits import PULL_PATIENCE_S
from hummingbird.domain.text import shortened

FOREVER = float("inf")
# What keeps a container from starting, and for how long one hopes that it passes
_PATIENCE = dict.fromkeys(("ErrImagePull", "ImagePullBackOff", "RegistryUnavailable"), PULL_PATIENCE_S)
_PULLING = {*_PATIENCE, "InvalidImageName", "ErrImageNeverPull"}
_ON_ITS_WAY = {None, "ContainerCreating", "PodInitializing"}
_ENDINGS = {
    "Evicted": "it was evicted",
    "DeadlineExceeded": "its time was up (activeDeadlineSeconds)",
    "OOMKilled": "it ran out of memory",
    "Preempting": "it made room for another pod",
    "Preempted": "it made room for another pod",
    "Terminated": "its node was shut down",
    "NodeShutdown": "its node was shut down",
    "Shutdown": "its node was shut down",
    "NodeLost": "its node was lost",
}


class RawReason(msgspec.Struct, rename="camel", frozen=True):
    reason: str | None = None
    message: str | None = None
    exit_code: int | None = None


class RawState(msgspec.Struct, rename="camel", frozen=True):
    waiting: RawReason | None = None
    terminated: RawReason | None = None


class RawContainer(msgspec.Struct, rename="camel", frozen=True):
    ready: bool = False
    state: RawState | None = None


class RawCondition(msgspec.Struct, rename="camel", frozen=True):
    type: str
    status: str
    reason: str | None = None
    message: str | None = None


class RawStatus(msgspec.Struct, rename="camel", frozen=True):
    phase: str = ""
    reason: str | None = None
    message: str | None = None
    conditions: list[RawCondition] | None = None
    container_statuses: list[RawContainer] | None = None


class RawMetadata(msgspec.Struct, rename="camel", frozen=True):
    name: str
    uid: str
    resource_version: str
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    deletion_timestamp: str | None = None


class RawPod(msgspec.Struct, rename="camel", frozen=True):
    metadata: RawMetadata
    status: RawStatus = msgspec.field(default_factory=RawStatus)


@dataclass(frozen=True, slots=True)
class Hurdle:
    """Why a pod does not run yet. `patience_s`: how long it may last before nobody believes that it goes away."""

    reason: str
    sentence: str
    patience_s: float = FOREVER


@dataclass(frozen=True, slots=True)
class Pod:
    """`version` changes with every change. `ready`: its container runs. `leaving`: it is being deleted. `ending`: why
    it will never run again, empty while it may."""

    name: str
    uid: str
    version: str
    ready: bool = False
    leaving: bool = False
    ending: str = ""
    hurdle: Hurdle | None = None
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)

    @property
    def reap_by(self) -> float | None:
        return moment(self.annotations.get(REAP_BY, ""))

    @property
    def session_id(self) -> str:
        """Whose reply it waits for; empty unless it lingers."""
        return self.annotations.get(SESSION, "") if SESSION in self.labels else ""

    @property
    def lingers(self) -> bool:
        return SESSION in self.labels

    @property
    def usable(self) -> bool:
        return self.ready and not self.leaving and not self.ending

    @property
    def untouched(self) -> bool:
        """Nobody ever claimed it: a pod that was put back into the pool by hand is not fresh."""
        return not {REAP_BY, SESSION, CLAIMED_BY} & (self.labels.keys() | self.annotations.keys())


def pod_of(raw: Any) -> Pod:
    """Raises SandboxBroken for what is no pod."""
    try:
        return _told(msgspec.convert(raw, RawPod, strict=True))
    except msgspec.MsgspecError as error:
        raise SandboxBroken(
            f"The cluster's description of a pod cannot be read ({error}): is the server in your kubeconfig a "
            "Kubernetes API?"
        ) from error


def _told(raw: RawPod) -> Pod:
    status, metadata = raw.status, raw.metadata
    containers = status.container_statuses or []
    return Pod(
        name=metadata.name,
        uid=metadata.uid,
        version=metadata.resource_version,
        ready=status.phase == "Running" and bool(containers) and all(each.ready for each in containers),
        leaving=metadata.deletion_timestamp is not None,
        ending=_ending(status),
        hurdle=_hurdle(status),
        labels=metadata.labels or {},
        annotations=metadata.annotations or {},
    )


def _ending(status: RawStatus) -> str:
    if status.phase not in {"Failed", "Succeeded"}:
        return ""
    ends = [each.state.terminated for each in status.container_statuses or () if each.state and each.state.terminated]
    last = ends[0] if ends else RawReason()
    reason = status.reason or last.reason or status.phase
    said = _ENDINGS.get(reason, f"it ended ({reason})")
    message = shortened(status.message or last.message or "", 300).rstrip(".")
    return f"{said}: {message}" if message else said


def _hurdle(status: RawStatus) -> Hurdle | None:
    for each in status.container_statuses or ():
        waiting = each.state.waiting if each.state else None
        if waiting is not None and waiting.reason not in _ON_ITS_WAY:
            return _waiting(waiting)
    for condition in status.conditions or ():
        if condition.type == "PodScheduled" and condition.status == "False":
            said = shortened(condition.message or condition.reason or "", 300).rstrip(".")
            return Hurdle("Unschedulable", f"no node can take it ({said}); add nodes or ask for less in `resources`")
    return None


def _waiting(waiting: RawReason) -> Hurdle:
    reason, said = waiting.reason or "", shortened(waiting.message or "", 300).rstrip(".")
    if reason in _PULLING:
        what = f"its image cannot be pulled ({reason}: {said}); check `image` and the namespace's pull secrets"
    elif "root" in said or "non-root" in said:
        what = f"its image runs as root ({said}); give the image a numeric USER, such as 65532"
    else:
        what = f"its container cannot be started ({reason}: {said})"
    return Hurdle(reason, what, _PATIENCE.get(reason, 0.0))
