"""A pod that is ours alone: talked to, asked what became of it, removed. How it became ours is its owner's business."""

from hummingbird.adapters.sandboxes.cluster import Cluster, Outrun, PodGone, Unanswered
from hummingbird.adapters.sandboxes.command import CommandSandbox
from hummingbird.adapters.sandboxes.kubectl import Kubectl, PodLink
from hummingbird.adapters.sandboxes.link import Place
from hummingbird.adapters.sandboxes.pod import Pod
from hummingbird.domain.errors import HummingbirdError, SandboxBroken, SandboxUnavailable
from hummingbird.domain.limits import POD_POLL_S, POD_REMOVALS, POD_VERDICT_S, PROBE_TIMEOUT_S
from hummingbird.ports.clock import Clock
from hummingbird.ports.sandbox import Executed

NO_DIRECTORY = 126  # what a command ends with while process 1 has not made /tmp/data


class OwnPod:
    """`uid` is empty as long as nobody knows whether the pod exists."""

    def __init__(self, cluster: Cluster, kubectl: Kubectl, clock: Clock, name: str, uid: str = "") -> None:
        self._cluster = cluster
        self._kubectl = kubectl
        self._clock = clock
        self.name = name
        self.uid = uid

    async def connect(self) -> PodLink:
        """Raises SandboxBroken."""
        return await self._kubectl.open(self.name, self.verdict)

    async def verdict(self) -> str:
        """What became of the pod, as a sentence; empty when nothing is wrong with it. The status follows what happens
        with a delay, so that a pod that looks well is looked at again. Never raises."""
        until = self._clock.now() + POD_VERDICT_S
        while True:
            try:
                pod = await self._cluster.get(self.name)
            except PodGone:
                return f"the pod {self.name} is gone: somebody or something deleted it."
            except HummingbirdError:
                return ""
            said = self._said(pod)
            if said or self._clock.now() >= until:
                return said or ("" if pod.ready else self._stopped(pod))
            await self._clock.sleep(POD_POLL_S)

    def _said(self, pod: Pod) -> str:
        if self.uid and pod.uid != self.uid:
            return f"the pod {self.name} is gone: another one has its name."
        if pod.ending:
            return f"the pod {self.name} ended: {pod.ending}."
        return f"the pod {self.name} is being deleted." if pod.leaving else ""

    def _stopped(self, pod: Pod) -> str:
        return f"the container of the pod {self.name} does not run{f': {pod.hurdle.sentence}' if pod.hurdle else ''}."

    async def remove(self) -> None:
        """Raises SandboxBroken when it may still be there."""
        last: HummingbirdError | None = None
        for _ in range(POD_REMOVALS):
            try:
                await self._cluster.delete(self.name, self.uid)
            except (PodGone, Outrun):  # outrun: another one has its name
                last = None
                if self.uid:
                    return
            except Unanswered as error:
                last = error
            except SandboxUnavailable as error:
                raise self._left_behind(error) from error
            else:
                return
            await self._clock.sleep(POD_POLL_S)  # a creation that nobody answered may come through even now
        if last is not None:
            raise self._left_behind(last) from last

    def _left_behind(self, error: HummingbirdError) -> SandboxBroken:
        return SandboxBroken(
            f"The pod {self.name} could not be removed: delete it with `kubectl delete pod {self.name} -n "
            f"{self._cluster.namespace}`. {error}"
        )


async def first_words(place: Place, clock: Clock, command: str) -> Executed:
    """A command that says whether the place is as it should be. Raises SandboxUnavailable, SandboxBroken."""
    sandbox, until = CommandSandbox(place), clock.now() + PROBE_TIMEOUT_S
    while True:
        try:
            done = await sandbox.exec(command, timeout_s=PROBE_TIMEOUT_S)
        except SandboxBroken as error:
            if "pods/exec" in str(error):
                raise SandboxUnavailable(
                    "You may not run commands in pods: bind the role hummingbird-sandboxes in the sandboxes' namespace "
                    f"(pods/exec: create, get). {error}"
                ) from error
            raise
        if done.exit_code != NO_DIRECTORY or clock.now() >= until:
            return done
        await clock.sleep(POD_POLL_S)
