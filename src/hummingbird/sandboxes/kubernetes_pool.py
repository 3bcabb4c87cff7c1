"""The `k8spool` backend: pods that stand by, shared by any number of processes that coordinate only through the pods.

A Deployment keeps the pods; its ReplicaSet replaces each one that is claimed. Whoever claims or removes a pod names the
version at which it was read, so of two processes only one succeeds and the other changes nothing.

An active pod whose deadline is missing or unreadable gets a new deadline instead of being removed: somebody may be
using it, and so it still ends some day.
"""

import asyncio
import random
import secrets
from collections.abc import Callable
from contextlib import suppress

from hummingbird.core.errors import HummingbirdError, SandboxBroken, SandboxUnavailable
from hummingbird.core.limits import (
    CLAIM_DISCARDS,
    CLAIM_POLL_S,
    CLAIM_WARNING_S,
    LINGER_S,
    LINGERING_PODS,
    REAP_EVERY_S,
    RECLAIM_TRIES,
    SANDBOX_DEADLINE_S,
)
from hummingbird.core.protocols.observer import Clock
from hummingbird.sandboxes.kubernetes_api import (
    ClusterUnreachableError,
    PodApi,
    PodConflictError,
    PodGoneError,
    PodStatus,
)
from hummingbird.sandboxes.kubernetes_manifest import (
    ACTIVE,
    CLAIMED_BY_ANNOTATION,
    REAP_BY_ANNOTATION,
    ROLE_LABEL,
    SESSION_LABEL,
    STANDBY,
    JsonObject,
    format_timestamp,
    session_label,
)
from hummingbird.sandboxes.kubernetes_pod import (
    Kubectl,
    OwnedPod,
    PodLink,
    holder_marks,
    probe_backend,
    remove_abandoned,
)
from hummingbird.sandboxes.local_process import run_to_completion


