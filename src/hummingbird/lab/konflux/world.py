"""What Konflux knows of a case: objects in the cluster, objects in the archive, logs in either, and who may look.

Both servers answer from it, neither changes it. Tests add to it, or plan faults, before and between requests.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from hummingbird.lab.case import Case
from hummingbird.lab.konflux.objects import Item, api_version, filled, item, many
from hummingbird.lab.kubernetes.access import Access, Account, Rules
from hummingbird.lab.kubernetes.refusals import Raw
from hummingbird.lab.planned import Faults, Seen

TOKEN = "lab-konflux-token"  # noqa: S105  # opens a stand-in on loopback
READ_RULES: Rules = {
    "pipelineruns": ("get", "list"),
    "taskruns": ("get", "list"),
    "pods": ("get", "list"),
    "pods/log": ("get",),
}
_FIRST_NUMBER = 4711


class Logs:
    """Of containers, below a folder: POD/CONTAINER.log."""

    def __init__(self, case: Case, folder: str) -> None:
        self._case = case
        self._folder = case.folder / folder

    def containers(self, pod: str) -> list[str]:
        return [file.stem for file in sorted((self._folder / pod).glob("*.log"))]

    def read(self, pod: str, container: str) -> bytes | None:
        """None where there is none."""
        file = self._folder / pod / f"{container}.log"
        return _with_addresses(self._case, file.read_bytes()) if file.is_file() else None


@dataclass
class Shelf:
    """The objects of one server, in the order in which they came."""

    items: list[Item] = field(default_factory=list)

    def add(self, things: Iterable[Raw]) -> None:
        for thing in things:
            self.items.append(item(thing, _FIRST_NUMBER + len(self.items)))

    def add_many(self, template: Raw, count: int) -> None:
        self.items.extend(many(template, count, _FIRST_NUMBER + len(self.items)))

    def of(self, resource: str, namespace: str = "") -> list[Item]:
        wanted = (each for each in self.items if each.resource == resource)
        return [each for each in wanted if namespace in {"", each.metadata["namespace"]}]

    def remove(self, resource: str, name: str) -> None:
        self.items = [each for each in self.items if (each.resource, each.name) != (resource, name)]


@dataclass
class KonfluxWorld:
    """`revision` grows when the cluster compacts its history, which makes older continue tokens expire.
    `old_archive`: KubeArchive says `items: null` when there are none, as early releases do."""

    namespace: str
    application: str
    now: str
    live_logs: Logs
    archived_logs: Logs
    live: Shelf = field(default_factory=Shelf)
    archive: Shelf = field(default_factory=Shelf)
    access: Access = field(default_factory=Access)
    revision: int = 10145
    old_archive: bool = False
    cluster_faults: Faults = field(default_factory=Faults)
    archive_faults: Faults = field(default_factory=Faults)
    requests: list[Seen] = field(default_factory=list)

    def in_cluster(self, thing: Raw) -> Raw:
        """Raises Unplayable."""
        # the API server converts what was written in an older version, KubeArchive keeps it as it came
        return {**self._filled(thing, self.live_logs), "apiVersion": api_version(thing["kind"])}

    def in_archive(self, thing: Raw) -> Raw:
        """Raises Unplayable."""
        return self._filled(thing, self.archived_logs)

    def _filled(self, thing: Raw, logs: Logs) -> Raw:
        name = str((thing.get("metadata") or {}).get("name", ""))
        return filled(thing, self.namespace, self.now, logs.containers(name))


def load(case: Case) -> KonfluxWorld:
    """Raises Unplayable for an object that cannot be served."""
    world = empty(case)
    fill(world, case)
    return world


def empty(case: Case) -> KonfluxWorld:
    """The case's Konflux before it holds anything: enough to serve it and so learn its addresses."""
    site = case.json("konflux/site.json", {})
    world = KonfluxWorld(
        namespace=site.get("namespace", "lab-tenant"),
        application=site.get("application", "lab"),
        now=str(case.about.get("now", "2026-03-02T10:00:00Z")),
        live_logs=Logs(case, "konflux/logs"),
        archived_logs=Logs(case, "konflux/archived_logs"),
    )
    world.access.accounts[TOKEN] = reader(world.namespace, READ_RULES)
    return world


def fill(world: KonfluxWorld, case: Case) -> None:
    """Raises Unplayable."""
    world.live.add(world.in_cluster(thing) for thing in _objects(case, "konflux/live"))
    world.archive.add(world.in_archive(thing) for thing in _objects(case, "konflux/archive"))


def reader(namespace: str, rules: Rules) -> Account:
    granted = {resource: frozenset(verbs) for resource, verbs in rules.items()}
    return Account(f"system:serviceaccount:{namespace}:hummingbird", namespace, granted)


def _objects(case: Case, folder: str) -> Iterable[Raw]:
    """A file holds one object, or a list of them."""
    for file in case.files(folder, "*.json"):
        found = case.json(str(file.relative_to(case.folder)))
        yield from found.get("items", [found])


def _with_addresses(case: Case, content: bytes) -> bytes:
    for name, address in case.addresses.items():
        content = content.replace(b"{{" + name.encode() + b"}}", address.encode())
    return content
