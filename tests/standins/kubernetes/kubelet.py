"""The node: starts a life for every pod that appears, and is where tests make things go wrong."""

import asyncio

from hummingbird.lab.kubernetes_api.access import Raw
from tests.standins.kubernetes.lives import Life
from tests.standins.kubernetes.podman import Podman
from tests.standins.kubernetes.store import Key, Store


class Kubelet:
    def __init__(self, store: Store, podman: Podman) -> None:
        self._store = store
        self._podman = podman
        self._lives: dict[str, Life] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.faults: list[BaseException] = []
        self._gate = asyncio.Event()
        self._gate.set()
        store.listeners.append(self._hear)

    def _hear(self, key: Key, pod: Raw | None) -> None:
        if key.resource != "pods":
            return
        if pod is not None and pod["metadata"]["uid"] not in self._lives:
            self._begin(pod)
        for life in self._lives.values():
            if life.key == key:
                life.poke()

    def _begin(self, pod: Raw) -> None:
        life = Life(pod, self._store, self._podman, self._gate)
        self._lives[life.uid] = life
        task = asyncio.create_task(life.live())
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._forget(done, life.uid))

    def _forget(self, task: asyncio.Task[None], uid: str) -> None:
        self._tasks.discard(task)
        self._lives.pop(uid, None)
        problem = None if task.cancelled() else task.exception()
        if problem is not None:
            self.faults.append(problem)

    def hold(self) -> None:
        """New pods stay Pending: no node has room for them."""
        self._gate.clear()

    def release(self) -> None:
        self._gate.set()

    def container(self, uid: str) -> str | None:
        """The container that runs for a pod now."""
        life = self._lives.get(uid)
        return life.container.name if life is not None and life.container is not None else None

    async def kill(self, uid: str) -> None:
        """The pod's first process dies as if the node had killed it."""
        container = self._lives[uid].container
        if container is None:
            raise RuntimeError("This pod has no container to kill; wait until it runs.")
        await container.settled()
        await container.signal("KILL")

    def evict(self, uid: str, message: str) -> None:
        self._lives[uid].evict(message)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
