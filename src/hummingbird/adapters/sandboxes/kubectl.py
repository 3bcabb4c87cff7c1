"""kubectl, which carries the conversations with a pod (X5): found, given as little as it needs, and listened to.

When a conversation breaks, kubectl often cannot say why; the pod's status can. So it is asked before anybody else is
told (X8).
"""

import asyncio
import re
import shutil
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hummingbird.adapters.sandboxes.client import ClientLink, open_client
from hummingbird.adapters.sandboxes.kubeconfig import Found, Site
from hummingbird.adapters.sandboxes.link import Farewell
from hummingbird.adapters.sandboxes.manifest import CONTAINER
from hummingbird.domain.errors import SandboxUnavailable

_NO_CACHE = {"KUBECACHEDIR": "/dev/null/kube"}  # without a home it would make .kube in whatever directory we are in
# It may read the empty message that begins every conversation before it has made its streams, and says so (seen: 1.33).
_EARLY = re.compile(r"^E\d{4} .* websocket\.go:\d+\] Unknown stream id \d+, discarding message\n?", re.MULTILINE)


def meant(words: str) -> str:
    """What it said, without what is of no consequence."""
    return _EARLY.sub("", words)


class PodLink:
    """One conversation. `verdict` says what is wrong with the pod, or nothing."""

    def __init__(self, link: ClientLink, verdict: Callable[[], Awaitable[str]]) -> None:
        self._link = link
        self._verdict = verdict

    @property
    def reader(self) -> asyncio.StreamReader:
        return self._link.reader

    @property
    def writer(self) -> asyncio.StreamWriter:
        return self._link.writer

    async def end(self) -> Farewell:
        ended = await self._link.end()
        farewell = Farewell(killed=ended.killed, words=meant(ended.words).strip())
        if not farewell.killed and not farewell.words:
            return farewell
        wrong = await self._verdict()
        return Farewell(killed=False, words=wrong) if wrong else farewell


@dataclass(frozen=True, slots=True)
class Kubectl:
    """The program, its arguments that choose the cluster, and its environment."""

    program: str
    choosing: tuple[str, ...]
    environment: Mapping[str, str]

    async def open(self, pod_name: str, verdict: Callable[[], Awaitable[str]]) -> PodLink:
        """Raises SandboxBroken."""
        argv = [self.program, *self.choosing, "exec", "-i", pod_name, "-c", CONTAINER, "--"]
        return PodLink(await open_client(argv, self.environment), verdict)


def found_kubectl(site: Site, found: Found) -> Kubectl:
    """Raises SandboxUnavailable."""
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
