"""A sandbox out of the pool (X6): claimed at its start, checked before it is believed, kept for a reply or removed."""

from contextlib import suppress

from hummingbird.adapters.sandboxes.finishing import finished
from hummingbird.adapters.sandboxes.kubectl import Kubectl, PodLink
from hummingbird.adapters.sandboxes.own_pod import OwnPod, first_words
from hummingbird.adapters.sandboxes.pod import Pod
from hummingbird.adapters.sandboxes.pool import Pool
from hummingbird.domain.errors import SandboxBroken, SandboxUnavailable
from hummingbird.domain.limits import CLAIM_DISCARDS
from hummingbird.ports.clock import Clock

UNUSED = 'test "$(ls -A /tmp)" = data && test -z "$(ls -A)"'
THERE = "true"


class PoolPlace:
    """`session_id`: whose lingering pod is taken back if it is still there. `reclaimed` says whether it was."""

    name = "k8spool"

    def __init__(self, pool: Pool, kubectl: Kubectl, clock: Clock, session_id: str = "") -> None:
        self._pool = pool
        self._kubectl = kubectl
        self._clock = clock
        self._session_id = session_id
        self._pod: Pod | None = None
        self._own: OwnPod | None = None
        self.reclaimed = False

    @property
    def pod_name(self) -> str:
        """Empty while there is none."""
        return self._own.name if self._own is not None else ""

    async def start(self) -> None:
        if self._own is not None:
            raise SandboxBroken("The sandbox was started already: clean it up first.")
        try:
            if self._session_id and (kept := await self._pool.reclaim(self._session_id)):
                self.reclaimed = not await self._trouble(kept, THERE)
            if not self.reclaimed:
                await self._claim()
        except BaseException:
            with suppress(SandboxBroken):  # its deadline removes it then, and what went wrong first is the news
                await finished(self.remove())
            raise

    async def _claim(self) -> None:
        trouble = ""
        for _ in range(CLAIM_DISCARDS):
            await self.remove()
            trouble = await self._trouble(await self._pool.claim(), UNUSED)
            if not trouble:
                return
        raise SandboxBroken(f"{CLAIM_DISCARDS} pods of the pool could not be used. The last one: {trouble}")

    async def _trouble(self, pod: Pod, check: str) -> str:
        """Occupies the pod; what is wrong with it, if anything."""
        self._pod = pod
        self._own = OwnPod(self._pool.cluster, self._kubectl, self._clock, pod.name, pod.uid)
        try:
            done = await first_words(self, self._clock, check)
        except SandboxBroken as error:
            return str(error)
        return f"{pod.name} was used before, or its image has no test and ls." if done.exit_code else ""

    async def connect(self) -> PodLink:
        if self._own is None:
            raise SandboxBroken("The sandbox has no pod: start it first.")
        return await self._own.connect()

    async def remove(self) -> None:
        if self._own is not None:
            await finished(self._own.remove())
            self._own = self._pod = None

    async def linger(self, session_id: str) -> None:
        """The pod is no longer ours then: whoever answers takes it back. Removed where none is kept."""
        if self._pod is None:
            raise SandboxBroken("The sandbox has no pod that could be kept: start it first.")
        if not self._pool.may_linger:
            await self.remove()
            return
        try:
            await self._pool.linger(self._pod, session_id)
        except (SandboxBroken, SandboxUnavailable):
            await self.remove()
        self._own = self._pod = None
