"""A whole small cluster in a thread of its own: API server, controller and node, on loopback.

    with KubernetesLab() as lab:
        lab.namespace("sandboxes")
        token = lab.token("sandboxes")
        lab.kubeconfig(path, token, namespace="sandboxes")

Its pods are containers of the local podman, without network; images must be there already. Methods may be called
from any thread but the lab's own. By hand: `python -m tests.standins.kubernetes.server --namespace sandboxes
--kubeconfig FILE`.
"""

import argparse
import asyncio
import contextlib
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from uvicorn.config import Config
from uvicorn.server import ServerState

from hummingbird.lab.http_server import close_connections, open_listener, protocol_factory, uvicorn_config
from hummingbird.lab.kubernetes_api import access
from hummingbird.lab.kubernetes_api.access import (
    SANDBOX_RULES,
    TOKEN_PREFIX,
    AccessControl,
    Raw,
    RecordedRequest,
    Rules,
    ServiceAccount,
)
from tests.standins.kubernetes import deployments, pod_security
from tests.standins.kubernetes.api import Api
from tests.standins.kubernetes.controller import Controller, is_ready
from tests.standins.kubernetes.execs import Execs
from tests.standins.kubernetes.kubelet import Kubelet
from tests.standins.kubernetes.podman import Podman
from tests.standins.kubernetes.registry import Pods
from tests.standins.kubernetes.store import Key, Store

Answer = TypeVar("Answer")
_EVICTED = 'Usage of EmptyDir volume "data" exceeds the limit "2Gi".'


class Cluster:
    """The parts, put together. Belongs to the loop that made it."""

    def __init__(self, program: str) -> None:
        self.store = Store()
        self.podman = Podman(program)
        self.pods = Pods(self.store)
        self.access = AccessControl()
        self.kubelet = Kubelet(self.store, self.podman)
        self.execs = Execs(self.podman)
        self.api = Api(self.store, self.pods, self.access, self.kubelet, self.execs)
        self._controlling = asyncio.create_task(Controller(self.store, self.pods).run())

    async def close(self) -> list[BaseException]:
        """What broke in the lab itself, which no test may take for the cluster's behaviour."""
        self._controlling.cancel()
        (ended,) = await asyncio.gather(self._controlling, return_exceptions=True)
        await self.kubelet.close()
        await self.podman.close()
        self.execs.close()
        broken = [] if isinstance(ended, asyncio.CancelledError) else [ended]
        return [*filter(None, broken), *self.kubelet.faults]


