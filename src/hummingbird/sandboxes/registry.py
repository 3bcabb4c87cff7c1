"""Makes sandboxes of the configured backend.

A backend is imported only when it is used. Kubernetes is used only when an operator names it, never as a fallback.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from hummingbird.core.errors import UsageError, require_extra
from hummingbird.core.limits import CLAIM_WARNING_S, LINGER_S, LINGERING_PODS, SANDBOX_DEADLINE_S
from hummingbird.core.protocols.observer import Clock
from hummingbird.sandboxes.command_sandbox import CommandSandbox, SandboxBackend
from hummingbird.sandboxes.kubernetes_manifest import (
    DEFAULT_LIMITS,
    DEFAULT_REQUESTS,
    PodSettings,
    parse_bytes,
    parse_cores,
)

if TYPE_CHECKING:
    from hummingbird.sandboxes.kubernetes_api import ClusterOptions
    from hummingbird.sandboxes.kubernetes_pod import Kubectl
    from hummingbird.sandboxes.kubernetes_pool import PodPool

BUBBLEWRAP, PODMAN, KUBERNETES, POOL = "bubblewrap", "podman", "k8s", "k8spool"
BACKENDS = (BUBBLEWRAP, PODMAN, KUBERNETES, POOL)
DEFAULT_IMAGE = "localhost/hummingbird-sandbox:latest"
_EMPTY: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class SandboxOptions:
    """What an operator asks for.

    Attributes:
        namespace: The namespace given on the command line.
        configured_namespace: The namespace from the configuration, used when `namespace` is empty.
        requests: Resource requests of a pod, written as Kubernetes does (`500m`, `1Gi`).
        limits: Resource limits of a pod, and of a podman container.
        labels: Labels of a pod.
        annotations: Annotations of a pod.

    The pods of a pool are as its Deployment made them, and the limits of bubblewrap are fixed.
    """

    backend: str = BUBBLEWRAP
    image: str = DEFAULT_IMAGE
    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""
    configured_namespace: str = ""
    ca_bundle: str = ""
    deadline_s: int = SANDBOX_DEADLINE_S
    linger_s: int = LINGER_S
    max_lingering: int = LINGERING_PODS
    requests: Mapping[str, str] = field(default_factory=lambda: DEFAULT_REQUESTS)
    limits: Mapping[str, str] = field(default_factory=lambda: DEFAULT_LIMITS)
    labels: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    annotations: Mapping[str, str] = field(default_factory=lambda: _EMPTY)


class SandboxRegistry:
    """Makes sandboxes of one backend, one for each session. Raises UsageError for a name that is not in BACKENDS."""

    def __init__(
        self,
        wanted: SandboxOptions,
        environment: Mapping[str, str],
        clock: Clock,
        warn: Callable[[str], None],
        *,
        claim_warning_s: float = CLAIM_WARNING_S,
    ) -> None:
        if wanted.backend not in BACKENDS:
            raise UsageError(f"There is no sandbox {wanted.backend!r}; there are: {', '.join(BACKENDS)}.")
        self._wanted, self._environment, self._clock, self._warn = wanted, environment, clock, warn
        self._claim_warning_s = claim_warning_s
        self._pool: tuple[PodPool, Kubectl] | None = None
        self._opening = asyncio.Lock()

    async def open(self) -> None:
        """Connect to the pool, if the backend is one; must be awaited before `make`. May be called more than once.

        Raises SandboxUnavailable when the pool cannot be reached.
        """
        async with self._opening:
            if self._wanted.backend == POOL and self._pool is None:
                self._pool = await asyncio.to_thread(self._open_pool)

    def make(self, session_id: str = "") -> CommandSandbox:
        """Return a sandbox that has not been started. A pool reuses the pod that lingers for this session, if any."""
        if self._wanted.backend == BUBBLEWRAP:
            return CommandSandbox(self._build_backend(session_id))
        return CommandSandbox(self._build_backend(session_id), parse_bytes(self._limit("memory")))

    async def reap_forever(self) -> None:
        """Remove overdue pods of a pool every minute until cancelled. Return at once for other backends."""
        await self.open()
        if self._pool is not None:
            await self._pool[0].reap_forever()

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool[0].close()
            self._pool = None

    def _build_backend(self, session_id: str) -> SandboxBackend:
        wanted = self._wanted
        if wanted.backend == BUBBLEWRAP:
            from hummingbird.sandboxes.bubblewrap import BubblewrapBackend

            return BubblewrapBackend()
        if wanted.backend == PODMAN:
            return self._podman_backend()
        if wanted.backend == KUBERNETES:
            require_extra("lightkube", "kubernetes", "A sandbox in Kubernetes")
            from hummingbird.sandboxes.kubernetes_pod import KubernetesBackend

            settings = PodSettings(
                wanted.image,
                wanted.requests,
                wanted.limits,
                wanted.labels,
                wanted.annotations,
                deadline_s=wanted.deadline_s,
            )
            return KubernetesBackend(self._cluster_options(), settings, self._clock, self._environment, session_id)
        from hummingbird.sandboxes.kubernetes_pool import PoolBackend

        if self._pool is None:
            raise UsageError("The pool has not been opened: await open() before make().")
        pool, kubectl = self._pool
        return PoolBackend(pool, kubectl, self._clock, session_id)

    def _limit(self, name: str) -> str:
        return self._wanted.limits.get(name, DEFAULT_LIMITS[name])

    def _podman_backend(self) -> SandboxBackend:
        from hummingbird.sandboxes.podman import PodmanBackend

        wanted = self._wanted
        return PodmanBackend(
            wanted.image,
            environment=self._environment,
            memory_bytes=parse_bytes(self._limit("memory")),
            space_bytes=parse_bytes(self._limit("ephemeral-storage")),
            cpus=parse_cores(self._limit("cpu")),
        )

    def _open_pool(self) -> "tuple[PodPool, Kubectl]":
        require_extra("lightkube", "kubernetes", "A sandbox in Kubernetes")
        from hummingbird.sandboxes.kubernetes_pod import connect_cluster
        from hummingbird.sandboxes.kubernetes_pool import PodPool

        wanted = self._wanted
        cluster, kubectl = connect_cluster(self._cluster_options(), self._environment)
        pool = PodPool(
            cluster,
            self._clock,
            self._warn,
            deadline_s=wanted.deadline_s,
            linger_s=wanted.linger_s,
            max_lingering=wanted.max_lingering,
            warning_s=self._claim_warning_s,
        )
        return pool, kubectl

    def _cluster_options(self) -> "ClusterOptions":
        from hummingbird.sandboxes.kubernetes_api import ClusterOptions

        wanted = self._wanted
        return ClusterOptions(
            kubeconfig=wanted.kubeconfig,
            context=wanted.context,
            namespace=wanted.namespace,
            configured_namespace=wanted.configured_namespace,
            ca_bundle=wanted.ca_bundle,
        )
