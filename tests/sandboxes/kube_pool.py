"""Pools for tests: clients of their own, a clock that tests own, warnings that are kept."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from hummingbird.core.protocols.observer import Clock
from hummingbird.sandboxes.kubernetes_api import PodApi, find_cluster
from hummingbird.sandboxes.kubernetes_manifest import build_pod as manifest_of
from hummingbird.sandboxes.kubernetes_pool import PodPool
from tests.sandboxes.kube import LabStage, Stage, beside, is_ready, shape

NOW = 1_900_000_000.0  # 2030-03-17T17:46:40Z


@dataclass
class HeldClock:
    """Time that only the test moves, or that flies while somebody naps. `napped` is set by the first nap."""

    flying: bool = False
    moment: float = NOW
    napped: asyncio.Event = field(default_factory=asyncio.Event)
    moved: asyncio.Condition = field(default_factory=asyncio.Condition)

    def now(self) -> float:
        return self.moment

    async def sleep(self, seconds: float) -> None:
        self.napped.set()
        until = self.moment + seconds
        if self.flying:
            await self.move(seconds)
            await asyncio.sleep(0.005)  # others may run too
        await self.reach(until - NOW)

    async def move(self, seconds: float) -> None:
        async with self.moved:
            self.moment += seconds
            self.moved.notify_all()

    async def reach(self, seconds: float) -> None:
        """So many seconds after the beginning."""
        async with self.moved:
            await self.moved.wait_for(lambda: self.moment >= NOW + seconds)


class Warnings:
    """What a pool warned of, and when."""

    def __init__(self, clock: HeldClock) -> None:
        self._clock = clock
        self.said: list[str] = []
        self.after: list[float] = []
        self._some = asyncio.Event()

    def __call__(self, sentence: str) -> None:
        self.said.append(sentence)
        self.after.append(self._clock.moment - NOW)
        self._some.set()

    async def first(self) -> str:
        await self._some.wait()
        return self.said[0]


async def cancelled(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()


@asynccontextmanager
async def pool_on(
    stage: Stage,
    clock: Clock,
    warn: Callable[[str], None] = lambda _: None,
    kind: type[PodPool] = PodPool,
    **chosen: Any,
) -> AsyncIterator[PodPool]:
    """With a connection of its own: another process, as far as the cluster can tell."""
    pool = kind(PodApi(find_cluster(stage.site, {})), clock, warn, **chosen)
    try:
        yield pool
    finally:
        await pool.close()


def at(seconds: float) -> str:
    return datetime.fromtimestamp(NOW + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


async def put(stage: LabStage, name: str, *, role: str = "active", session: str = "", **annotations: str) -> None:
    """A pod with these marks, and running."""
    labels = {"hummingbird/role": role, **({"hummingbird/session-id": session} if session else {})}
    marks = {f"hummingbird/{key.replace('_', '-')}": value for key, value in annotations.items()}
    if session:
        marks["hummingbird/session-id"] = session
    manifest = manifest_of(shape(stage), name, labels, marks)
    await beside(lambda: stage.create(manifest))


@contextmanager
def no_room(stage: LabStage) -> Iterator[None]:
    """Pods that are made here stay without a node: enough for what only looks at their marks."""
    stage.lab.hold()
    try:
        yield
    finally:
        stage.clear()
        stage.lab.release()


async def all_ready(stage: LabStage) -> None:
    await beside(lambda: stage.wait_until(lambda: all(map(is_ready, stage.pods()))))
