"""Sandboxes in Kubernetes: on the real cluster that HUMMINGBIRD_TEST_KUBECONFIG names, else on the lab's stand-in,
whose pods are podman's containers. kubectl is the real one where it is installed, else its double."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from hummingbird.app.console import SystemClock
from hummingbird.core.protocols.sandbox import Sandbox
from hummingbird.sandboxes.command_sandbox import CommandSandbox
from hummingbird.sandboxes.kubernetes_manifest import ACTIVE, DEFAULT_LIMITS, ROLE_LABEL, SESSION_LABEL
from hummingbird.sandboxes.kubernetes_pod import KubernetesBackend, connect_cluster
from hummingbird.sandboxes.kubernetes_pool import PodPool, PoolBackend
from tests.contracts.sandboxes.backends.host import descendants
from tests.sandbox_image import sandbox_image
from tests.sandboxes.kube import KUBECONFIG, LabStage, Stage, beside, pool_of, real_stage, shape
from tests.standins.kubernetes.server import KubernetesLab

STANDBY_PODS = 3
# The lab's node bounds both as the kubelet of the cluster does that it was compared with. Another one may not, may end
# a whole pod when one of its processes takes too much memory, and may run it as a user of its own choice (OpenShift).
LAB_SETTLES = frozenset({"processes", "memory", "user"})


@contextmanager
def namespace(folder: Path) -> Iterator[Stage]:
    """One that holds nothing yet."""
    if KUBECONFIG:
        with real_stage(folder) as real:
            yield real
        return
    image = sandbox_image()
    with KubernetesLab() as lab:
        made = LabStage(lab, folder, image)
        yield made
        made.clear()


class Kubernetes:
    name = "k8s"
    settles = frozenset[str]() if KUBECONFIG else LAB_SETTLES

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self._places: dict[Sandbox, KubernetesBackend | PoolBackend] = {}

    def make(self) -> Sandbox:
        return self._made(KubernetesBackend(self.stage.site, shape(self.stage, limits=DEFAULT_LIMITS), SystemClock()))

    def make_tight(self) -> Sandbox:
        """/tmp is a disk of the node: its bound is measured now and then, and going over it ends the pod."""
        return self.make()

    def _made(self, place: "KubernetesBackend | PoolBackend") -> Sandbox:
        sandbox = CommandSandbox(place)
        self._places[sandbox] = place
        return sandbox

    async def kill(self, sandbox: Sandbox) -> None:
        name = self._places[sandbox].pod_name
        await beside(lambda: self.stage.delete(name))

    async def traces(self) -> set[str]:
        """Pods in use, not those that stand by, nor those that wait for a reply."""
        pods = [pod["metadata"] for pod in await beside(self.stage.pods)]
        ours = {
            pod["name"]
            for pod in pods
            if pod["labels"].get(ROLE_LABEL) == ACTIVE and SESSION_LABEL not in pod["labels"]
        }
        return ours | {f"process {pid} {name}" for pid, name in descendants() if name == "kubectl"}


class Pooled(Kubernetes):
    name = "k8spool"

    def __init__(self, stage: Stage, place: "PoolDoor") -> None:
        super().__init__(stage)
        self._door = place

    def make(self) -> Sandbox:
        return self._made(self._door())


class PoolDoor:
    """What every claim shares: the pool, and kubectl."""

    def __init__(self, stage: Stage) -> None:
        cluster, self._kubectl = connect_cluster(stage.site, {})
        self.pool = PodPool(cluster, SystemClock(), lambda _: None)

    def __call__(self) -> PoolBackend:
        return PoolBackend(self.pool, self._kubectl, SystemClock())


@asynccontextmanager
async def pooled(stage: Stage) -> AsyncIterator[Pooled]:
    await beside(lambda: pool_of(stage, STANDBY_PODS))
    door = PoolDoor(stage)
    try:
        yield Pooled(stage, door)
    finally:
        await door.pool.close()
