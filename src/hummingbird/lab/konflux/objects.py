"""Objects as the servers keep them: what a case leaves out is filled in, and each can be written without being held.

An Item is a name and labels to select by, and writes its JSON when asked: thousands of large ones cost nothing until
then. Knows nothing of requests.
"""

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from hummingbird.lab.kubernetes.refusals import Raw

TEKTON = "tekton.dev"
GROUPS = {"pipelineruns": TEKTON, "taskruns": TEKTON, "pods": ""}
KINDS = {"pipelineruns": "PipelineRun", "taskruns": "TaskRun", "pods": "Pod"}
RESOURCES = {kind: resource for resource, kind in KINDS.items()}
_NAMES = uuid.UUID("6f0a1c7e-3f0e-4a8e-9a55-5d3a4f1f2b10")
_OVER = ("Succeeded", "Failed")


class Unplayable(Exception):
    """A case holds an object that no server here can serve."""


class Model:
    """The parts of an object's JSON before and after its metadata, keys in order as the real servers write them."""

    def __init__(self, thing: Raw) -> None:
        self.thing = thing
        before = {key: value for key, value in sorted(thing.items()) if key < "metadata"}
        after = {key: value for key, value in sorted(thing.items()) if key > "metadata"}
        self.head = "".join(f"{json.dumps(key)}:{written(value)}," for key, value in before.items())
        self.tail = "".join(f",{json.dumps(key)}:{written(value)}" for key, value in after.items())


@dataclass(frozen=True, slots=True)
class Item:
    """`number` is its row in KubeArchive's database."""

    resource: str
    metadata: Raw
    model: Model
    number: int

    @property
    def name(self) -> str:
        return str(self.metadata["name"])

    @property
    def uid(self) -> str:
        return str(self.metadata["uid"])

    @property
    def created(self) -> str:
        return str(self.metadata["creationTimestamp"])

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.get("labels") or {}

    @property
    def thing(self) -> Raw:
        return {**self.model.thing, "metadata": self.metadata}

    def text(self, *, typed: bool = True) -> bytes:
        """Without its kind and apiVersion if not `typed`."""
        head = self.model.head if typed else ""
        return f'{{{head}"metadata":{written(self.metadata)}{self.model.tail}}}'.encode()


def item(thing: Raw, number: int) -> Item:
    return Item(RESOURCES[thing["kind"]], thing["metadata"], Model(thing), number)


def many(template: Raw, count: int, first_number: int) -> Iterator[Item]:
    """So many objects like the template, each with a name, uid and time of its own."""
    model, metadata = Model(template), template["metadata"]
    born = datetime.fromisoformat(metadata["creationTimestamp"])
    for index in range(count):
        name = f"{metadata['name']}-{index:05d}"
        own = {"name": name, "uid": uid_of(template["kind"], name), "creationTimestamp": stamp(born, index)}
        yield Item(RESOURCES[template["kind"]], {**metadata, **own}, model, first_number + index)


def filled(thing: Raw, namespace: str, now: str, containers: list[str]) -> Raw:
    """As a server would have completed it. Raises Unplayable for a kind that is not served."""
    kind = thing.get("kind")
    if kind not in RESOURCES:
        raise Unplayable(f"A case's Konflux holds {', '.join(RESOURCES)} alone, not {kind!r}; remove the object.")
    given = thing.get("metadata") or {}
    if not given.get("name"):
        raise Unplayable(f"A {kind} of this case has no metadata.name; give it one.")
    status = thing.get("status") or {}
    metadata = {
        "namespace": namespace,
        "uid": uid_of(kind, given["name"]),
        "creationTimestamp": status.get("startTime") or now,
        "resourceVersion": "1000",
        "generation": 1,
        **given,
    }
    whole = {"apiVersion": api_version(kind), **thing, "metadata": metadata}
    return _pod(whole, containers) if kind == "Pod" else {"spec": {}, **whole}


def _pod(pod: Raw, containers: list[str]) -> Raw:
    """With a container for each of its logs if it names none, on a node unless it still waits for one."""
    spec = {"containers": [{"name": name, "image": "lab"} for name in containers], **(pod.get("spec") or {})}
    status = {"phase": "Succeeded", **(pod.get("status") or {})}
    if status["phase"] in {*_OVER, "Running"}:
        spec.setdefault("nodeName", "lab-node")
    return {**pod, "spec": spec, "status": status}


def api_version(kind: str) -> str:
    return "v1" if kind == "Pod" else f"{TEKTON}/v1"


def uid_of(kind: str, name: str) -> str:
    return str(uuid.uuid5(_NAMES, f"{kind}/{name}"))


def stamp(born: datetime, seconds: int) -> str:
    return (born + timedelta(seconds=seconds)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def written(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
