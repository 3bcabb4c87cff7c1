"""Where the worker is tried: real queues, stages that do what a test says, and a look at what is going on."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hummingbird.core.orders import EventEnvelope, OrderCause, WorkOrder, encode_envelope
from hummingbird.core.protocols.queues import Queue, QueueMessage
from hummingbird.service.event_ingress import EventIngress
from hummingbird.service.protocols import RetryLater
from hummingbird.service.worker import Worker, WorkPauses
from hummingbird.storage.folder_objects import FolderObjectStore

PATIENCE_S = 30.0
PAUSES = WorkPauses(slot_s=1.0, retries_s=(0, 0))
LONG_S = 60  # in flight for as long as a test lasts
Deed = Callable[[WorkOrder], Awaitable[RetryLater | None]]


def order(name: str, session: str = "s", **more: Any) -> WorkOrder:
    return WorkOrder(id=name, session_id=session, cause=OrderCause.REPLY, workflow="w", project="a/b", mr_iid=1, **more)


async def sent(queue: Queue, *orders: WorkOrder) -> None:
    for one in orders:
        await queue.send(encode_envelope(one), group=one.session_id, dedup_id=one.id)


@dataclass
class Play:
    """`deeds` of an order's id are done one after the other, the last one for ever; without, it is just done."""

    deeds: dict[str, list[Deed]] = field(default_factory=lambda: defaultdict(list))
    orders_of: dict[str, tuple[WorkOrder, ...]] = field(default_factory=dict)
    events: list[str] = field(default_factory=list)
    begun: list[tuple[str, int, bool]] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    news: asyncio.Condition = field(default_factory=asyncio.Condition)
    on_event: Deed | None = None

    async def process_event(self, event: EventEnvelope) -> tuple[WorkOrder, ...]:
        self.events.append(event.identity)
        await self._tell()
        if self.on_event:
            await self.on_event(order("unused"))
        return self.orders_of.get(event.identity, ())

    async def process_order(self, one: WorkOrder, *, last_try: bool) -> RetryLater | None:
        self.begun.append((one.id, one.waits, last_try))
        await self._tell()
        deeds = self.deeds[one.id]
        deed = deeds.pop(0) if len(deeds) > 1 else deeds[0] if deeds else None
        if deed and (later := await deed(one)):
            return later
        self.done.append(one.id)
        await self._tell()
        return None

    async def _tell(self) -> None:
        async with self.news:
            self.news.notify_all()

    async def until(self, reached: Callable[["Play"], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S), self.news:
            await self.news.wait_for(lambda: reached(self))


@dataclass
class Seen:
    """A queue that is watched: how often each group was received. `faults` are raised by receives first. `once`: it
    gives nothing any more after it gave something, so that others can have it."""

    queue: Queue
    receives: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    faults: list[Exception] = field(default_factory=list)
    once: bool = False
    news: asyncio.Condition = field(default_factory=asyncio.Condition)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.queue, name)

    async def receive(self, most: int, wait_s: float) -> Sequence[QueueMessage]:
        if self.faults:
            raise self.faults.pop(0)
        if self.once and self.receives:
            await asyncio.Event().wait()
        found = await self.queue.receive(most, wait_s)
        async with self.news:
            for message in found:
                self.receives[message.group] += 1
            self.news.notify_all()
        return found

    async def until_received(self, group: str, times: int) -> None:
        async with asyncio.timeout(PATIENCE_S), self.news:
            await self.news.wait_for(lambda: self.receives[group] >= times)


def made(queue: Any, play: Play, folder: Path, **more: Any) -> Worker:
    settings: dict[str, Any] = {
        "max_runs": lambda: 4,
        "visibility_s": LONG_S,
        "grace_s": PATIENCE_S,
        "pauses": PAUSES,
        **more,
    }
    ingress = EventIngress(queue, FolderObjectStore(folder / "objects"), lambda: 0.0)
    return Worker(queue, ingress, process_event=play.process_event, process_order=play.process_order, **settings)


@asynccontextmanager
async def at_work(worker: Worker) -> AsyncIterator[Worker]:
    """Stopped afterwards: what it has begun is ended."""
    running = asyncio.create_task(worker.run())
    try:
        yield worker
        worker.stop()
        async with asyncio.timeout(PATIENCE_S):
            await running
    finally:
        running.cancel()
        await asyncio.wait((running,))


async def waits(one: WorkOrder) -> RetryLater:
    return RetryLater(1.0, one, "a test wants it")


async def breaks(one: WorkOrder) -> None:
    raise RuntimeError("a bug")


async def left(queue: Queue) -> list[QueueMessage]:
    return list(await queue.receive(10, 0))
