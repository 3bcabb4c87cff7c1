"""The controller that keeps as many pods as a Deployment asks for.

It plays the habits that a pool of pods meets: it releases a pod whose labels no longer match, adopts any orphan
whose labels do, makes replacements, deletes the surplus, and collects pods whose owner is gone. No rolling update.
"""

import asyncio
from collections.abc import Iterator

from hummingbird.lab.kubernetes_api.access import ApiStatusError, Raw
from hummingbird.lab.kubernetes_api.resources import LabelSelector
from tests.standins.kubernetes.deployments import controller_of, owner_reference, replica_set
from tests.standins.kubernetes.registry import OVER, Pods
from tests.standins.kubernetes.store import Key, Store


class Controller:
    """Wakes at every change and brings each ReplicaSet to its number."""

    def __init__(self, store: Store, pods: Pods) -> None:
        self._store = store
        self._pods = pods
        self._woken = asyncio.Event()
        store.listeners.append(lambda *_: self._woken.set())

    async def run(self) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            await asyncio.sleep(0)  # its own changes wake it again; others must get their turn between
            self._follow_deployments()
            for each in self._store.list("replicasets"):
                self._bring(each)
            self._collect()

    def _follow_deployments(self) -> None:
        for deployment in self._store.list("deployments"):
            wanted = replica_set(deployment)
            key = Key("replicasets", wanted["metadata"]["namespace"], wanted["metadata"]["name"])
            try:
                current = self._store.get(key)
            except ApiStatusError:
                current = self._store.create("replicasets", wanted)
            current["spec"]["replicas"] = deployment["spec"]["replicas"]
            current = self._store.replace(key, current)
            self._report(deployment, current)

    def _report(self, deployment: Raw, current: Raw) -> None:
        key = Key("deployments", deployment["metadata"]["namespace"], deployment["metadata"]["name"])
        status = {**current["status"], "updatedReplicas": current["status"]["replicas"]}
        self._store.change(key, deployment["metadata"]["uid"], lambda thing: thing.update(status=status))

    def _bring(self, each: Raw) -> None:
        mine = list(self._claimed(each))
        trouble = self._make(each, each["spec"]["replicas"] - len(mine))
        self._drop(mine, len(mine) - each["spec"]["replicas"])
        ready = sum(1 for pod in mine if is_ready(pod))
        status = {"replicas": len(mine), "readyReplicas": ready, "availableReplicas": ready, "conditions": trouble}
        key = Key("replicasets", each["metadata"]["namespace"], each["metadata"]["name"])
        self._store.change(key, each["metadata"]["uid"], lambda thing: thing.update(status=status))

    def _claimed(self, each: Raw) -> Iterator[Raw]:
        """The active pods that are this ReplicaSet's, after letting go and taking in."""
        matches = LabelSelector.of(each["spec"]["selector"])
        for pod in self._store.list("pods", each["metadata"]["namespace"]):
            if not _is_active(pod):
                continue
            owner, fits = controller_of(pod), matches(pod["metadata"].get("labels") or {})
            if owner is not None and owner["uid"] == each["metadata"]["uid"]:
                if fits:
                    yield pod
                else:
                    self._release(pod, owner["uid"])
            elif owner is None and fits:
                self._adopt(pod, each)
                yield pod

    def _release(self, pod: Raw, uid: str) -> None:
        def alter(thing: Raw) -> None:
            kept = [owner for owner in thing["metadata"]["ownerReferences"] if owner["uid"] != uid]
            thing["metadata"]["ownerReferences"] = kept
            if not kept:
                del thing["metadata"]["ownerReferences"]

        self._store.change(_key(pod), pod["metadata"]["uid"], alter)

    def _adopt(self, pod: Raw, each: Raw) -> None:
        owner = owner_reference("ReplicaSet", each)

        def alter(thing: Raw) -> None:
            thing["metadata"].setdefault("ownerReferences", []).append(owner)

        self._store.change(_key(pod), pod["metadata"]["uid"], alter)

    def _make(self, each: Raw, count: int) -> list[Raw]:
        """The conditions after it: what kept a pod from being made, said once."""
        template = each["spec"]["template"]
        metadata = {
            **template["metadata"],
            "generateName": f"{each['metadata']['name']}-",
            "ownerReferences": [owner_reference("ReplicaSet", each)],
        }
        try:
            for _ in range(count):
                self._pods.create(each["metadata"]["namespace"], {"metadata": metadata, "spec": template["spec"]})
        except ApiStatusError as refused:
            said = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": str(refused)}
            # the sentence has the pod's name in it, a new one each time: a new sentence would be news without end
            return each["status"].get("conditions") or [said]
        return []

    def _drop(self, mine: list[Raw], count: int) -> None:
        """Unready ones first, then the youngest."""
        ranked = sorted(mine, key=lambda pod: str(pod["metadata"]["creationTimestamp"]), reverse=True)
        ranked.sort(key=is_ready)
        for pod in ranked[: max(count, 0)]:
            self._pods.delete(_key(pod), {})

    def _collect(self) -> None:
        """The garbage collector: what a vanished workload owned goes too."""
        living = {each["metadata"]["uid"] for each in self._store.list("deployments")}
        for each in self._store.list("replicasets"):
            owner = controller_of(each)
            if owner and owner["uid"] not in living:
                key = Key("replicasets", each["metadata"]["namespace"], each["metadata"]["name"])
                self._store.remove(key, each["metadata"]["uid"])
        sets = {each["metadata"]["uid"] for each in self._store.list("replicasets")}
        for pod in self._store.list("pods"):
            owner = controller_of(pod)
            if owner and owner["uid"] not in sets and "deletionTimestamp" not in pod["metadata"]:
                self._pods.delete(_key(pod), {})


def is_ready(pod: Raw) -> bool:
    conditions = pod["status"].get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _is_active(pod: Raw) -> bool:
    return pod["status"]["phase"] not in OVER and "deletionTimestamp" not in pod["metadata"]


def _key(pod: Raw) -> Key:
    return Key("pods", pod["metadata"]["namespace"], pod["metadata"]["name"])
