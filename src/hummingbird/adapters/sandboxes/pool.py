"""Pods that stand by, shared by any number of processes with no other word between them (X6).

A Deployment keeps them; its ReplicaSet replaces each one that is claimed. Whoever takes a pod changes it under the
version it was read at, and whoever removes one does so too: of two, one comes too late and touches nothing.

An active pod whose deadline is missing or cannot be read gets a new one instead of being removed: somebody may be
using it, and nothing stays for ever.
"""

import asyncio
import random
import secrets
from collections.abc import Callable
from contextlib import suppress

from hummingbird.adapters.sandboxes.cluster import Cluster, Outrun, PodGone, Unanswered
from hummingbird.adapters.sandboxes.finishing import finished
from hummingbird.adapters.sandboxes.manifest import Raw
from hummingbird.adapters.sandboxes.marks import (
    ACTIVE,
    CLAIMED_BY,
    REAP_BY,
    ROLE,
    SESSION,
    STANDBY,
    session_label,
    stamp,
)
from hummingbird.adapters.sandboxes.pod import Pod
from hummingbird.domain.errors import HummingbirdError
from hummingbird.domain.limits import (
    CLAIM_POLL_S,
    CLAIM_WARNING_S,
    LINGER_S,
    LINGERING_PODS,
    REAP_EVERY_S,
    RECLAIM_TRIES,
    SANDBOX_DEADLINE_S,
)
from hummingbird.ports.clock import Clock


