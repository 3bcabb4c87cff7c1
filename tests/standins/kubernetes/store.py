"""The cluster's memory: objects by kind, namespace and name, and a version that grows with every change.

What goes in and out is copied. A change that changes nothing makes no new version, as in the real one.
"""

import copy
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from hummingbird.lab.kubernetes_api.access import GROUPS, ApiStatusError, Raw, not_found_error
from tests.standins.kubernetes.api_errors import already_exists_error, conflict_error

KINDS = {"namespaces": "Namespace", "pods": "Pod", "deployments": "Deployment", "replicasets": "ReplicaSet"}


def qualified(resource: str) -> str:
    """As messages name it: pods, deployments.apps."""
    group = GROUPS.get(resource, "")
    return f"{resource}.{group}" if group else resource


def api_version(resource: str) -> str:
    return f"{GROUPS[resource]}/v1" if GROUPS[resource] else "v1"


def timestamp(moment: datetime | None = None) -> str:
    return (moment or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True, order=True)
class Key:
    resource: str
    namespace: str
    name: str


Listener = Callable[[Key, Raw | None], None]


class Store:
    """One thread's: the lab's loop. `listeners` hear every change, with None for what was removed."""

    def __init__(self) -> None:
        self._objects: dict[Key, Raw] = {}
        self._version = 1000
        self.listeners: list[Listener] = []

    @property
    def version(self) -> str:
        return str(self._version)

    def create(self, resource: str, thing: Raw) -> Raw:
        metadata = thing["metadata"]
        key = Key(resource, metadata.get("namespace", ""), metadata["name"])
        if key in self._objects:
            raise already_exists_error(qualified(resource), key.name)
        fresh = copy.deepcopy(thing)
        fresh.update(apiVersion=api_version(resource), kind=KINDS[resource])
        fresh["metadata"].update(uid=str(uuid.uuid4()), creationTimestamp=timestamp())
        return self._keep(key, fresh)

    def get(self, key: Key) -> Raw:
        if key not in self._objects:
            raise not_found_error(qualified(key.resource), key.name)
        return copy.deepcopy(self._objects[key])

    def find(self, key: Key, uid: str) -> Raw | None:
        """This very object, or None where it is gone or another has taken its name."""
        thing = self._objects.get(key)
        return copy.deepcopy(thing) if thing and thing["metadata"]["uid"] == uid else None

    def list(self, resource: str, namespace: str = "") -> list[Raw]:
        keys = sorted(key for key in self._objects if key.resource == resource)
        return [copy.deepcopy(self._objects[key]) for key in keys if namespace in {"", key.namespace}]

    def replace(self, key: Key, thing: Raw) -> Raw:
        """The version in `thing`, where it has one, must be the current one."""
        current = self.get(key)
        expected = thing["metadata"].get("resourceVersion")
        if expected and not expected.isdigit():
            raise ApiStatusError(500, "InternalError", f'strconv.ParseUint: parsing "{expected}": invalid syntax')
        if expected and expected != current["metadata"]["resourceVersion"]:
            raise conflict_error(qualified(key.resource), key.name)
        thing = copy.deepcopy(thing)
        thing["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"]
        return current if thing == current else self._keep(key, thing)

    def change(self, key: Key, uid: str, alter: Callable[[Raw], None]) -> Raw | None:
        """Alter this very object without preconditions, as controllers do; None when it is gone."""
        thing = self.find(key, uid)
        if thing is None:
            return None
        alter(thing)
        return self.replace(key, thing)

    def remove(self, key: Key, uid: str) -> Raw | None:
        thing = self.find(key, uid)
        if thing is None:
            return None
        del self._objects[key]
        self._version += 1
        thing["metadata"]["resourceVersion"] = self.version
        self._tell(key, None)
        return thing

    def _keep(self, key: Key, thing: Raw) -> Raw:
        self._version += 1
        thing["metadata"]["resourceVersion"] = self.version
        self._objects[key] = thing
        self._tell(key, copy.deepcopy(thing))
        return copy.deepcopy(thing)

    def _tell(self, key: Key, thing: Raw | None) -> None:
        for listener in list(self.listeners):
            listener(key, thing)
