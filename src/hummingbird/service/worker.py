"""Works off the queue (E3, E4): any number of groups at once, each of them in order, runs within their slots.

A message is deleted when its stage has returned, and never before. Knows queues; what a message means, the stages know.
"""

import asyncio
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, TypeVar

from hummingbird.domain.errors import EventUnreadable, ForgeDown, HummingbirdError, PlatformError, WriteUncertain
from hummingbird.domain.limits import (
    LATER_CAP_S,
    LATER_REMEMBERED,
    PARKING_S,
    QUEUE_BATCH,
    QUEUE_RECEIVES,
    QUEUE_WAIT_S,
    SLOT_FULL_PAUSES,
    SLOT_LOOK_S,
    SLOT_PAUSE_S,
    WORK_AT_ONCE,
    WORK_AWAY_S,
    WORK_PAUSES_S,
)
from hummingbird.domain.log_context import working_on
from hummingbird.domain.orders import Arrived, Envelope, WorkOrder, written
from hummingbird.ports.queue import Message, Queue, Successor
from hummingbird.service.envelopes import copied, is_event, opened, put_off, successor_of
from hummingbird.service.holding import Holding
from hummingbird.service.ingress import Ingress
from hummingbird.service.outages import Outage, unless
from hummingbird.service.slots import Slots
from hummingbird.service.stages import Later, Stages

Answer = TypeVar("Answer")
_log = logging.getLogger("hummingbird.service")


