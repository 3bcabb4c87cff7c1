"""Sandboxes by name. A backend is loaded when it is asked for; Kubernetes only by its name, never by guessing (X5)."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType
from typing import Any

from hummingbird.adapters.sandboxes.command import CommandSandbox
from hummingbird.adapters.sandboxes.link import Place
from hummingbird.adapters.sandboxes.quantities import LIMITS, REQUESTS, bytes_of, cores_of
from hummingbird.domain.errors import UsageFault
from hummingbird.domain.limits import LINGER_S, LINGERING_PODS, SANDBOX_DEADLINE_S
from hummingbird.ports.clock import Clock

BUBBLEWRAP, PODMAN, KUBERNETES, POOL = "bubblewrap", "podman", "k8s", "k8spool"
BACKENDS = (BUBBLEWRAP, PODMAN, KUBERNETES, POOL)
DEFAULT_IMAGE = "localhost/hummingbird-sandbox:latest"
_ROOM = "hummingbird.adapters.sandboxes"
_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an operator asks for. `namespace` is the flag, `configured_namespace` the setting behind it. `requests`,
    `limits` (as Kubernetes writes them), `labels` and `annotations` are a pod's; a container of podman is held to the
    limits too. The pods of a pool are what its Deployment made them; what bubblewrap allows is fixed."""

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
    requests: Mapping[str, str] = field(default_factory=lambda: REQUESTS)
    limits: Mapping[str, str] = field(default_factory=lambda: LIMITS)
    labels: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    annotations: Mapping[str, str] = field(default_factory=lambda: _NOTHING)


class Sandboxes:
    """Sandboxes of one kind, one for each session. Raises UsageFault for a name that is not in BACKENDS."""

    def __init__(
        self, wanted: Wanted, environment: Mapping[str, str], clock: Clock, warn: Callable[[str], None]
    ) -> None:
        if wanted.backend not in BACKENDS:
            raise UsageFault(f"There is no sandbox {wanted.backend!r}; there are: {', '.join(BACKENDS)}.")
        self._wanted, self._environment, self._clock, self._warn = wanted, environment, clock, warn
        self._pool: tuple[Any, Any] | None = None
        self._opening = asyncio.Lock()

    async def open(self) -> None:
        """Before one is made; as often as anybody likes. Raises SandboxUnavailable where a pool cannot be reached."""
        async with self._opening:
            if self._wanted.backend == POOL and self._pool is None:
                self._pool = await asyncio.to_thread(self._opened_pool)

    def make(self, session_id: str = "") -> CommandSandbox:
        """One that has not been started; of a pool, the one that lingers for this session if there is one."""
        if self._wanted.backend == BUBBLEWRAP:
            return CommandSandbox(self._place(session_id))
        return CommandSandbox(self._place(session_id), bytes_of(self._limit("memory")))

    async def keep_reaping(self) -> None:
        """Removes overdue pods of a pool every minute, until it is cancelled; returns at once elsewhere (X6)."""
        await self.open()
        if self._pool is not None:
            await self._pool[0].keep_reaping()

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool[0].close()
            self._pool = None

    def _place(self, session_id: str) -> Place:
        wanted, place = self._wanted, _part
        made: Place
        if wanted.backend == BUBBLEWRAP:
            made = place("bubblewrap").BubblewrapPlace()
        elif wanted.backend == PODMAN:
            made = self._container()
        elif wanted.backend == KUBERNETES:
            shape = place("manifest").PodShape(
                wanted.image,
                wanted.requests,
                wanted.limits,
                wanted.labels,
                wanted.annotations,
                deadline_s=wanted.deadline_s,
            )
            made = place("kubernetes").KubernetesPlace(self._site(), shape, self._clock, self._environment)
        else:
            if self._pool is None:
                raise UsageFault("The pool has not been opened: await open() before make().")
            pool, kubectl = self._pool
            made = place("pooled").PoolPlace(pool, kubectl, self._clock, session_id)
        return made

    def _limit(self, name: str) -> str:
        return self._wanted.limits.get(name, LIMITS[name])

    def _container(self) -> Any:
        wanted = self._wanted
        return _part("podman").PodmanPlace(
            wanted.image,
            environment=self._environment,
            memory_bytes=bytes_of(self._limit("memory")),
            space_bytes=bytes_of(self._limit("ephemeral-storage")),
            cpus=cores_of(self._limit("cpu")),
        )

    def _opened_pool(self) -> tuple[Any, Any]:
        wanted = self._wanted
        cluster, kubectl = _part("kubernetes").open_site(self._site(), self._environment)
        pool = _part("pool").Pool(
            cluster,
            self._clock,
            self._warn,
            deadline_s=wanted.deadline_s,
            linger_s=wanted.linger_s,
            max_lingering=wanted.max_lingering,
        )
        return pool, kubectl

    def _site(self) -> Any:
        wanted = self._wanted
        return _part("kubeconfig").Site(
            kubeconfig=wanted.kubeconfig,
            context=wanted.context,
            namespace=wanted.namespace,
            configured_namespace=wanted.configured_namespace,
            ca_bundle=wanted.ca_bundle,
        )


def _part(name: str) -> Any:
    return import_module(f"{_ROOM}.{name}")
