"""One pod's life on its node: scheduled, image found, container run and run again, and its end.

Three things happen at once: the story that the manifest tells, the wait for a deadline or an eviction, and the wait
for a deletion. Whichever comes cuts the story short. The store is told of each station; podman does the work.
"""

import asyncio
import itertools
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hummingbird.lab.kubernetes_api.access import Raw
from tests.standins.kubernetes import statuses
from tests.standins.kubernetes.containers import Container, Ending, StartFailed, run_options
from tests.standins.kubernetes.podman import Podman
from tests.standins.kubernetes.registry import OVER
from tests.standins.kubernetes.store import Key, Store

_PULL_PAUSE_S = 1.0
_PULL_BACK_OFF_S = 10.0
_LONGEST_BACK_OFF_S = 300
_FORCED_GRACE_S = 2.0  # how long the kubelet leaves a container that was deleted without grace and ignores SIGTERM
_TOO_LONG = "Pod was active on the node longer than the specified deadline"


@dataclass(frozen=True, slots=True)
class Verdict:
    reason: str
    message: str


class Life:
    def __init__(self, pod: Raw, store: Store, podman: Podman, gate: asyncio.Event) -> None:
        metadata = pod["metadata"]
        self.key = Key("pods", metadata["namespace"], metadata["name"])
        self.uid: str = metadata["uid"]
        self.container: Container | None = None
        self._spec: Raw = pod["spec"]
        self._store = store
        self._podman = podman
        self._gate = gate
        self._changed = asyncio.Event()
        self._eviction: Verdict | None = None
        self._accepted_at: float | None = None
        self._deleted_at: float | None = None

    def poke(self) -> None:
        self._changed.set()

    def evict(self, message: str) -> None:
        self._eviction = Verdict("Evicted", message)
        self.poke()

    async def live(self) -> None:
        story = asyncio.create_task(self._story())
        try:
            verdict = await self._sentence()
            if verdict is not None:
                await _cancelled(story)
                await self._condemn(verdict)
                await self._sentence()
        finally:
            await _cancelled(story)
        self._finish(await self._stop())

    # the story

    async def _story(self) -> None:
        if not self._gate.is_set():
            self._set(statuses.unscheduled)
        await self._gate.wait()
        self._set(statuses.scheduled)
        self._accepted_at = _now()
        self._set(statuses.accepted)
        image = await self._pulled()
        await self._refuse_root(image)
        await self._run_and_run_again()

    async def _pulled(self) -> Raw:
        container = self._spec["containers"][0]
        while (image := await self._podman.image(container["image"])) is None:
            name = container["image"]
            if container["imagePullPolicy"] == "Never":
                never = f'Container image "{name}" is not present with pull policy of Never'
                self._wait_for("ErrImageNeverPull", never)
            else:
                self._wait_for("ErrImagePull", f'failed to pull and unpack image "{name}": {name}: not found')
                await asyncio.sleep(_PULL_PAUSE_S)
                self._wait_for("ImagePullBackOff", f'Back-off pulling image "{name}"')
            await asyncio.sleep(_PULL_BACK_OFF_S)
        return image

    async def _refuse_root(self, image: Raw) -> None:
        """The kubelet's own check, which no admission can make: what user the image says."""
        container = self._spec["containers"][0]
        context = {**(self._spec.get("securityContext") or {}), **(container.get("securityContext") or {})}
        if not context.get("runAsNonRoot") or context.get("runAsUser"):
            return
        user = str((image.get("Config") or {}).get("User", "")).partition(":")[0]
        if user.isdigit() and int(user) > 0:
            return
        words = f"image has non-numeric user ({user}), cannot verify user is non-root"
        why = "image will run as root" if user in {"", "0"} else words
        self._wait_for("CreateContainerConfigError", f"container has runAsNonRoot and {why}")
        await asyncio.Event().wait()

    async def _run_and_run_again(self) -> None:
        for restarts in itertools.count():
            self.container = container = Container(self._podman, f"hummingbird-lab-{self.uid}-{restarts}", self._folder)
            ending = await self._ending(container)
            again = self._restarts(ending)
            delay_s = 0 if restarts == 0 else min(10 * 2 ** (restarts - 1), _LONGEST_BACK_OFF_S)
            if again:
                self._set(partial(statuses.restarting, ending=ending, restarts=restarts + 1, delay_s=delay_s))
            else:
                self._set(partial(statuses.over, ending=ending))
            await container.remove()
            self.container = None
            if not again:
                return
            await asyncio.sleep(delay_s)

    async def _ending(self, container: Container) -> Ending:
        pod = self._pod()
        if pod is None:
            return Ending(137, "Error")
        try:
            await container.start(run_options(pod, self._folder))
        except StartFailed as failed:
            return Ending(128, "StartError", str(failed))
        self._set(partial(statuses.running, container_id=container.name))
        return await container.ending()

    def _restarts(self, ending: Ending) -> bool:
        policy = self._spec["restartPolicy"]
        return policy == "Always" or (policy == "OnFailure" and ending.code != 0)

    # what cuts it short

    async def _sentence(self) -> Verdict | None:
        """Until the pod's deletion is asked for, with None, or until it is condemned."""
        while (pod := self._pod()) is not None and "deletionTimestamp" not in pod["metadata"]:
            left_s = None
            if pod["status"]["phase"] not in OVER:
                left_s = self._active_left_s(pod)
                if self._eviction is not None:
                    return self._eviction
                if left_s is not None and left_s <= 0:
                    return Verdict("DeadlineExceeded", _TOO_LONG)
            await self._change(left_s)
        self._deleted_at = _now()
        return None

    def _active_left_s(self, pod: Raw) -> float | None:
        deadline_s = pod["spec"].get("activeDeadlineSeconds")
        if deadline_s is None or self._accepted_at is None:
            return None
        return float(self._accepted_at + deadline_s - _now())

    async def _condemn(self, verdict: Verdict) -> None:
        self._deleted_at = _now()
        ending = await self._stop() or Ending(137, "Error")
        self._set(partial(statuses.terminated, ending=ending))
        self._set(partial(statuses.failed, reason=verdict.reason, message=verdict.message))

    async def _stop(self) -> Ending | None:
        """SIGTERM, the grace that is left, SIGKILL; None where nothing ran."""
        container = self.container
        if container is None:
            return None
        if self._pod() is None:  # deleted without grace: the API forgets it at once, its processes have a moment
            await container.settled()
            await container.signal("TERM")
            ended = asyncio.create_task(container.ending())
            await asyncio.wait({ended}, timeout=_FORCED_GRACE_S)
            await container.remove()
            await ended
            return None
        await container.settled()
        await container.signal("TERM")
        ended = asyncio.create_task(container.ending())
        while not ended.done() and (left_s := self._grace_left_s()) > 0:
            await self._change(left_s, ended)
        if not ended.done():
            await container.signal("KILL")
        ending = await ended
        await container.remove()
        self.container = None
        return ending

    def _grace_left_s(self) -> float:
        pod = self._pod()
        if pod is None or self._deleted_at is None:
            return 0.0
        grace_s = pod["metadata"].get("deletionGracePeriodSeconds", pod["spec"]["terminationGracePeriodSeconds"])
        return float(self._deleted_at + grace_s - _now())

    def _finish(self, ending: Ending | None) -> None:
        if ending is not None:
            self._set(partial(statuses.over, ending=ending))
        self._store.remove(self.key, self.uid)
        shutil.rmtree(self._folder, ignore_errors=True)

    # its place in the world

    @property
    def _folder(self) -> Path:
        return self._podman.folder / self.uid

    def _pod(self) -> Raw | None:
        return self._store.find(self.key, self.uid)

    def _set(self, alter: Callable[[Raw], None]) -> None:
        self._store.change(self.key, self.uid, alter)

    def _wait_for(self, reason: str, message: str) -> None:
        self._set(partial(statuses.waiting, reason=reason, message=message))

    async def _change(self, timeout_s: float | None, *others: asyncio.Task[Ending]) -> None:
        """Until the pod changes, the time is over, or one of the others is done."""
        changed = asyncio.create_task(self._changed.wait())
        await asyncio.wait({changed, *others}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        changed.cancel()
        self._changed.clear()


def _now() -> float:
    return asyncio.get_running_loop().time()


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
