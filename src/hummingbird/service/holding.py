"""What one receive gave of one group, held by heart-beats and let go of in order (E3).

FIFO queues delay no message by itself, and every receive counts as a try. So a message that must wait is given back
invisible, once: its group waits with it. When it has come again a successor takes its place, at the end of the group
and before anything is tried, and everything that was received behind it is sent anew behind that, so that nothing
overtakes it and no try is lost. What somebody sends into the group in the very moment between may still come first; the
order's id makes that harmless.

Knows no stage and no order's meaning.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Self

from hummingbird.domain.errors import InvalidRequest, QueueUnusable, ReceiptExpired
from hummingbird.domain.limits import QUEUE_RECEIVES
from hummingbird.ports.queue import Message, Queue, Successor
from hummingbird.service.envelopes import copied
from hummingbird.service.outages import Outage

_log = logging.getLogger("hummingbird.service")


class Holding:
    """`whole`: the receive gave all there was, so that nothing of the group waits behind these. `lost` is set when the
    first of them is with somebody else: then whoever works on it must stop."""

    def __init__(
        self, queue: Queue, outage: Outage, messages: Sequence[Message], *, whole: bool, visibility_s: int
    ) -> None:
        self._queue = queue
        self._outage = outage
        self._left = list(messages)
        self._stay_before = 2 if whole else QUEUE_RECEIVES
        self._visibility_s = visibility_s
        self._turn = asyncio.Lock()  # a heart-beat must not undo what was just done to a message
        self._beating: asyncio.Task[None] | None = None
        self.lost = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._beating = asyncio.create_task(self._beat())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._beating is not None
        self._beating.cancel()
        await asyncio.wait((self._beating,))

    @property
    def first(self) -> Message | None:
        """The one to work on; None when there is nothing left to do."""
        return self._left[0] if self._left and not self.lost.is_set() else None

    async def done(self) -> bool:
        """The first one is worked off. False if it is with somebody else by now."""
        return await self._settle(self._queue.delete)

    async def die(self) -> None:
        """The first one was received for the last time: the queue buries it, and its group goes on."""
        await self._settle(lambda message: self._queue.postpone(message, 0))

    async def put_off(self, seconds: int) -> None:
        """The first one comes again after that time, which counts as a try. All others are given back behind it."""
        await self._settle(lambda message: self._queue.postpone(message, seconds))
        await self.give_back()

    async def wait(self, seconds: int, successor: Successor) -> bool:
        """The same, but it costs no try. False if the successor, which comes at once, stands for it now."""
        if (message := self.first) is None:
            return True
        if message.receives < self._stay_before:
            await self.put_off(seconds)
            return True
        await self.replace(successor)
        return False

    async def renew(self, successor: Successor) -> bool:
        """The first one has waited: a successor, which comes at once, has all its tries again. False if more of the
        group may be behind it, which must not overtake it while there are tries left."""
        if (message := self.first) is None or message.receives < self._stay_before:
            return False
        await self.replace(successor)
        return True

    async def replace(self, successor: Successor) -> None:
        """Successors for all of them, the given one for the first."""
        async with self._turn:
            if self.first is None:
                return
            behind = [copied(message.body, message.id) for message in self._left[1:]]
            try:
                await self._outage.surely(partial(self._queue.replace, tuple(self._left), (successor, *behind)))
            except (ReceiptExpired, InvalidRequest) as error:
                self._lose(self._left[0], error)
            else:
                self._left.clear()

    async def give_back(self) -> None:
        """All of them, at once and in order, and without the cost of a try."""
        while message := self.first:
            if message.receives >= self._stay_before:
                await self.replace(copied(message.body, message.id))
                return
            await self._settle(lambda message: self._queue.postpone(message, 0))

    async def _settle(self, verb: Callable[[Message], Awaitable[None]]) -> bool:
        async with self._turn:
            if (message := self.first) is None:
                return False
            try:
                await self._outage.surely(partial(verb, message))
            except (ReceiptExpired, InvalidRequest) as error:
                self._lose(message, error)
                return False
            self._left.remove(message)
            return True

    async def _beat(self) -> None:
        while self._left and not self.lost.is_set():
            await asyncio.sleep(self._visibility_s / 3)
            for message in tuple(self._left):
                async with self._turn:
                    if message in self._left:
                        await self._keep(message)

    async def _keep(self, message: Message) -> None:
        try:
            await self._queue.keep(message, self._visibility_s)
        except (ReceiptExpired, InvalidRequest) as error:
            self._lose(message, error)
        except QueueUnusable as error:
            self._outage.noticed(error)  # the next beat may come in time

    def _lose(self, message: Message, error: Exception) -> None:
        """Whatever stands behind it must not be done before it."""
        _log.warning("Message %s of group %s is left alone: %s", message.id, message.group, error)
        place = self._left.index(message)
        del self._left[place:]
        if place == 0:
            self.lost.set()
