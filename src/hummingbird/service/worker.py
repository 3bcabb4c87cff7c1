"""Process the queue: many groups at once, the messages of one group in order, runs within their slots.

A message is deleted when its stage has returned, and never before. The worker knows queues; the stages know what a
message means.
"""

import asyncio
import logging
import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import msgspec

from hummingbird.core.errors import (
    EventUnreadable,
    GitLabUnavailable,
    GitLabWriteUncertain,
    HummingbirdError,
    PlatformError,
)
from hummingbird.core.limits import (
    LATER_CAP_S,
    LATER_REMEMBERED,
    PARKING_S,
    QUEUE_BATCH,
    QUEUE_RECEIVES,
    QUEUE_WAIT_S,
    SLOT_FULL_PAUSES,
    SLOT_LINE,
    SLOT_LOOK_S,
    SLOT_PAUSE_S,
    WORK_AT_ONCE,
    WORK_AWAY_S,
    WORK_PAUSES_S,
)
from hummingbird.core.orders import EventEnvelope, QueueEnvelope, WorkOrder, encode_envelope
from hummingbird.core.protocols.queues import Queue, QueueMessage, SuccessorMessage
from hummingbird.core.work_context import bind_log_context, bind_work_lease
from hummingbird.service.envelopes import (
    count_postponement,
    count_tries,
    create_copy,
    create_successor,
    is_event,
    parse_envelope,
)
from hummingbird.service.event_ingress import EventIngress
from hummingbird.service.message_lease import MessageLease
from hummingbird.service.outage_retry import OutageRetry, run_unless_stopped
from hummingbird.service.protocols import EventProcessor, FailedOrder, OrderProcessor, RetryLater, Skipped