class Worker:
    """`max_runs` is asked each time, for it may change. `visibility_s` is the queue's. `grace_s` is what runs have to
    end once there is a stop. Belongs to one event loop."""

    def __init__(
        self,
        queue: Queue,
        stages: Stages,
        ingress: Ingress,
        max_runs: Callable[[], int],
        *,
        visibility_s: int,
        grace_s: float,
        slot_pause_s: float = SLOT_PAUSE_S,
        pauses_s: tuple[int, int] = WORK_PAUSES_S,
        away_s: Sequence[int] = WORK_AWAY_S,
    ) -> None:
        self._queue = queue
        self._stages = stages
        self._ingress = ingress
        self._max_runs = max_runs
        self._visibility_s = visibility_s
        self._grace_s = grace_s
        self._slot_pause_s = slot_pause_s
        self._pauses_s = pauses_s
        self._away_s = away_s
        self._outage = Outage("The queue")
        self._stopping = asyncio.Event()
        self._parking = asyncio.Event()
        self._groups: set[asyncio.Task[None]] = set()
        self._settled = asyncio.Event()
        self._slots = Slots(max_runs, slot_pause_s)
        self._next_look = -math.inf
        self._more_events = False
        self._later: OrderedDict[str, Envelope] = OrderedDict()

    @property
    def running(self) -> int:
        """How many slots are taken."""
        return self._slots.taken

    def stop(self) -> None:
        """Nothing more is taken, and `run` returns once all is done or parked. A second one parks at once."""
        if self._stopping.is_set():
            self._parking.set()
        self._stopping.set()
        self._slots.close()

    async def run(self) -> None:
        """Until there is a stop. Cancelling it parks everything."""
        try:
            while not self._stopping.is_set():
                await self._take()
            await unless(self._parking, self._ended(self._grace_s))
        finally:
            self._stopping.set()
            self._parking.set()
            self._slots.close()
            await self._ended(PARKING_S)
            await self._abandon()

    async def _ended(self, seconds: float) -> None:
        if self._groups:
            await asyncio.wait(tuple(self._groups), timeout=seconds)

    async def _abandon(self) -> None:
        """Whoever does not even end when cancelled: its messages come again when their time is over."""
        for task in tuple(self._groups):
            _log.error("A piece of work did not end in time and is left behind; its message will be received again.")
            task.cancel()
        await self._ended(0)

    async def _take(self) -> None:
        busy = len(self._groups) - self._slots.waiting
        most = min(QUEUE_BATCH, self._max_runs() + WORK_AT_ONCE - busy)
        if most < 1:
            self._settled.clear()
            await unless(self._stopping, self._settled.wait())
            return
        if self._slots.full and self._groups and not self._more_events:
            await unless(self._stopping, self._slots.room(SLOT_FULL_PAUSES * self._slot_pause_s))
        receiving = self._outage.surely(partial(self._queue.receive, most, QUEUE_WAIT_S))
        messages = await unless(self._stopping, receiving) or ()
        self._more_events = any(is_event(message.body) for message in messages)
        for group in _groups(messages):
            self._begin(group, whole=len(messages) < most)

    def _begin(self, messages: Sequence[Message], *, whole: bool) -> None:
        holding = Holding(self._queue, self._outage, messages, whole=whole, visibility_s=self._visibility_s)
        task = asyncio.create_task(self._work_off(holding))
        self._groups.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._groups.discard(task)
        self._settled.set()
        if not task.cancelled() and (error := task.exception()):
            _log.error("A message could not even be given back; it will be received again.", exc_info=error)

    async def _work_off(self, holding: Holding) -> None:
        async with holding:
            while (message := holding.first) and not self._stopping.is_set():
                await self._deal_with(holding, message)
            await holding.give_back()

    async def _deal_with(self, holding: Holding, message: Message) -> None:
        """Afterwards the message is no longer the first one."""
        with _named(message):
            await self._dealt_with(holding, message)

    async def _dealt_with(self, holding: Holding, message: Message) -> None:
        try:
            queued = opened(message.body)
            waited = self._later.pop(message.id, None)
            if waited and await holding.renew(_following(waited, queued, message)):
                return
            await self._try(holding, message, queued, waited or queued)
        except Exception as error:  # noqa: BLE001 - the border of a message: a bug must not end the worker
            await self._failed(holding, message, error)

    async def _try(self, holding: Holding, message: Message, queued: Envelope, envelope: Envelope) -> None:
        try:
            if isinstance(envelope, Arrived):
                await self._arrive(holding, envelope)
            else:
                await self._order(holding, message, queued, envelope)
        except (ForgeDown, WriteUncertain) as error:
            if holding.first is not message or envelope.put_off >= len(self._away_s):
                raise
            await self._outlast(holding, message, queued, envelope, error)

    async def _outlast(
        self, holding: Holding, message: Message, queued: Envelope, envelope: Envelope, error: HummingbirdError
    ) -> None:
        """A GitLab that is away comes back, and what was found out until then is told then: that costs no try."""
        seconds = self._away_s[envelope.put_off]
        _log.warning("%s waits %s s for GitLab: %s", _told(message), seconds, error)
        await self._wait(holding, message, queued, put_off(envelope), seconds)

    async def _arrive(self, holding: Holding, event: Arrived) -> None:
        ended = await self._ended_work(holding, self._stages.arrived(event))
        if ended is None:
            await holding.give_back()
            return
        for order in ended.result():
            await self._outage.surely(
                partial(self._queue.send, written(order), group=order.session_id, dedup_id=order.id)
            )
        if await holding.done():
            await self._ingress.forget(event)

    async def _order(self, holding: Holding, message: Message, queued: Envelope, order: WorkOrder) -> None:
        ended = await self._ended_work(holding, self._slotted(order, message.receives))
        if ended is None:
            await holding.replace(_following(order, queued, message))
        elif (later := ended.result()) is None:
            await holding.done()
        else:
            _log.debug("Order %s of session %s waits: %s.", order.id, order.session_id, later.reason)
            seconds = min(LATER_CAP_S, max(1, math.ceil(later.seconds)))
            await self._wait(holding, message, queued, later.successor, seconds)

    async def _slotted(self, order: WorkOrder, receives: int) -> Later | None:
        """What came again keeps its place by waiting here: given back once more, it might have to make room for its
        successor, and others of the session would overtake it."""
        if not await self._slots.take(patient=receives > 1):
            return Later(self._until_look(), order, "all slots are taken")
        try:
            return await self._stages.ordered(order, last_try=receives >= QUEUE_RECEIVES)
        finally:
            self._slots.free()

    def _until_look(self) -> float:
        """One after the other, so that many who wait for a slot cost no more than some do."""
        now = time.monotonic()
        self._next_look = max(self._next_look + SLOT_LOOK_S, now + self._slot_pause_s)
        return self._next_look - now

    async def _wait(
        self, holding: Holding, message: Message, queued: Envelope, following: Envelope, seconds: int
    ) -> None:
        if self._stopping.is_set():
            return  # given back with the others, so that another process need not wait
        if await holding.wait(seconds, _following(following, queued, message)):
            self._remember(message, following)

    def _remember(self, message: Message, envelope: Envelope) -> None:
        """What was seen, for when the same message comes again. Should another process get it, that one looks
        afresh."""
        self._later[message.id] = envelope
        while len(self._later) > LATER_REMEMBERED:
            self._later.popitem(last=False)

    async def _ended_work(self, holding: Holding, work: Coroutine[Any, Any, Answer]) -> asyncio.Task[Answer] | None:
        """Cancelled when the message is with somebody else or everything is parked: then None. Raises what it
        raises."""
        task = asyncio.create_task(work)
        ends = [asyncio.ensure_future(event.wait()) for event in (holding.lost, self._parking)]
        try:
            await asyncio.wait((task, *ends), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                task.cancel()
                await asyncio.wait((task,))
                return None if task.cancelled() or task.exception() else task
        finally:
            for one in (task, *ends):
                one.cancel()
        if task.cancelled():
            raise PlatformError("The work was cancelled, and not by the worker; see what else is in the log.")
        task.result()
        return task

    async def _failed(self, holding: Holding, message: Message, error: Exception) -> None:
        trace = None if isinstance(error, HummingbirdError) else error  # a bug is told with all there is
        if holding.first is not message:
            _log.error("%s is settled, but something failed then: %s", _told(message), error, exc_info=trace)
            return
        if message.receives >= QUEUE_RECEIVES:
            _log.error("%s failed for the last time and is a dead letter: %s", _told(message), error, exc_info=trace)
            await holding.die()
            return
        seconds = self._pauses_s[message.receives - 1]
        _log.warning("%s failed and is tried again in %s s: %s", _told(message), seconds, error, exc_info=trace)
        await holding.put_off(seconds)


def _following(envelope: Envelope, queued: Envelope, message: Message) -> Successor:
    """In the place of a message that has waited."""
    if isinstance(envelope, WorkOrder) and isinstance(queued, WorkOrder):
        return successor_of(envelope, queued.waits)
    return copied(written(envelope), message.id)


def _named(message: Message) -> AbstractContextManager[None]:
    """So that every line of the log that is about it says so (O1)."""
    try:
        envelope = opened(message.body)
    except EventUnreadable:
        return nullcontext()
    if isinstance(envelope, Arrived):
        return working_on(event_id=envelope.identity)
    return working_on(envelope.id, envelope.session_id)


def _told(message: Message) -> str:
    try:
        envelope = opened(message.body)
    except EventUnreadable:
        return f"Message {message.id}"
    if isinstance(envelope, Arrived):
        return f"Event {envelope.identity}"
    return f"Order {envelope.id} of session {envelope.session_id}"


def _groups(messages: Sequence[Message]) -> list[list[Message]]:
    """By their groups, each in its order."""
    groups: dict[str, list[Message]] = {}
    for message in messages:
        groups.setdefault(message.group, []).append(message)
    return list(groups.values())
