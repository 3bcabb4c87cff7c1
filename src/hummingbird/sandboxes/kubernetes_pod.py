"""The `k8s` backend: one pod for each sandbox. Used only when an operator names it.

We choose the pod's name before we create it, so that we can remove it even when the answer gets lost. The pod's own
deadline ends it when we cannot, and its reap-by annotation lets any reaper of the namespace remove what is left.

Commands reach a pod through kubectl, also in the pool backend (`kubernetes_pool`).
"""

import asyncio
import os
import re
import secrets
import shutil
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hummingbird.core.errors import HummingbirdError, SandboxBroken, SandboxUnavailable
from hummingbird.core.limits import POD_POLL_S, POD_READY_S, POD_REMOVALS, POD_VERDICT_S, PROBE_TIMEOUT_S
from hummingbird.core.protocols.observer import Clock
from hummingbird.core.protocols.sandbox import ExecResult
from hummingbird.sandboxes.command_sandbox import CommandSandbox, LinkEnd, SandboxBackend
from hummingbird.sandboxes.kubernetes_api import (
    ClusterAccess,
    ClusterOptions,
    ClusterUnreachableError,
    PodApi,
    PodConflictError,
    PodGoneError,
    PodStatus,
    StartObstacle,
    find_cluster,
)
from hummingbird.sandboxes.kubernetes_manifest import (
    ACTIVE,
    CONTAINER_NAME,
    HELD_FOR_LABEL,
    REAP_BY_ANNOTATION,
    ROLE_LABEL,
    PodSettings,
    build_pod,
    format_timestamp,
    session_label,
)
from hummingbird.sandboxes.local_process import run_to_completion
from hummingbird.sandboxes.runner_client import SubprocessLink, open_subprocess_link

_NO_CACHE = {"KUBECACHEDIR": "/dev/null/kube"}  # without a home, kubectl would create .kube in the current directory
# Lines of kubectl's own log, such as one about an empty first message of a connection, or one for each try to reach an
# API server that went away. What kubectl has to say to people begins with `error:`.
_LOG_LINE = re.compile(r"^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [\w.-]+:\d+\] .*\n?", re.MULTILINE)


def strip_log_lines(words: str) -> str:
    """Remove the lines of kubectl's log, which are for its developers."""
    return _LOG_LINE.sub("", words)


_LOST = "the connection to its pod was lost, and nothing says why; the kubelet or the API server may have restarted."


class PodLink:
    """A connection to the runner in a pod, carried by kubectl.

    When a connection breaks, kubectl often cannot say why, but the pod's status can. So `close` asks `verdict`, which
    says what is wrong with the pod or returns an empty string.
    """

    def __init__(self, link: SubprocessLink, verdict: Callable[[], Awaitable[str]]) -> None:
        self._link = link
        self._diagnose = verdict

    @property
    def reader(self) -> asyncio.StreamReader:
        return self._link.reader

    @property
    def writer(self) -> asyncio.StreamWriter:
        return self._link.writer

    async def close(self) -> LinkEnd:
        ended = await self._link.close()
        words = strip_log_lines(ended.error_output).strip()
        if not ended.killed and not words:
            return LinkEnd(error_output=_LOST, is_lost=True)
        if wrong := await self._diagnose():
            return LinkEnd(error_output=wrong)
        return LinkEnd(killed=ended.killed, error_output=words, is_lost=not ended.killed)


@dataclass(frozen=True, slots=True)
class Kubectl:
    """How to call kubectl: the program, the options that choose the cluster, and the environment."""

    program: str
    cluster_options: tuple[str, ...]
    environment: Mapping[str, str]

    async def open_link(self, pod_name: str, verdict: Callable[[], Awaitable[str]]) -> PodLink:
        """Run the runner in the pod and connect to it. Raises SandboxBroken."""
        argv = [self.program, *self.cluster_options, "exec", "-i", pod_name, "-c", CONTAINER_NAME, "--"]
        return PodLink(await open_subprocess_link(argv, self.environment), verdict)


def find_kubectl(site: ClusterOptions, found: ClusterAccess) -> Kubectl:
    """Find kubectl and its options for this cluster. Raises SandboxUnavailable."""
    wanted = site.kubectl or "kubectl"
    program = shutil.which(wanted, path=found.environment.get("PATH"))
    if program is None:
        raise SandboxUnavailable(
            f"{wanted} is not on the PATH, and sandboxes in Kubernetes run their commands with it: install kubectl, or "
            "use another sandbox."
        )
    options = {
        "--kubeconfig": str(Path(site.kubeconfig).expanduser()) if site.kubeconfig else "",
        "--context": site.context,
        "--namespace": found.namespace,
        "--certificate-authority": site.ca_bundle if found.config.cluster.certificate_auth == site.ca_bundle else "",
    }
    choosing = tuple(f"{option}={value}" for option, value in options.items() if value)
    environment = found.environment if "HOME" in found.environment else {**found.environment, **_NO_CACHE}
    return Kubectl(program, choosing, environment)


