"""A container's log as the cluster gives it: which container is meant, whether it has begun, and which part is wanted.

Facts 4 has the refusals' words. Knows pods and bytes.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from hummingbird.lab.konflux.objects import Item
from hummingbird.lab.konflux.world import Logs
from hummingbird.lab.kubernetes.refusals import Fault, Raw, bad_request, invalid, wrong

_UNPLAYED = ("sinceSeconds", "sinceTime", "stream")
_TRUE = {"true", "True", "1"}


def log(pod: Item, query: Mapping[str, str], logs: Logs) -> bytes:
    """Raises Refused."""
    tail, limit = _number(pod, query, "tailLines", 0), _number(pod, query, "limitBytes", 1)
    unplayed = [name for name in _UNPLAYED if query.get(name)]
    if unplayed:
        raise bad_request(f"This stand-in does not play {', '.join(unplayed)}.")
    container = _container(pod, query.get("container", ""))
    _check_begun(pod, container)
    if query.get("previous") in _TRUE:
        raise bad_request(f'previous terminated container "{container}" in pod "{pod.name}" not found')
    content = last_lines(logs.read(pod.name, container) or b"", tail)
    if query.get("timestamps") in _TRUE:
        content = _stamped(content, pod)
    return content if limit is None else content[:limit]


def last_lines(content: bytes, count: int | None) -> bytes:
    if count is None:
        return content
    return b"".join(content.splitlines(keepends=True)[-count:]) if count else b""


def _container(pod: Item, asked: str) -> str:
    spec = pod.thing["spec"]
    names = [each["name"] for key in ("initContainers", "containers") for each in spec.get(key) or []]
    if asked:
        if asked not in names:
            raise bad_request(f"container {asked} is not valid for pod {pod.name}")
        return asked
    if len(spec["containers"]) == 1:
        return str(spec["containers"][0]["name"])
    # facts 4: the init containers are named too, before the others
    choice = f", choose one of: [{' '.join(names)}]" if names else ""
    raise bad_request(f"a container name must be specified for pod {pod.name}{choice}")


def _check_begun(pod: Item, container: str) -> None:
    if not pod.thing["spec"].get("nodeName"):
        raise bad_request(f"pod {pod.name} does not have a host assigned")
    waiting = _state(pod.thing["status"], container).get("waiting")
    if waiting is not None:
        reason = waiting.get("reason") or "ContainerCreating"
        raise bad_request(f'container "{container}" in pod "{pod.name}" is waiting to start: {reason}')


def _state(status: Raw, container: str) -> Raw:
    keys = ("initContainerStatuses", "containerStatuses")
    for each in (each for key in keys for each in status.get(key) or []):
        if each.get("name") == container:
            return each.get("state") or {}
    return {}


def _number(pod: Item, query: Mapping[str, str], name: str, least: int) -> int | None:
    text = query.get(name, "")
    if not text:
        return None
    try:
        found = int(text)
    except ValueError as problem:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from problem
    if found < least:
        fault: Fault = wrong(name, found, f"must be greater than or equal to {least}")
        raise invalid("PodLogOptions", pod.name, [fault])
    return found


def _stamped(content: bytes, pod: Item) -> bytes:
    """The kubelet kept a time for each line; a case does not, so they are a millisecond apart."""
    begun = datetime.fromisoformat(pod.thing["status"].get("startTime") or pod.created)
    lines = content.splitlines(keepends=True)
    return b"".join(f"{_nano(begun, index)} ".encode() + line for index, line in enumerate(lines))


def _nano(begun: datetime, milliseconds: int) -> str:
    moment = (begun + timedelta(milliseconds=milliseconds)).astimezone(UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f") + "000Z"