class RunSlots:
    """Limit how many runs there are at once, with a short line of orders that wait for a slot.

    The line fills a slot at once when a run ends, without another look at the queue. It holds no more orders than there
    are slots, and each waits for `patience_s` only, because another process may have room. Patient orders, which would
    lose their place in the session, wait for as long as it takes.

    `most` is called each time, because the limit may change. Belongs to one event loop.
    """

    def __init__(self, most: Callable[[], int], patience_s: float) -> None:
        self._most = most
        self._patience_s = patience_s
        self._line: deque[asyncio.Future[bool]] = deque()
        self._taken = 0
        self._freed = asyncio.Event()
        self._closed = False

    @property
    def taken(self) -> int:
        return self._taken

    @property
    def waiting(self) -> int:
        return len(self._line)

    @property
    def full(self) -> bool:
        return self._taken >= self._most()

    async def wait_for_room(self, seconds: float) -> None:
        """Wait until a slot may be free, at most that many seconds.

        A process without room must look at the queue less often than orders return to it. Otherwise it would take
        orders that another process could run at once, and keep them in its line until its own runs end.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.full:
                    self._freed.clear()
                    await self._freed.wait()

    async def take(self, *, patient: bool = False) -> bool:
        """Return whether the caller got a slot; it must free that slot later."""
        room = SLOT_LINE if patient else self._most()
        if self._closed or (self.full and len(self._line) >= room):
            return False
        turn: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._line.append(turn)
        self._fill_slots()
        try:
            await asyncio.wait((turn,), timeout=None if patient else self._patience_s)
        except asyncio.CancelledError:
            if self._leave_line(turn):
                self.free()
            raise
        return self._leave_line(turn)

    def free(self) -> None:
        self._taken -= 1
        self._freed.set()
        self._fill_slots()

    def close(self) -> None:
        """Refuse slots to everybody who waits now or asks later."""
        self._closed = True
        for turn in self._line:
            turn.set_result(False)
        self._line.clear()

    def _fill_slots(self) -> None:
        while self._line and self._taken < self._most():
            self._taken += 1
            self._line.popleft().set_result(True)

    def _leave_line(self, turn: asyncio.Future[bool]) -> bool:
        if turn.done():
            return turn.result()
        self._line.remove(turn)
        return False


class _NoSlot(RetryLater):
    """No slot is free here; another process may have one."""


Answer = TypeVar("Answer")
_log = logging.getLogger("hummingbird.service")


@dataclass(frozen=True, slots=True)
class WorkPauses:
    """How long a message waits, in seconds.

    Attributes:
        slot_s: Until the next look for a free slot.
        retries_s: Before the second and the third try.
        outages_s: Before each further look at a GitLab that does not answer; there are no more looks than pauses.
    """

    slot_s: float = SLOT_PAUSE_S
    retries_s: tuple[int, int] = WORK_PAUSES_S
    outages_s: Sequence[int] = WORK_AWAY_S


class Worker:
    """Receive messages, hand them to the stages, and retry, postpone or bury those that fail.

    `max_runs` is called each time, because the limit may change. `visibility_s` is the queue's visibility timeout.
    `grace_s` is the time that runs have to end after a stop. Belongs to one event loop.
    """

    def __init__(
        self,
        queue: Queue,
        ingress: EventIngress,
        max_runs: Callable[[], int],
        *,
        process_event: EventProcessor,
        process_order: OrderProcessor,
        visibility_s: int,
        grace_s: float,
        pauses: WorkPauses | None = None,
    ) -> None:
        self._queue = queue
        self._event_processor = process_event
        self._order_processor = process_order
        self._ingress = ingress
        self._max_runs = max_runs
        self._visibility_s = visibility_s
        self._grace_s = grace_s
        self._pauses = pauses or WorkPauses()
        self._outage = OutageRetry("The queue")
        self._stopping = asyncio.Event()
        self._parking = asyncio.Event()
        self._groups: set[asyncio.Task[None]] = set()
        self._settled = asyncio.Event()
        self._slots = RunSlots(max_runs, self._pauses.slot_s)
        self._next_look = -math.inf
        self._more_events = False
        self._postponed: OrderedDict[str, QueueEnvelope] = OrderedDict()
        self._resumed: OrderedDict[str, QueueEnvelope] = OrderedDict()
        self._held: dict[str, QueueEnvelope] = {}

    @property
    def running(self) -> int:
        """Return how many slots are taken."""
        return self._slots.taken

    def stop(self) -> None:
        """Receive nothing more; `run` returns once all work is done or parked. A second call parks it at once."""
        if self._stopping.is_set():
            self._parking.set()
        self._stopping.set()
        self._slots.close()

    async def run(self) -> None:
        """Process messages until `stop` is called; cancelling it parks everything."""
        try:
            while not self._stopping.is_set():
                await self._receive()
            await run_unless_stopped(self._parking, self._wait_for_groups(self._grace_s))
        finally:
            self._stopping.set()
            self._parking.set()
            self._slots.close()
            await self._wait_for_groups(PARKING_S)
            await self._abandon()

    async def _wait_for_groups(self, seconds: float) -> None:
        if self._groups:
            await asyncio.wait(tuple(self._groups), timeout=seconds)

    async def _abandon(self) -> None:
        """Leave behind groups that do not end even when cancelled: their messages become visible again."""
        for task in tuple(self._groups):
            _log.error("A task did not end in time and was abandoned; its message will be received again.")
            task.cancel()
        await self._wait_for_groups(0)

    async def _receive(self) -> None:
        busy = len(self._groups) - self._slots.waiting - len(self._held)
        most = min(QUEUE_BATCH, self._max_runs() + WORK_AT_ONCE - busy)
        if most < 1:
            self._settled.clear()
            await run_unless_stopped(self._stopping, self._settled.wait())
            return
        if self._slots.full and self._groups and not self._more_events:
            await run_unless_stopped(self._stopping, self._slots.wait_for_room(SLOT_FULL_PAUSES * self._pauses.slot_s))
        asked_at = 0.0

        async def receive() -> Sequence[QueueMessage]:
            nonlocal asked_at
            asked_at = time.monotonic()
            return await self._queue.receive(most, QUEUE_WAIT_S)

        messages = await run_unless_stopped(self._stopping, self._outage.retry_until_available(receive)) or ()
        self._more_events = any(is_event(message.body) for message in messages)
        for group in _group_messages(messages):
            self._start_group(group, whole=len(messages) < most, asked_at=asked_at)

    def _start_group(self, messages: Sequence[QueueMessage], *, whole: bool, asked_at: float) -> None:
        holding = MessageLease(
            self._queue, self._outage, messages, whole=whole, visibility_s=self._visibility_s, asked_at=asked_at
        )
        task = asyncio.create_task(self._process_group(holding))
        self._groups.add(task)
        task.add_done_callback(self._on_group_done)

    def _on_group_done(self, task: asyncio.Task[None]) -> None:
        self._groups.discard(task)
        self._settled.set()
        if not task.cancelled() and (error := task.exception()):
            _log.error("Could not return a message to the queue; it will be received again.", exc_info=error)

    async def _process_group(self, holding: MessageLease) -> None:
        async with holding:
            while (message := holding.first) and not self._stopping.is_set():
                await self._process_message(holding, message)
            await holding.release()

    async def _process_message(self, holding: MessageLease, message: QueueMessage) -> None:
        """Process the message; afterwards it is no longer the first of its group."""
        with _log_context(message):
            await self._process_or_retry(holding, message)

    async def _process_or_retry(self, holding: MessageLease, message: QueueMessage) -> None:
        try:
            queued = parse_envelope(message.body)
            if queued.tries + message.receives > QUEUE_RECEIVES:
                raise PlatformError("It was received too often and never finished; see what ended the process.")
            if known := self._held.pop(message.id, None) or self._resumed.pop(message.id, None):
                await self._process_envelope(holding, message, queued, known)
                return
            waited = self._postponed.pop(message.id, None)
            if waited and await holding.renew(_create_successor_for(waited, queued, message)):
                return
            await self._process_envelope(holding, message, queued, waited or queued)
        except Exception as error:  # noqa: BLE001 - the border of a message: a bug must not end the worker
            await self._handle_failure(holding, message, error)

    async def _process_envelope(
        self, holding: MessageLease, message: QueueMessage, queued: QueueEnvelope, envelope: QueueEnvelope
    ) -> None:
        try:
            if isinstance(envelope, EventEnvelope):
                await self._process_event(holding, envelope)
            else:
                await self._process_order(holding, message, queued, envelope)
        except (GitLabUnavailable, GitLabWriteUncertain) as error:
            if holding.first is not message:
                raise
            if envelope.put_off >= len(self._pauses.outages_s):
                self._remember(self._resumed, message, envelope)  # the next try here need not wait as long again
                raise
            await self._wait_for_gitlab(holding, message, queued, envelope, error)

    async def _wait_for_gitlab(
        self,
        holding: MessageLease,
        message: QueueMessage,
        queued: QueueEnvelope,
        envelope: QueueEnvelope,
        error: HummingbirdError,
    ) -> None:
        """Postpone the message until GitLab is back; this does not count as a try.

        What was found out until then is posted when GitLab is back.
        """
        seconds = self._pauses.outages_s[envelope.put_off]
        _log.warning("%s waits %s s for GitLab: %s", _describe_message(message), seconds, error)
        await self._wait_with_lease(holding, message, queued, count_postponement(envelope), seconds)

    async def _process_event(self, holding: MessageLease, event: EventEnvelope) -> None:
        ended = await self._run_until_lost(holding, self._event_processor(event))
        if ended is None:
            await holding.release()
            return
        orders = ended.result()
        for order in () if isinstance(orders, Skipped) else orders:
            await self._outage.retry_until_available(
                partial(self._queue.send, encode_envelope(order), group=order.session_id, dedup_id=order.id)
            )
        if await holding.complete():
            await self._ingress.delete_body(event)

    async def _process_order(
        self, holding: MessageLease, message: QueueMessage, queued: QueueEnvelope, order: WorkOrder
    ) -> None:
        ended = await self._run_until_lost(holding, self._run_in_slot(order, queued.tries + message.receives))
        if ended is None:
            await holding.release()  # not replaced: what was sent since would overtake it
        elif isinstance(later := ended.result(), RetryLater):
            _log.debug("Order %s of session %s waits: %s.", order.id, order.session_id, later.reason)
            seconds = min(LATER_CAP_S, max(1, math.ceil(later.seconds)))
            if isinstance(later, _NoSlot):
                await self._give_back(holding, message, queued, order, seconds)
                return
            following = msgspec.structs.replace(later.successor, waits=order.waits + 1)
            await self._wait_with_lease(holding, message, queued, following, seconds)
        else:
            await holding.complete()

    async def _run_in_slot(self, order: WorkOrder, tries: int) -> RetryLater | Skipped | FailedOrder | None:
        """Run the order, or return RetryLater if no slot is free.

        An order that was received before waits patiently, to keep its place: given back once more, it might be replaced
        by its successor, and other orders of the session would overtake it.
        """
        if not await self._slots.take(patient=tries > 1):
            return _NoSlot(self._seconds_until_look(), order, "all slots are taken")
        try:
            return await self._order_processor(order, last_try=tries >= QUEUE_RECEIVES)
        finally:
            self._slots.free()

    def _seconds_until_look(self) -> float:
        """Stagger the retries, so that many orders that wait for a slot cost no more than a few do."""
        now = time.monotonic()
        self._next_look = max(self._next_look + SLOT_LOOK_S, now + self._pauses.slot_s)
        return self._next_look - now

    async def _wait_with_lease(
        self,
        holding: MessageLease,
        message: QueueMessage,
        queued: QueueEnvelope,
        following: QueueEnvelope,
        seconds: int,
    ) -> None:
        """Keep the message, and with it its group, until it is processed again as `following`.

        So nothing overtakes it, and waiting uses up no receive. If this process dies, another one starts from the
        queued envelope. Only where very many wait already, the message goes back to the queue.
        """
        if len(self._held) >= LATER_REMEMBERED:
            await self._give_back(holding, message, queued, following, seconds)
            return
        self._held[message.id] = following
        self._settled.set()  # a group that waits takes no room from others
        ends = [asyncio.ensure_future(event.wait()) for event in (holding.lost, self._stopping)]
        try:
            await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in ends:
                one.cancel()
            if holding.first is not message or self._stopping.is_set():
                del self._held[message.id]

    async def _give_back(
        self,
        holding: MessageLease,
        message: QueueMessage,
        queued: QueueEnvelope,
        following: QueueEnvelope,
        seconds: int,
    ) -> None:
        """Postpone the message in the queue, where another process may take it."""
        if self._stopping.is_set():
            return  # released with the rest of the group, so that another process can take it at once
        if message.receives >= self._queue.most_receives == 1:
            await self._hold(seconds)
        if await holding.postpone(seconds, _create_successor_for(following, queued, message)):
            self._remember(self._postponed, message, following)

    def _remember(self, known: OrderedDict[str, QueueEnvelope], message: QueueMessage, envelope: QueueEnvelope) -> None:
        """Remember the envelope for when the same message is received again.

        Another process that receives it starts from the queued envelope.
        """
        known[message.id] = envelope
        while len(known) > LATER_REMEMBERED:
            known.popitem(last=False)

    async def _run_until_lost(
        self, holding: MessageLease, work: Coroutine[Any, Any, Answer]
    ) -> asyncio.Task[Answer] | None:
        """Run the work; cancel it and return None if the lease is lost or everything is parked.

        Raises what the work raises.
        """
        with bind_work_lease(holding):
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
            raise PlatformError("The work was cancelled, but not by the worker. See the log for the cause.")
        task.result()
        return task

    async def _handle_failure(self, holding: MessageLease, message: QueueMessage, error: Exception) -> None:
        trace = None if isinstance(error, HummingbirdError) else error  # a bug is logged with its traceback
        if holding.first is not message:
            _log.error(
                "%s was completed, but a later step failed: %s", _describe_message(message), error, exc_info=trace
            )
            return
        queued = _parse_or_none(message)
        tries = message.receives + (queued.tries if queued else 0)
        what = _describe_message(message)
        if tries >= QUEUE_RECEIVES:
            kept = await holding.move_to_dead_letters()
            becomes = "becomes a dead letter" if kept else "is deleted, because its queue keeps no dead letters"
            _log.error("%s failed for the last time and %s: %s", what, becomes, error, exc_info=trace)
            return
        seconds = self._pauses.retries_s[tries - 1]
        _log.warning("%s failed and will be retried in %s s: %s", what, seconds, error, exc_info=trace)
        if queued is None or message.receives < self._queue.most_receives:
            await holding.retry_later(seconds)
            return
        await self._hold(seconds)
        await holding.replace(_create_successor_for(count_tries(queued, message.receives), queued, message))

    async def _hold(self, seconds: float) -> None:
        """Keep the message for a while: a queue that does not give it out again could not make it wait."""
        await run_unless_stopped(self._stopping, asyncio.sleep(seconds))


def _parse_or_none(message: QueueMessage) -> QueueEnvelope | None:
    try:
        return parse_envelope(message.body)
    except EventUnreadable:
        return None


def _create_successor_for(envelope: QueueEnvelope, queued: QueueEnvelope, message: QueueMessage) -> SuccessorMessage:
    """Return the message that takes the place of one that has waited."""
    if isinstance(envelope, WorkOrder) and isinstance(queued, WorkOrder):
        return create_successor(envelope, queued.waits)
    return create_copy(encode_envelope(envelope), message.id)


def _log_context(message: QueueMessage) -> AbstractContextManager[None]:
    """Add the event's or order's ids to every log line about the message."""
    envelope = _parse_or_none(message)
    if envelope is None:
        return nullcontext()
    if isinstance(envelope, EventEnvelope):
        return bind_log_context(event_id=envelope.identity)
    return bind_log_context(envelope.id, envelope.session_id)


def _describe_message(message: QueueMessage) -> str:
    envelope = _parse_or_none(message)
    if envelope is None:
        return f"Message {message.id}"
    if isinstance(envelope, EventEnvelope):
        return f"Event {envelope.identity}"
    return f"Order {envelope.id} of session {envelope.session_id}"


def _group_messages(messages: Sequence[QueueMessage]) -> list[list[QueueMessage]]:
    """Return the messages by group, each group in its order."""
    groups: dict[str, list[QueueMessage]] = {}
    for message in messages:
        groups.setdefault(message.group, []).append(message)
    return list(groups.values())