class KubernetesLab:
    def __init__(self, *, podman: str = "podman", port: int = 0) -> None:
        self._program = podman
        self._port = port
        self._ready = threading.Event()
        self._news = threading.Condition()
        self._changes = 0
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._cluster: Cluster | None = None
        self._faults: list[BaseException] = []

    # what a test sets up

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def url_for(self, token: str) -> str:
        """An address that carries the token itself: kubectl sends none over plain HTTP."""
        return f"{self.url}{TOKEN_PREFIX}{token}"

    def namespace(self, name: str, *, enforce: str = "restricted") -> None:
        labels = {"kubernetes.io/metadata.name": name, pod_security.ENFORCE: enforce}
        place = {"metadata": {"name": name, "labels": labels}, "status": {"phase": "Active"}}
        self._ask(lambda cluster: cluster.store.create("namespaces", place))

    def token(self, namespace: str, rules: Rules = SANDBOX_RULES, *, name: str = "hummingbird") -> str:
        """A service account's, with a role in that namespace alone."""
        return self._ask(lambda cluster: cluster.access.grant(namespace, rules, name))

    def admin_token(self) -> str:
        return self._ask(lambda cluster: cluster.access.add(ServiceAccount("kubernetes-admin")))

    def narrow(self, token: str, rules: Rules) -> None:
        self._ask(lambda cluster: cluster.access.narrow(token, rules))

    def kubeconfig(self, path: Path, token: str, namespace: str | None = None) -> Path:
        return access.write_kubeconfig(path, self.url_for(token), token, namespace)

    def deployment(self, namespace: str, manifest: Raw) -> Raw:
        return self._ask(lambda cluster: cluster.store.create("deployments", deployments.newborn(manifest, namespace)))

    def scale(self, namespace: str, name: str, replicas: int) -> None:
        def alter(cluster: Cluster) -> None:
            key = Key("deployments", namespace, name)
            thing = cluster.store.get(key)
            thing["spec"]["replicas"] = replicas
            cluster.store.replace(key, thing)

        self._ask(alter)

    def delete_deployment(self, namespace: str, name: str) -> None:
        def remove(cluster: Cluster) -> None:
            key = Key("deployments", namespace, name)
            cluster.store.remove(key, cluster.store.get(key)["metadata"]["uid"])

        self._ask(remove)

    # what goes wrong on purpose

    def hold(self) -> None:
        """New pods stay Pending until `release`: no node has room."""
        self._ask(lambda cluster: cluster.kubelet.hold())

    def release(self) -> None:
        self._ask(lambda cluster: cluster.kubelet.release())

    def kill(self, namespace: str, name: str) -> None:
        """Kill the pod's container on its node; what becomes of the pod is its restartPolicy's business."""
        uid = self.pod(namespace, name)["metadata"]["uid"]
        self._await(lambda cluster: cluster.kubelet.kill(uid))

    def evict(self, namespace: str, name: str, message: str = _EVICTED) -> None:
        uid = self.pod(namespace, name)["metadata"]["uid"]
        self._ask(lambda cluster: cluster.kubelet.evict(uid, message))

    def hang_on_unread_stdin(self, *, on: bool = True) -> None:
        """From now on a command that leaves stdin unread never ends for its client, where the real one's may not."""

        def alter(cluster: Cluster) -> None:
            cluster.execs.unread_stdin_hangs = on

        self._ask(alter)

    # what a test looks at

    @property
    def requests(self) -> list[RecordedRequest]:
        return self._ask(lambda cluster: list(cluster.access.requests))

    def pods(self, namespace: str) -> list[Raw]:
        return self._ask(lambda cluster: cluster.store.list("pods", namespace))

    def pod(self, namespace: str, name: str) -> Raw:
        return self._ask(lambda cluster: cluster.store.get(Key("pods", namespace, name)))

    def ready_pods(self, namespace: str) -> list[Raw]:
        return [pod for pod in self.pods(namespace) if is_ready(pod) and "deletionTimestamp" not in pod["metadata"]]

    def volume(self, namespace: str, name: str, volume: str) -> Path:
        """Where a pod's emptyDir on disk lies on this machine: a look inside that needs no command."""
        uid = str(self.pod(namespace, name)["metadata"]["uid"])
        return self._ask(lambda cluster: cluster.podman.folder / uid / volume)

    def wait_until(self, holds: Callable[[], Any], *, timeout_s: float = 60.0) -> None:
        """Until `holds` is true; looks again at every change of an object."""
        end = time.monotonic() + timeout_s
        while True:
            with self._news:
                seen = self._changes
            if holds():
                return
            if not self._changed_since(seen, end - time.monotonic()):
                raise TimeoutError(f"The lab waited {timeout_s:.0f} s for what did not come.")

    def _changed_since(self, seen: int, timeout_s: float) -> bool:
        with self._news:
            return self._news.wait_for(lambda: self._changes != seen, max(0.0, timeout_s))

    # its own life

    def __enter__(self) -> Self:
        door = open_listener(self._port)
        self._port = door.getsockname()[1]
        self._thread = threading.Thread(target=self._run, args=(door,), name="kubernetes-lab", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._cluster is None:
            self._thread.join()
            raise RuntimeError(f"The lab cannot run {self._program}; install podman or name another program.")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop serving and remove every container; may be called twice. Raises what broke in the lab itself."""
        if self._thread is not None and self._loop is not None and self._stopping is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join()
            self._thread = None
            if self._faults:
                raise RuntimeError("The lab itself is broken; fix it first.") from self._faults[0]

    def _ask(self, question: Callable[[Cluster], Answer]) -> Answer:
        async def answer(cluster: Cluster) -> Answer:
            return question(cluster)

        return self._await(answer)

    def _await(self, question: Callable[[Cluster], Awaitable[Answer]]) -> Answer:
        cluster = self._cluster
        assert cluster is not None
        assert self._loop is not None

        async def answer() -> Answer:
            return await question(cluster)

        return asyncio.run_coroutine_threadsafe(answer(), self._loop).result()

    def _run(self, door: socket.socket) -> None:
        try:
            asyncio.run(self._serve(door))
        except FileNotFoundError:  # no podman; whoever waits for the start is told
            door.close()
            self._cluster = None
        finally:
            self._ready.set()

    async def _serve(self, door: socket.socket) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        self._cluster = cluster = Cluster(self._program)
        await cluster.podman.sweep()
        cluster.store.listeners.append(lambda *_: self._tell())
        state = ServerState()
        server = await self._loop.create_server(protocol_factory(_config(cluster.api), state), sock=door)
        self._ready.set()
        await self._stopping.wait()
        server.close()
        self._faults = await cluster.close()
        await close_connections(state)

    def _tell(self) -> None:
        with self._news:
            self._changes += 1
            self._news.notify_all()


def _config(app: Api) -> Config:
    return uvicorn_config(
        app,
        ws="wsproto",
        ws_ping_interval=None,
        ws_max_size=64 * 1024 * 1024,  # lightkube sends all of stdin in one message
        ws_per_message_deflate=False,
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="A small Kubernetes whose pods are podman containers.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--namespace", default="sandboxes")
    parser.add_argument("--kubeconfig", type=Path, required=True, help="where to write the sandboxes' kubeconfig")
    chosen = parser.parse_args(arguments)
    with KubernetesLab(port=chosen.port) as lab:
        lab.namespace(chosen.namespace)
        lab.kubeconfig(chosen.kubeconfig, lab.token(chosen.namespace), chosen.namespace)
        sys.stdout.write(f"{lab.url}\n")
        sys.stdout.flush()
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