NO_DIRECTORY_EXIT_CODE = 126  # the exit code of a command while process 1 has not yet made /tmp/data


class OwnedPod:
    """A pod that only we use. `uid` is empty until we know that the pod exists."""

    def __init__(self, cluster: PodApi, kubectl: Kubectl, clock: Clock, name: str, uid: str = "") -> None:
        self._cluster = cluster
        self._kubectl = kubectl
        self._clock = clock
        self.name = name
        self.uid = uid

    async def connect(self) -> PodLink:
        """Connect to the runner in the pod. Raises SandboxBroken."""
        return await self._kubectl.open_link(self.name, self.diagnose)

    async def diagnose(self) -> str:
        """Return a sentence that says what became of the pod, or an empty string when nothing is wrong. Never raises.

        The status follows what happens with a delay, so a pod that looks well is checked again for a while.
        """
        until = self._clock.now() + POD_VERDICT_S
        while True:
            try:
                pod = await self._cluster.get(self.name)
            except PodGoneError:
                return f"the pod {self.name} is gone: somebody or something deleted it."
            except HummingbirdError:
                return ""
            said = self._describe_end(pod)
            if said or self._clock.now() >= until:
                return said or ("" if pod.ready else self._describe_not_ready(pod))
            await self._clock.sleep(POD_POLL_S)

    def _describe_end(self, pod: PodStatus) -> str:
        if self.uid and pod.uid != self.uid:
            return f"the pod {self.name} is gone: another one has its name."
        if pod.end_reason:
            return f"the pod {self.name} ended: {pod.end_reason}."
        return f"the pod {self.name} is being deleted." if pod.is_terminating else ""

    def _describe_not_ready(self, pod: PodStatus) -> str:
        return (
            f"the container of the pod {self.name} does not run{f': {pod.obstacle.sentence}' if pod.obstacle else ''}."
        )

    async def remove(self) -> None:
        """Remove the pod. Raises SandboxBroken when it may still exist."""
        last: HummingbirdError | None = None
        for _ in range(POD_REMOVALS):
            try:
                await self._cluster.delete(self.name, self.uid)
            except (PodGoneError, PodConflictError):  # a conflict means that another pod has its name
                last = None
                if self.uid:
                    return
            except ClusterUnreachableError as error:
                last = error
            except SandboxUnavailable as error:
                raise self._removal_error(error) from error
            else:
                return
            await self._clock.sleep(POD_POLL_S)  # a creation that was not confirmed may still take effect
        if last is not None:
            raise self._removal_error(last) from last

    def _removal_error(self, error: HummingbirdError) -> SandboxBroken:
        return SandboxBroken(
            f"The pod {self.name} could not be removed: delete it with `kubectl delete pod {self.name} -n "
            f"{self._cluster.namespace}`. {error}"
        )