class PodPool:
    """Claims, keeps and removes the pods of a pool.

    `warn` receives messages for the operator; whoever waits for a pod for `warning_s` seconds causes one.
    """

    def __init__(
        self,
        cluster: PodApi,
        clock: Clock,
        warn: Callable[[str], None],
        *,
        deadline_s: float = SANDBOX_DEADLINE_S,
        linger_s: float = LINGER_S,
        max_lingering: int = LINGERING_PODS,
        warning_s: float = CLAIM_WARNING_S,
    ) -> None:
        self.cluster = cluster
        self._clock = clock
        self._warn = warn
        self._deadline_s = deadline_s
        self._linger_s = linger_s
        self._max_lingering = max_lingering
        self._warning_s = warning_s
        self._reaping: asyncio.Task[None] | None = None

    async def claim(self, session_id: str = "") -> PodStatus:
        """Wait for a pod that nobody ever used, and claim it for the session, however long it takes.

        Raises SandboxUnavailable.
        """
        began, warned = self._clock.now(), False
        while True:
            standing, trouble = await self._list_standby()
            for pod in standing:
                if taken := await self._try_claim(pod, session_id):
                    self._schedule_reap()
                    return taken
            if not warned and self._clock.now() - began >= self._warning_s:
                warned = True
                self._warn(
                    f"No sandbox has come free in {self.cluster.namespace} for {self._warning_s:g} s: {trouble}."
                )
            await self._clock.sleep(CLAIM_POLL_S)

    async def _list_standby(self) -> tuple[list[PodStatus], str]:
        """Return the pods that can be claimed, and why there are no others.

        Pods that are not ready are left alone: the Deployment would replace a removed one, and with a broken image that
        would go on for ever.
        """
        try:
            pods = [pod for pod in await self.cluster.list({ROLE_LABEL: STANDBY}) if not pod.is_terminating]
        except ClusterUnreachableError as error:
            return [], str(error).rstrip(".")
        free = [pod for pod in pods if pod.is_usable and pod.was_never_claimed]
        random.shuffle(free)  # so that concurrent claimers do not all try the same pod
        used = [pod.name for pod in pods if not pod.was_never_claimed]
        stuck = next((pod.obstacle.sentence for pod in pods if pod.obstacle), "")
        if used:
            return free, f"{', '.join(used)} stands by and was used before; delete it"
        if not pods:
            return free, "no pod stands by; check the pool's Deployment and its number of replicas"
        return free, f"{len(pods)} stand by, none is ready{f': {stuck}' if stuck else ''}"

    async def _try_claim(self, pod: PodStatus, session_id: str) -> PodStatus | None:
        """Claim the pod; return None when somebody else was faster or it is gone."""
        claimer = secrets.token_hex(8)
        labels, annotations = holder_marks(session_id)
        changes: JsonObject = {
            "labels": {ROLE_LABEL: ACTIVE, SESSION_LABEL: None, **labels},
            "annotations": {
                REAP_BY_ANNOTATION: self._new_deadline(),
                CLAIMED_BY_ANNOTATION: claimer,
                SESSION_LABEL: None,
                **annotations,
            },
            "ownerReferences": None,
        }
        return await run_to_completion(self._patch_claim(pod, changes, claimer), self._discard_pod)

    async def _patch_claim(self, pod: PodStatus, changes: JsonObject, claimer: str) -> PodStatus | None:
        try:
            return await self.cluster.patch(pod, changes, unchanged=True)
        except (PodConflictError, PodGoneError):
            return None
        except ClusterUnreachableError:
            return await self._confirm_claim(pod, claimer)

    async def _confirm_claim(self, pod: PodStatus, claimer: str) -> PodStatus | None:
        """Read the pod again after an unconfirmed claim; return it only if it carries our mark."""
        try:
            found = await self.cluster.get(pod.name)
        except (PodGoneError, ClusterUnreachableError):
            return None  # if the claim took effect after all, the pod's deadline removes it
        return found if found.uid == pod.uid and found.annotations.get(CLAIMED_BY_ANNOTATION) == claimer else None

    async def _discard_pod(self, pod: PodStatus | None) -> None:
        if pod is not None:
            with suppress(HummingbirdError):  # the pod's deadline removes it otherwise
                await self.cluster.delete(pod.name, pod.uid)

    @property
    def can_linger(self) -> bool:
        """Whether pods are kept for replies at all."""
        return self._linger_s > 0 and self._max_lingering > 0

    async def linger(self, pod: PodStatus, session_id: str) -> None:
        """Keep the pod for a reply. Raises SandboxBroken, SandboxUnavailable."""
        until = format_timestamp(self._clock.now() + self._linger_s)
        changes = {
            "labels": {SESSION_LABEL: session_label(session_id)},
            "annotations": {REAP_BY_ANNOTATION: until, SESSION_LABEL: session_id},
        }
        await run_to_completion(self.cluster.patch(pod, changes, unchanged=False))

    async def reclaim(self, session_id: str) -> PodStatus | None:
        """Claim the pod that lingers for this session; return None when it is gone, overdue or taken.

        Raises SandboxUnavailable, ClusterUnreachableError.
        """
        wanted = {ROLE_LABEL: ACTIVE, SESSION_LABEL: session_label(session_id)}
        for _ in range(RECLAIM_TRIES):  # the pod's node changes it too, which makes our claim conflict
            waiting = [pod for pod in await self.cluster.list(wanted) if self._is_waiting_for(pod, session_id)]
            if not waiting:
                return None
            if taken := await self._try_claim(waiting[0], session_id):
                self._schedule_reap()
                return taken
        return None

    def _is_waiting_for(self, pod: PodStatus, session_id: str) -> bool:
        return pod.is_usable and pod.session_id == session_id and (pod.reap_by or 0.0) > self._clock.now()

    def _is_overdue(self, pod: PodStatus) -> bool:
        return pod.reap_by is not None and pod.reap_by <= self._clock.now()

    def _new_deadline(self) -> str:
        return format_timestamp(self._clock.now() + self._deadline_s)

    async def reap_expired(self) -> list[str]:
        """Remove overdue pods once and return their names. Raises SandboxUnavailable, ClusterUnreachableError."""
        pods = [pod for pod in await self.cluster.list({ROLE_LABEL: ACTIVE}) if not pod.is_terminating]
        for pod in pods:
            if pod.reap_by is None:
                await self._set_deadline(pod)
        due = [pod for pod in pods if self._is_overdue(pod) or (pod.is_lingering and pod.end_reason)]
        lingering = sorted(
            (pod for pod in pods if pod.is_lingering and pod.reap_by and pod not in due), key=_deadline_of
        )
        due += lingering[: max(0, len(lingering) - self._max_lingering)]
        return [pod.name for pod in due if await self._try_reap(pod)]

    async def _set_deadline(self, pod: PodStatus) -> None:
        with suppress(PodConflictError, PodGoneError):
            await self.cluster.patch(pod, {"annotations": {REAP_BY_ANNOTATION: self._new_deadline()}}, unchanged=True)
        self._warn(
            f"The pod {pod.name} is active without a readable {REAP_BY_ANNOTATION}; it got {self._deadline_s:g} s."
        )

    async def _try_reap(self, pod: PodStatus) -> bool:
        try:
            await self.cluster.delete(pod.name, pod.uid, pod.version)
        except (PodConflictError, PodGoneError):
            return False  # claimed again, or somebody else reaped it
        return True

    async def reap_forever(self, every_s: float = REAP_EVERY_S) -> None:
        """Remove overdue pods every `every_s` seconds, until cancelled."""
        while True:
            await self._reap_and_warn()
            await self._clock.sleep(every_s)

    async def _reap_and_warn(self) -> None:
        try:
            await self.reap_expired()
        except HummingbirdError as error:
            self._warn(f"Sandboxes that are overdue could not be removed: {error}")

    def _schedule_reap(self) -> None:
        if self._reaping is None or self._reaping.done():
            self._reaping = asyncio.create_task(self._reap_and_warn())

    async def close(self) -> None:
        """Stop the background task and close the connection. Pods stay: each has its deadline."""
        if self._reaping is not None:
            self._reaping.cancel()
            await asyncio.wait({self._reaping})
        await self.cluster.close()


