"""Hold the state of Konflux for a case: objects in the cluster and in the archive, logs of both, and access rules.

Both servers answer from this state and do not change it. Tests add objects or plan faults, before and between requests.
"""

import json
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from hummingbird.lab.case import LabCase
from hummingbird.lab.fault_injection import Faults, ReceivedRequest
from hummingbird.lab.kubernetes_api.access import AccessControl, Raw, Rules, ServiceAccount

TEKTON = "tekton.dev"
GROUPS = {"pipelineruns": TEKTON, "taskruns": TEKTON, "pods": ""}
KINDS = {"pipelineruns": "PipelineRun", "taskruns": "TaskRun", "pods": "Pod"}
RESOURCES = {kind: resource for resource, kind in KINDS.items()}
_UID_NAMESPACE = uuid.UUID("6f0a1c7e-3f0e-4a8e-9a55-5d3a4f1f2b10")
_ENDED_PHASES = ("Succeeded", "Failed")


class UnservableObject(Exception):
    """A case contains an object that the stand-in cannot serve."""


class ObjectTemplate:
    """The JSON of an object before and after its metadata, with sorted keys as the real servers write them."""

    def __init__(self, thing: Raw) -> None:
        self.manifest = thing
        before = {key: value for key, value in sorted(thing.items()) if key < "metadata"}
        after = {key: value for key, value in sorted(thing.items()) if key > "metadata"}
        self.head = "".join(f"{json.dumps(key)}:{compact_json(value)}," for key, value in before.items())
        self.tail = "".join(f",{json.dumps(key)}:{compact_json(value)}" for key, value in after.items())


@dataclass(frozen=True, slots=True)
class KonfluxItem:
    """An object that a server has; `number` is its row in KubeArchive's database.

    It holds metadata to select by and writes its JSON on demand, so that thousands of large objects cost little.
    """

    resource: str
    metadata: Raw
    model: ObjectTemplate
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
    def manifest(self) -> Raw:
        return {**self.model.manifest, "metadata": self.metadata}

    def to_json(self, *, typed: bool = True) -> bytes:
        """Return the object's JSON; without kind and apiVersion if `typed` is False."""
        head = self.model.head if typed else ""
        return f'{{{head}"metadata":{compact_json(self.metadata)}{self.model.tail}}}'.encode()


def make_item(thing: Raw, number: int) -> KonfluxItem:
    """Create an item from a complete object."""
    return KonfluxItem(RESOURCES[thing["kind"]], thing["metadata"], ObjectTemplate(thing), number)


def make_many_items(template: Raw, count: int, first_number: int) -> Iterator[KonfluxItem]:
    """Yield `count` objects like the template, each with its own name, uid and time."""
    model, metadata = ObjectTemplate(template), template["metadata"]
    born = datetime.fromisoformat(metadata["creationTimestamp"])
    for index in range(count):
        name = f"{metadata['name']}-{index:05d}"
        own = {"name": name, "uid": make_uid(template["kind"], name), "creationTimestamp": timestamp_after(born, index)}
        yield KonfluxItem(RESOURCES[template["kind"]], {**metadata, **own}, model, first_number + index)


def complete_object(thing: Raw, namespace: str, now: str, containers: list[str]) -> Raw:
    """Fill in what a case leaves out, as a server would. Raises UnservableObject for a kind that is not served."""
    kind = thing.get("kind")
    if kind not in RESOURCES:
        raise UnservableObject(f"A case's Konflux holds {', '.join(RESOURCES)} alone, not {kind!r}; remove the object.")
    given = thing.get("metadata") or {}
    if not given.get("name"):
        raise UnservableObject(f"A {kind} of this case has no metadata.name; give it one.")
    status = thing.get("status") or {}
    metadata = {
        "namespace": namespace,
        "uid": make_uid(kind, given["name"]),
        "creationTimestamp": status.get("startTime") or now,
        "resourceVersion": "1000",
        "generation": 1,
        **given,
    }
    whole = {"apiVersion": api_version(kind), **thing, "metadata": metadata}
    return _complete_pod(whole, containers) if kind == "Pod" else {"spec": {}, **whole}


def _complete_pod(pod: Raw, containers: list[str]) -> Raw:
    """Complete a pod: a container for each log if it names none, and a node unless it still waits for one."""
    spec = {"containers": [{"name": name, "image": "lab"} for name in containers], **(pod.get("spec") or {})}
    status = {"phase": "Succeeded", **(pod.get("status") or {})}
    if status["phase"] in {*_ENDED_PHASES, "Running"}:
        spec.setdefault("nodeName", "lab-node")
    return {**pod, "spec": spec, "status": status}


def api_version(kind: str) -> str:
    return "v1" if kind == "Pod" else f"{TEKTON}/v1"


def make_uid(kind: str, name: str) -> str:
    """Derive a stable uid from kind and name."""
    return str(uuid.uuid5(_UID_NAMESPACE, f"{kind}/{name}"))