def holder_marks(session_id: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the labels and annotations of a pod that works for this session; none without a session."""
    if not session_id:
        return {}, {}
    return {HELD_FOR_LABEL: session_label(session_id)}, {HELD_FOR_LABEL: session_id}


async def remove_abandoned(cluster: PodApi, session_id: str) -> None:
    """Remove pods that a killed process held for this session, which only one process may have at a time.

    What cannot be removed now is removed by its deadline.
    """
    if not session_id:
        return
    wanted = {ROLE_LABEL: ACTIVE, HELD_FOR_LABEL: session_label(session_id)}
    with suppress(HummingbirdError):
        for pod in await cluster.list(wanted):
            if pod.held_for == session_id and not pod.is_lingering and not pod.is_terminating:
                with suppress(PodConflictError, PodGoneError):
                    await cluster.delete(pod.name, pod.uid, pod.version)


async def probe_backend(place: SandboxBackend, clock: Clock, command: str) -> ExecResult:
    """Run a command that checks the place, and return its result. Raises SandboxUnavailable, SandboxBroken."""
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
        if done.exit_code != NO_DIRECTORY_EXIT_CODE or clock.now() >= until:
            return done
        await clock.sleep(POD_POLL_S)


def connect_cluster(site: ClusterOptions, environment: Mapping[str, str]) -> tuple[PodApi, Kubectl]:
    """Return the pod API and the kubectl for one namespace. Raises SandboxUnavailable."""
    found = find_cluster(site, environment)
    return PodApi(found), find_kubectl(site, found)


class KubernetesBackend:
    """Runs the runner in a pod of its own. `environment` says where the cluster is; None stands for the process's.

    `session_id` is the session that it is for; pods that a killed process held for it are removed at the start.
    """

    name = "k8s"

    def __init__(
        self,
        site: ClusterOptions,
        shape: PodSettings,
        clock: Clock,
        environment: Mapping[str, str] | None = None,
        session_id: str = "",
    ) -> None:
        self._session_id = session_id
        self._cluster_options = site
        self._pod_settings = shape
        self._clock = clock
        self._environment = os.environ if environment is None else environment
        self._cluster: PodApi | None = None
        self._pod: OwnedPod | None = None
        self._removal_lock = asyncio.Lock()

    @property
    def pod_name(self) -> str:
        """The pod's name; empty while there is no pod."""
        return self._pod.name if self._pod is not None else ""

    async def start(self) -> None:
        if self._pod is not None:
            raise SandboxBroken("The sandbox was started already: clean it up first.")
        try:
            cluster, kubectl = await asyncio.to_thread(connect_cluster, self._cluster_options, self._environment)
            own = OwnedPod(cluster, kubectl, self._clock, f"hummingbird-sandbox-{secrets.token_hex(5)}")
            self._cluster, self._pod = cluster, own
            await remove_abandoned(cluster, self._session_id)
            await self._create_pod(cluster, own)
            await self._wait_until_running(cluster, own)
            done = await probe_backend(self, self._clock, "true")
            if done.exit_code:
                raise SandboxUnavailable(f"The image runs no commands: check `image` ({done.stderr[:300]!r}).")
        except BaseException:
            with suppress(SandboxBroken):  # report the first error only; the pod's own deadline ends it
                await run_to_completion(self.remove())
            raise

    async def _create_pod(self, cluster: PodApi, own: OwnedPod) -> None:
        overdue = self._clock.now() + POD_READY_S + self._pod_settings.deadline_s
        labels, annotations = holder_marks(self._session_id)
        manifest = build_pod(
            self._pod_settings,
            own.name,
            {ROLE_LABEL: ACTIVE, **labels},
            {REAP_BY_ANNOTATION: format_timestamp(overdue), **annotations},
        )
        try:
            made = await run_to_completion(cluster.create(manifest))
        except ClusterUnreachableError:
            raise
        except (SandboxUnavailable, PodConflictError):
            self._pod = None  # it was not created; a pod of that name belongs to somebody else
            raise
        own.uid = made.uid

    async def _wait_until_running(self, cluster: PodApi, own: OwnedPod) -> None:
        began, stuck_since, hurdle = self._clock.now(), None, None
        while (now := self._clock.now()) < began + POD_READY_S:
            found = await _get_pod(cluster, own.name)
            if found is not None and found.is_usable:
                return
            hurdle = _obstacle_or_raise(found) or hurdle
            if hurdle is not None and hurdle.patience_s < POD_READY_S:
                stuck_since = now if stuck_since is None else stuck_since
                if now >= stuck_since + hurdle.patience_s:
                    break
            await self._clock.sleep(POD_POLL_S)
        why = hurdle.sentence if hurdle is not None else "the cluster gives no reason; look at `kubectl describe pod`"
        raise SandboxUnavailable(f"The sandbox's pod does not run after {now - began:.0f} s: {why}.")

    async def connect(self) -> PodLink:
        if self._pod is None:
            raise SandboxBroken("The sandbox has no pod: start it first.")
        return await self._pod.connect()

    async def remove(self) -> None:
        async with self._removal_lock:  # the first of two callers closes the API that the second would still need
            if self._pod is not None:
                await run_to_completion(self._pod.remove())  # on failure the pod stays, so that a retry is possible
                self._pod = None
            if self._cluster is not None:
                await self._cluster.close()

    async def linger(self, session_id: str) -> None:
        """Remove the pod: its deadline counts from its start, so it would be too costly to keep."""
        await self.remove()


async def _get_pod(cluster: PodApi, name: str) -> PodStatus | None:
    """Return the pod, or None when the cluster does not answer just now."""
    try:
        return await cluster.get(name)
    except ClusterUnreachableError:
        return None
    except PodGoneError as error:
        raise SandboxBroken(f"The pod {name} was deleted before it ran. Try again.") from error


def _obstacle_or_raise(found: PodStatus | None) -> StartObstacle | None:
    if found is None:
        return StartObstacle("Unanswered", "the cluster does not answer any more")
    if found.end_reason:
        raise SandboxUnavailable(
            f"The sandbox's pod ended before it could be used: {found.end_reason}. Check that `image` "
            "has python3 and that "
            "`resources` suffice."
        )
    if found.is_terminating:
        raise SandboxBroken(f"The pod {found.name} was deleted before it ran. Try again.")
    return found.obstacle