def _deadline_of(pod: PodStatus) -> float:
    return pod.reap_by or 0.0


UNUSED_PROBE = 'test "$(ls -A /tmp)" = data && test -z "$(ls -A)"'
ALIVE_PROBE = "true"


class PoolBackend:
    """Runs the runner in a pod of the pool, which is claimed at the start and checked before it is used.

    With `session_id`, the pod that lingers for that session is taken back if it still exists; `was_reclaimed` says
    whether it was.
    """

    name = "k8spool"

    def __init__(self, pool: PodPool, kubectl: Kubectl, clock: Clock, session_id: str = "") -> None:
        self._pool = pool
        self._kubectl = kubectl
        self._clock = clock
        self._session_id = session_id
        self._pod: PodStatus | None = None
        self._owned_pod: OwnedPod | None = None
        self.was_reclaimed = False

    @property
    def pod_name(self) -> str:
        """The pod's name; empty while there is no pod."""
        return self._owned_pod.name if self._owned_pod is not None else ""

    async def start(self) -> None:
        if self._owned_pod is not None:
            raise SandboxBroken("The sandbox was started already: clean it up first.")
        try:
            await remove_abandoned(self._pool.cluster, self._session_id)
            if self._session_id and (kept := await self._pool.reclaim(self._session_id)):
                self.was_reclaimed = not await self._occupy(kept, ALIVE_PROBE)
            if not self.was_reclaimed:
                await self._claim()
        except BaseException:
            with suppress(SandboxBroken):  # report the first error only; the pod's deadline removes it
                await run_to_completion(self.remove())
            raise

    async def _claim(self) -> None:
        trouble = ""
        for _ in range(CLAIM_DISCARDS):
            await self.remove()
            trouble = await self._occupy(await self._pool.claim(self._session_id), UNUSED_PROBE)
            if not trouble:
                return
        raise SandboxBroken(f"{CLAIM_DISCARDS} pods of the pool could not be used. The last one: {trouble}")

    async def _occupy(self, pod: PodStatus, check: str) -> str:
        """Make the pod ours and probe it; return what is wrong with it, or an empty string."""
        self._pod = pod
        self._owned_pod = OwnedPod(self._pool.cluster, self._kubectl, self._clock, pod.name, pod.uid)
        try:
            done = await probe_backend(self, self._clock, check)
        except SandboxBroken as error:
            return str(error)
        return f"{pod.name} was used before, or its image has no test and ls." if done.exit_code else ""

    async def connect(self) -> PodLink:
        if self._owned_pod is None:
            raise SandboxBroken("The sandbox has no pod: start it first.")
        return await self._owned_pod.connect()

    async def remove(self) -> None:
        if self._owned_pod is not None:
            await run_to_completion(self._owned_pod.remove())
            self._owned_pod = self._pod = None

    async def linger(self, session_id: str) -> None:
        """Release the pod for whoever handles the reply, or remove it where the pool keeps none."""
        if self._pod is None:
            raise SandboxBroken("The sandbox has no pod that could be kept: start it first.")
        if not self._pool.can_linger:
            await self.remove()
            return
        try:
            await self._pool.linger(self._pod, session_id)
        except (SandboxBroken, SandboxUnavailable):
            await self.remove()
        self._owned_pod = self._pod = None
