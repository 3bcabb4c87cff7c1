"""What a pod's status says at each station of its life. Dictionaries in, dictionaries out."""

from hummingbird.lab.kubernetes_api.access import Raw
from tests.standins.kubernetes.containers import Ending
from tests.standins.kubernetes.store import timestamp

NODE = "lab-node"
_HOST = "127.0.0.1"
_UNSCHEDULABLE = "0/1 nodes are available: 1 node(s) were unschedulable."


def unscheduled(pod: Raw) -> None:
    _condition(pod, "PodScheduled", "False", "Unschedulable", _UNSCHEDULABLE)


def scheduled(pod: Raw) -> None:
    pod["spec"]["nodeName"] = NODE
    _condition(pod, "PodScheduled", "True")


def accepted(pod: Raw) -> None:
    """The kubelet has seen it; deadlines count from here."""
    pod["status"].update(hostIP=_HOST, startTime=timestamp())
    _condition(pod, "PodReadyToStartContainers", "False")
    _condition(pod, "Initialized", "True")
    waiting(pod, "ContainerCreating", "")


def waiting(pod: Raw, reason: str, message: str) -> None:
    state = {"reason": reason, "message": message} if message else {"reason": reason}
    _state(pod, {"waiting": state})
    _readiness(pod, ready=False)


def running(pod: Raw, container_id: str) -> None:
    pod["status"].update(phase="Running", podIP="10.244.0.2", podIPs=[{"ip": "10.244.0.2"}])
    _condition(pod, "PodReadyToStartContainers", "True")
    _state(pod, {"running": {"startedAt": timestamp()}}, ready=True, container_id=container_id)
    _readiness(pod, ready=True)


def terminated(pod: Raw, ending: Ending) -> None:
    _state(pod, {"terminated": _terminated(ending)})
    _readiness(pod, ready=False)


def over(pod: Raw, ending: Ending) -> None:
    """The last container has ended and none will follow."""
    terminated(pod, ending)
    pod["status"]["phase"] = "Failed" if ending.code else "Succeeded"
    _readiness(pod, ready=False, reason="PodFailed" if ending.code else "PodCompleted")


def restarting(pod: Raw, ending: Ending, restarts: int, delay_s: int) -> None:
    name = pod["spec"]["containers"][0]["name"]
    message = f"back-off {delay_s}s restarting failed container={name} pod={pod['metadata']['name']}"
    if delay_s:
        waiting(pod, "CrashLoopBackOff", message)
    else:
        terminated(pod, ending)
    status = pod["status"]["containerStatuses"][0]
    status.update(restartCount=restarts, lastState={"terminated": _terminated(ending)})


def failed(pod: Raw, reason: str, message: str) -> None:
    """The kubelet gave up on the whole pod."""
    pod["status"].update(phase="Failed", reason=reason, message=message)
    _readiness(pod, ready=False, reason="PodFailed")


def _terminated(ending: Ending) -> Raw:
    said = {"message": ending.message} if ending.message else {}
    return {"exitCode": ending.code, "reason": ending.reason, "finishedAt": timestamp(), **said}


def _state(pod: Raw, state: Raw, *, ready: bool = False, container_id: str = "") -> None:
    container = pod["spec"]["containers"][0]
    before = (pod["status"].get("containerStatuses") or [{}])[0]
    status = {
        "name": container["name"],
        "image": container["image"],
        "imageID": before.get("imageID", ""),
        "containerID": f"podman://{container_id}" if container_id else before.get("containerID", ""),
        "ready": ready,
        "started": ready,
        "restartCount": before.get("restartCount", 0),
        "state": state,
        "lastState": before.get("lastState", {}),
    }
    pod["status"]["containerStatuses"] = [status]


def _readiness(pod: Raw, *, ready: bool, reason: str = "ContainersNotReady") -> None:
    for kind in ("ContainersReady", "Ready"):
        _condition(pod, kind, "True" if ready else "False", "" if ready else reason)


def _condition(pod: Raw, kind: str, value: str, reason: str = "", message: str = "") -> None:
    conditions: list[Raw] = pod["status"].setdefault("conditions", [])
    before = next((each for each in conditions if each["type"] == kind), None)
    fresh: Raw = {"type": kind, "status": value, "lastTransitionTime": timestamp()}
    fresh.update({key: text for key, text in (("reason", reason), ("message", message)) if text})
    if before is None:
        conditions.append(fresh)
        return
    if before["status"] == value:
        fresh["lastTransitionTime"] = before["lastTransitionTime"]
    conditions[conditions.index(before)] = fresh