def timestamp_after(born: datetime, seconds: int) -> str:
    """Format the time some seconds after `born`, as Kubernetes does."""
    return (born + timedelta(seconds=seconds)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def compact_json(value: Any) -> str:
    """Encode JSON without spaces, as the real servers do."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


KONFLUX_TOKEN = "lab-konflux-token"  # noqa: S105  # opens a stand-in on loopback
READ_RULES: Rules = {
    "pipelineruns": ("get", "list"),
    "taskruns": ("get", "list"),
    "pods": ("get", "list"),
    "pods/log": ("get",),
}
_FIRST_NUMBER = 4711


class ContainerLogs:
    """The logs of containers in a folder, as POD/CONTAINER.log."""

    def __init__(self, case: LabCase, folder: str) -> None:
        self._case = case
        self._folder = case.folder / folder

    def container_names(self, pod: str) -> list[str]:
        return [file.stem for file in sorted((self._folder / pod).glob("*.log"))]

    def read_log(self, pod: str, container: str) -> bytes | None:
        """Return a container's log; None if there is none."""
        file = self._folder / pod / f"{container}.log"
        return _fill_addresses(self._case, file.read_bytes()) if file.is_file() else None


@dataclass
class KonfluxObjects:
    """The objects of one server, in the order in which they were added."""

    items: list[KonfluxItem] = field(default_factory=list)

    def add(self, things: Iterable[Raw]) -> None:
        for thing in things:
            self.items.append(make_item(thing, _FIRST_NUMBER + len(self.items)))

    def add_many(self, template: Raw, count: int) -> None:
        self.items.extend(make_many_items(template, count, _FIRST_NUMBER + len(self.items)))

    def find(self, resource: str, namespace: str = "") -> list[KonfluxItem]:
        wanted = (each for each in self.items if each.resource == resource)
        return [each for each in wanted if namespace in {"", each.metadata["namespace"]}]

    def remove(self, resource: str, name: str) -> None:
        self.items = [each for each in self.items if (each.resource, each.name) != (resource, name)]


@dataclass
class KonfluxWorld:
    """The state of Konflux for a case.

    `revision` grows when the cluster compacts its history, which makes older continue tokens expire. With `old_archive`
    KubeArchive answers `items: null` for an empty list, as early releases do.
    """

    namespace: str
    application: str
    now: str
    live_logs: ContainerLogs
    archived_logs: ContainerLogs
    live: KonfluxObjects = field(default_factory=KonfluxObjects)
    archive: KonfluxObjects = field(default_factory=KonfluxObjects)
    access: AccessControl = field(default_factory=AccessControl)
    revision: int = 10145
    old_archive: bool = False
    cluster_faults: Faults = field(default_factory=Faults)
    archive_faults: Faults = field(default_factory=Faults)
    requests: list[ReceivedRequest] = field(default_factory=list)

    def complete_for_cluster(self, thing: Raw) -> Raw:
        """Complete an object as the cluster serves it. Raises UnservableObject."""
        # The API server converts objects of an older version; KubeArchive keeps them unchanged.
        return {**self._complete(thing, self.live_logs), "apiVersion": api_version(thing["kind"])}

    def complete_for_archive(self, thing: Raw) -> Raw:
        """Complete an object as KubeArchive serves it. Raises UnservableObject."""
        return self._complete(thing, self.archived_logs)

    def _complete(self, thing: Raw, logs: ContainerLogs) -> Raw:
        name = str((thing.get("metadata") or {}).get("name", ""))
        return complete_object(thing, self.namespace, self.now, logs.container_names(name))


def load_konflux(case: LabCase) -> KonfluxWorld:
    """Return the state of Konflux for a case. Raises UnservableObject."""
    world = create_empty_world(case)
    fill_world(world, case)
    return world


def create_empty_world(case: LabCase) -> KonfluxWorld:
    """Return the state without objects, so that the servers can start: the objects need their addresses."""
    site = case.read_json("konflux/site.json", {})
    world = KonfluxWorld(
        namespace=site.get("namespace", "lab-tenant"),
        application=site.get("application", "lab"),
        now=str(case.description.get("now", "2026-03-02T10:00:00Z")),
        live_logs=ContainerLogs(case, "konflux/logs"),
        archived_logs=ContainerLogs(case, "konflux/archived_logs"),
    )
    world.access.accounts[KONFLUX_TOKEN] = reader_account(world.namespace, READ_RULES)
    return world


def fill_world(world: KonfluxWorld, case: LabCase) -> None:
    """Add the case's objects. Raises UnservableObject."""
    world.live.add(world.complete_for_cluster(thing) for thing in _load_objects(case, "konflux/live"))
    world.archive.add(world.complete_for_archive(thing) for thing in _load_objects(case, "konflux/archive"))


def reader_account(namespace: str, rules: Rules) -> ServiceAccount:
    """Create the account that the case's token belongs to."""
    granted = {resource: frozenset(verbs) for resource, verbs in rules.items()}
    return ServiceAccount(f"system:serviceaccount:{namespace}:hummingbird", namespace, granted)


def _load_objects(case: LabCase, folder: str) -> Iterable[Raw]:
    """Yield the objects of a folder; a file contains one object or a list."""
    for file in case.list_files(folder, "*.json"):
        found = case.read_json(str(file.relative_to(case.folder)))
        yield from found.get("items", [found])


def _fill_addresses(case: LabCase, content: bytes) -> bytes:
    for name, address in case.addresses.items():
        content = content.replace(b"{{" + name.encode() + b"}}", address.encode())
    return content
