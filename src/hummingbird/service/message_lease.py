"""Hold the messages of one group with heartbeats and complete, postpone or release them in order.

FIFO queues cannot delay a single message, and every receive counts as a try. So a message that must wait is made
invisible once, and its group waits with it. When it is received again, a successor replaces it before anything is
tried: the successor goes to the end of the group, and everything that was received behind it is sent anew behind that.
So nothing overtakes it and no try is lost. A message that somebody sends into the group at that very moment may still
come first; the order's id makes that harmless.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Self

from hummingbird.core.errors import InvalidRequest, QueueUnusable, ReceiptExpired
from hummingbird.core.limits import QUEUE_RECEIVES
from hummingbird.core.protocols.queues import Queue, QueueMessage, SuccessorMessage
from hummingbird.service.envelopes import create_copy
from hummingbird.service.outage_retry import OutageRetry

_log = logging.getLogger("hummingbird.service")


class MessageLease:
    """The messages of one group from one receive.

    `whole` means that the receive returned all there was, so nothing of the group waits behind these messages. `lost`
    is set when another process has the first message: then the work on it must stop. `asked_at` is the time, by the
    monotonic clock, before which the messages were not received.
    """

    def __init__(
        self,
        queue: Queue,
        outage: OutageRetry,
        messages: Sequence[QueueMessage],
        *,
        whole: bool,
        visibility_s: int,
        asked_at: float,
    ) -> None:
        self._queue = queue
        self._outage = outage
        self._messages = list(messages)
        self._whole = whole
        self._stay_before = min(2 if whole else QUEUE_RECEIVES, queue.most_receives)
        self._visibility_s = visibility_s
        self._ours_until = {message.id: asked_at + visibility_s for message in messages}
        self._lock = asyncio.Lock()  # a heartbeat must not undo what was just done to a message
        self._heartbeat_task: asyncio.Task[None] | None = None
        self.lost = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._heartbeat_task = asyncio.create_task(self._heartbeat())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._heartbeat_task is not None
        self._heartbeat_task.cancel()
        await asyncio.wait((self._heartbeat_task,))

    @property
    def first(self) -> QueueMessage | None:
        """Return the message to work on; None when there is nothing left to do."""
        return self._messages[0] if self._messages and not self.lost.is_set() else None

    async def ensure(self) -> None:
        """Return if the first message stays ours for half of the visibility timeout; extend its lease if need be.

        The time is taken before each extension, so a process that stood still meanwhile knows that it may be too late.
        """
        if self._is_safe(self.first):
            return
        async with self._lock:
            if (message := self.first) is not None and not self._is_safe(message):
                await self._extend(message)
        if not self._is_safe(self.first):
            raise ReceiptExpired("A message was held for too long; nothing is written, because others may have it.")

    def _is_safe(self, message: QueueMessage | None) -> bool:
        return message is not None and self._ours_until[message.id] - time.monotonic() >= self._visibility_s / 2

    async def complete(self) -> bool:
        """Delete the first message; return False if another process has it by now."""
        return await self._settle_first(self._queue.delete)

    async def move_to_dead_letters(self) -> bool:
        """Give up the first message, which has no tries left; return whether it is kept as a dead letter.

        The rest of the group goes on.
        """
        kept = True

        async def bury(message: QueueMessage) -> None:
            nonlocal kept
            kept = await self._queue.bury(message)

        await self._settle_first(bury)
        return kept

    async def retry_later(self, seconds: int) -> None:
        """Make the first message visible again after that time, which counts as a try.

        The others are released behind it.
        """
        await self._settle_first(lambda message: self._queue.postpone(message, seconds))
        await self.release()

    async def postpone(self, seconds: int, successor: SuccessorMessage) -> bool:
        """Postpone the first message without counting a try.

        Return False if the successor, which is visible at once, has replaced it.
        """
        if (message := self.first) is None:
            return True
        if message.receives < self._stay_before:
            await self.retry_later(seconds)
            return True
        await self.replace(successor)
        return False

    async def renew(self, successor: SuccessorMessage) -> bool:
        """Replace the first message, which has waited, by a successor.

        The successor is visible at once and has all its tries again. Return False if more of the group may be behind
        the message, which must not overtake it.
        """
        if (message := self.first) is None or not self._whole or message.receives < self._stay_before:
            return False
        await self.replace(successor)
        return True

    async def replace(self, successor: SuccessorMessage) -> None:
        """Replace all messages by successors, the first by the given one."""
        async with self._lock:
            if self.first is None:
                return
            behind = [create_copy(message.body, message.id) for message in self._messages[1:]]
            try:
                await self._outage.retry_until_available(
                    partial(self._queue.replace, tuple(self._messages), (successor, *behind))
                )
            except (ReceiptExpired, InvalidRequest) as error:
                self._mark_lost(self._messages[0], error)
            else:
                self._messages.clear()

    async def release(self) -> None:
        """Give all messages back at once and in order, without counting a try."""
        while message := self.first:
            if message.receives >= self._stay_before:
                await self.replace(create_copy(message.body, message.id))
                return
            await self._settle_first(lambda message: self._queue.postpone(message, 0))

    async def _settle_first(self, verb: Callable[[QueueMessage], Awaitable[None]]) -> bool:
        async with self._lock:
            if (message := self.first) is None:
                return False
            try:
                await self._outage.retry_until_available(partial(verb, message))
            except (ReceiptExpired, InvalidRequest) as error:
                self._mark_lost(message, error)
                return False
            self._messages.remove(message)
            return True

    async def _heartbeat(self) -> None:
        while self._messages and not self.lost.is_set():
            await asyncio.sleep(self._visibility_s / 3)
            for message in tuple(self._messages):
                async with self._lock:
                    if message in self._messages:
                        await self._extend(message)

    async def _extend(self, message: QueueMessage) -> None:
        began = time.monotonic()
        try:
            await self._queue.extend_lease(message, self._visibility_s)
            self._ours_until[message.id] = began + self._visibility_s
        except (ReceiptExpired, InvalidRequest) as error:
            self._mark_lost(message, error)
        except QueueUnusable as error:
            self._outage.report_error(error)  # the next heartbeat may come in time

    def _mark_lost(self, message: QueueMessage, error: Exception) -> None:
        """Drop the message and everything behind it, which must not be processed before it."""
        _log.warning("Lost the lease of message %s of group %s: %s", message.id, message.group, error)
        place = self._messages.index(message)
        del self._messages[place:]
        if place == 0:
            self.lost.set()
