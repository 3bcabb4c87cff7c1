"""A pod of its own for each sandbox (X5). Never chosen by guessing; `registry` makes one when it is asked for by name.

The pod's name is chosen here before it is made, so that it can be removed whatever happens to the answer. Its own
deadline ends it when we cannot, and its mark lets any reaper of the namespace collect what is left of it.
"""

import asyncio
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress

from hummingbird.adapters.sandboxes.cluster import Cluster, Outrun, PodGone, Unanswered
from hummingbird.adapters.sandboxes.finishing import finished
from hummingbird.adapters.sandboxes.kubeconfig import Site, find
from hummingbird.adapters.sandboxes.kubectl import Kubectl, PodLink, found_kubectl
from hummingbird.adapters.sandboxes.manifest import PodShape, pod
from hummingbird.adapters.sandboxes.marks import ACTIVE, REAP_BY, ROLE, stamp
from hummingbird.adapters.sandboxes.own_pod import OwnPod, first_words
from hummingbird.adapters.sandboxes.pod import Hurdle, Pod
from hummingbird.domain.errors import SandboxBroken, SandboxUnavailable
from hummingbird.domain.limits import POD_POLL_S, POD_READY_S
from hummingbird.ports.clock import Clock


def open_site(site: Site, environment: Mapping[str, str]) -> tuple[Cluster, Kubectl]:
    """Both doors to one namespace. Raises SandboxUnavailable."""
    found = find(site, environment)
    return Cluster(found), found_kubectl(site, found)


class KubernetesPlace:
    """`environment` is where the cluster is looked for; the process's own when None."""

    name = "k8s"

    def __init__(self, site: Site, shape: PodShape, clock: Clock, environment: Mapping[str, str] | None = None) -> None:
        self._site = site
        self._shape = shape
        self._clock = clock
        self._environment = os.environ if environment is None else environment
        self._cluster: Cluster | None = None
        self._own: OwnPod | None = None
        self._removal = asyncio.Lock()

    @property
    def pod_name(self) -> str:
        """Empty while there is none."""
        return self._own.name if self._own is not None else ""

    async def start(self) -> None:
        if self._own is not None:
            raise SandboxBroken("The sandbox was started already: clean it up first.")
        try:
            cluster, kubectl = await asyncio.to_thread(open_site, self._site, self._environment)
            own = OwnPod(cluster, kubectl, self._clock, f"hummingbird-sandbox-{secrets.token_hex(5)}")
            self._cluster, self._own = cluster, own
            await self._create(cluster, own)
            await self._until_it_runs(cluster, own)
            done = await first_words(self, self._clock, "true")
            if done.exit_code:
                raise SandboxUnavailable(f"The image runs no commands: check `image` ({done.stderr[:300]!r}).")
        except BaseException:
            with suppress(SandboxBroken):  # its own deadline ends it then, and what went wrong first is the news
                await finished(self.remove())
            raise

    async def _create(self, cluster: Cluster, own: OwnPod) -> None:
        overdue = self._clock.now() + POD_READY_S + self._shape.deadline_s
        manifest = pod(self._shape, own.name, {ROLE: ACTIVE}, {REAP_BY: stamp(overdue)})
        try:
            made = await finished(cluster.create(manifest))
        except Unanswered:
            raise
        except (SandboxUnavailable, Outrun):
            self._own = None  # it was not made; one of that name is somebody else's
            raise
        own.uid = made.uid

    async def _until_it_runs(self, cluster: Cluster, own: OwnPod) -> None:
        began, stuck_since, hurdle = self._clock.now(), None, None
        while (now := self._clock.now()) < began + POD_READY_S:
            found = await _look(cluster, own.name)
            if found is not None and found.usable:
                return
            hurdle = _checked(found) or hurdle
            if hurdle is not None and hurdle.patience_s < POD_READY_S:
                stuck_since = now if stuck_since is None else stuck_since
                if now >= stuck_since + hurdle.patience_s:
                    break
            await self._clock.sleep(POD_POLL_S)
        why = hurdle.sentence if hurdle is not None else "nobody says why; look at `kubectl describe pod`"
        raise SandboxUnavailable(f"The sandbox's pod does not run after {now - began:.0f} s: {why}.")

    async def connect(self) -> PodLink:
        if self._own is None:
            raise SandboxBroken("The sandbox has no pod: start it first.")
        return await self._own.connect()

    async def remove(self) -> None:
        async with self._removal:  # the first one to be done closes what the second one would still need
            if self._own is not None:
                await finished(self._own.remove())  # what fails may be tried again
                self._own = None
            if self._cluster is not None:
                await self._cluster.close()

    async def linger(self, session_id: str) -> None:
        """A pod of its own costs too much to keep: its deadline counts from its start."""
        await self.remove()


async def _look(cluster: Cluster, name: str) -> Pod | None:
    """None when the cluster has nothing to say just now."""
    try:
        return await cluster.get(name)
    except Unanswered:
        return None
    except PodGone as error:
        raise SandboxBroken(f"The pod {name} was deleted before it ran. Try again.") from error


def _checked(found: Pod | None) -> Hurdle | None:
    if found is None:
        return Hurdle("Unanswered", "the cluster does not answer any more")
    if found.ending:
        raise SandboxUnavailable(
            f"The sandbox's pod ended before it could be used: {found.ending}. Check that `image` has python3 and that "
            "`resources` suffice."
        )
    if found.leaving:
        raise SandboxBroken(f"The pod {found.name} was deleted before it ran. Try again.")
    return found.hurdle