class Pool:
    """`warn` is told what an operator should know and nobody can be asked about."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        warn: Callable[[str], None],
        *,
        deadline_s: float = SANDBOX_DEADLINE_S,
        linger_s: float = LINGER_S,
        max_lingering: int = LINGERING_PODS,
    ) -> None:
        self.cluster = cluster
        self._clock = clock
        self._warn = warn
        self._deadline_s = deadline_s
        self._linger_s = linger_s
        self._max_lingering = max_lingering
        self._reaping: asyncio.Task[None] | None = None

    async def claim(self) -> Pod:
        """A pod that nobody ever used, however long it takes. Raises SandboxUnavailable."""
        began, warned = self._clock.now(), False
        while True:
            standing, trouble = await self._standing()
            for pod in standing:
                if taken := await self._taken(pod):
                    self._reap_soon()
                    return taken
            if not warned and self._clock.now() - began >= CLAIM_WARNING_S:
                warned = True
                self._warn(
                    f"No sandbox has come free in {self.cluster.namespace} for {CLAIM_WARNING_S:g} s: {trouble}."
                )
            await self._clock.sleep(CLAIM_POLL_S)

    async def _standing(self) -> tuple[list[Pod], str]:
        """The pods that can be claimed, and what keeps the others from it. Those that are not ready are left alone: the
        Deployment would replace them, and with a broken image go on for ever."""
        try:
            pods = [pod for pod in await self.cluster.list({ROLE: STANDBY}) if not pod.leaving]
        except Unanswered as error:
            return [], str(error).rstrip(".")
        free = [pod for pod in pods if pod.usable and pod.untouched]
        random.shuffle(free)  # so that many claimers do not all run after the same one
        used = [pod.name for pod in pods if not pod.untouched]
        stuck = next((pod.hurdle.sentence for pod in pods if pod.hurdle), "")
        if used:
            return free, f"{', '.join(used)} stands by and was used before; delete it"
        if not pods:
            return free, "no pod stands by; check the pool's Deployment and its number of replicas"
        return free, f"{len(pods)} stand by, none is ready{f': {stuck}' if stuck else ''}"

    async def _taken(self, pod: Pod) -> Pod | None:
        """The pod, if it is ours now."""
        claimer = secrets.token_hex(8)
        changes: Raw = {
            "labels": {ROLE: ACTIVE, SESSION: None},
            "annotations": {REAP_BY: self._deadline(), CLAIMED_BY: claimer, SESSION: None},
            "ownerReferences": None,
        }
        return await finished(self._written(pod, changes, claimer), self._let_go)

    async def _written(self, pod: Pod, changes: Raw, claimer: str) -> Pod | None:
        try:
            return await self.cluster.patch(pod, changes, unchanged=True)
        except (Outrun, PodGone):
            return None
        except Unanswered:
            return await self._found_again(pod, claimer)

    async def _found_again(self, pod: Pod, claimer: str) -> Pod | None:
        """Nobody said whether the pod was taken: it bears our mark, or it is not ours."""
        try:
            found = await self.cluster.get(pod.name)
        except (PodGone, Unanswered):
            return None  # if it was taken after all, its deadline removes it
        return found if found.uid == pod.uid and found.annotations.get(CLAIMED_BY) == claimer else None

    async def _let_go(self, pod: Pod | None) -> None:
        if pod is not None:
            with suppress(HummingbirdError):  # its deadline removes it then
                await self.cluster.delete(pod.name, pod.uid)

    @property
    def may_linger(self) -> bool:
        """Whether any pod is kept for a reply at all."""
        return self._linger_s > 0 and self._max_lingering > 0

    async def linger(self, pod: Pod, session_id: str) -> None:
        """Keeps the pod for a reply. Raises SandboxBroken, SandboxUnavailable."""
        until = stamp(self._clock.now() + self._linger_s)
        changes = {
            "labels": {SESSION: session_label(session_id)},
            "annotations": {REAP_BY: until, SESSION: session_id},
        }
        await finished(self.cluster.patch(pod, changes, unchanged=False))

    async def reclaim(self, session_id: str) -> Pod | None:
        """The pod that lingers for this session, ours again; None when it is gone, overdue or taken. Raises
        SandboxUnavailable, Unanswered."""
        wanted = {ROLE: ACTIVE, SESSION: session_label(session_id)}
        for _ in range(RECLAIM_TRIES):  # its node writes to it too
            waiting = [pod for pod in await self.cluster.list(wanted) if self._waits(pod, session_id)]
            if not waiting:
                return None
            if taken := await self._taken(waiting[0]):
                self._reap_soon()
                return taken
        return None

    def _waits(self, pod: Pod, session_id: str) -> bool:
        return pod.usable and pod.session_id == session_id and (pod.reap_by or 0.0) > self._clock.now()

    def _overdue(self, pod: Pod) -> bool:
        return pod.reap_by is not None and pod.reap_by <= self._clock.now()

    def _deadline(self) -> str:
        return stamp(self._clock.now() + self._deadline_s)

    async def reap_expired(self) -> list[str]:
        """One pass; the names of what it removed. Raises SandboxUnavailable, Unanswered."""
        pods = [pod for pod in await self.cluster.list({ROLE: ACTIVE}) if not pod.leaving]
        for pod in pods:
            if pod.reap_by is None:
                await self._given_time(pod)
        due = [pod for pod in pods if self._overdue(pod) or (pod.lingers and pod.ending)]
        lingering = sorted((pod for pod in pods if pod.lingers and pod.reap_by and pod not in due), key=_deadline_of)
        due += lingering[: max(0, len(lingering) - self._max_lingering)]
        return [pod.name for pod in due if await self._reaped(pod)]

    async def _given_time(self, pod: Pod) -> None:
        with suppress(Outrun, PodGone):
            await self.cluster.patch(pod, {"annotations": {REAP_BY: self._deadline()}}, unchanged=True)
        self._warn(f"The pod {pod.name} is active without a readable {REAP_BY}; it got {self._deadline_s:g} s.")

    async def _reaped(self, pod: Pod) -> bool:
        try:
            await self.cluster.delete(pod.name, pod.uid, pod.version)
        except (Outrun, PodGone):
            return False  # claimed again, or somebody else reaped it
        return True

    async def keep_reaping(self, every_s: float = REAP_EVERY_S) -> None:
        """Until it is cancelled."""
        while True:
            await self._reap()
            await self._clock.sleep(every_s)

    async def _reap(self) -> None:
        try:
            await self.reap_expired()
        except HummingbirdError as error:
            self._warn(f"Sandboxes that are overdue could not be removed: {error}")

    def _reap_soon(self) -> None:
        if self._reaping is None or self._reaping.done():
            self._reaping = asyncio.create_task(self._reap())

    async def close(self) -> None:
        """Ends what goes on in the background, and the connection. Pods stay: each has its deadline."""
        if self._reaping is not None:
            self._reaping.cancel()
            await asyncio.wait({self._reaping})
        await self.cluster.close()


def _deadline_of(pod: Pod) -> float:
    return pod.reap_by or 0.0
