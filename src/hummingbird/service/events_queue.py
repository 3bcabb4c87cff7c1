"""The SQS door (E1): events that others put into a queue of theirs are handed to ingress, then deleted there.

What cannot be read is left to that queue's own dead letters; where it has none, it is dropped when it keeps coming.
"""

import asyncio
import logging
from functools import partial

from hummingbird.domain.errors import EventUnreadable, ObjectsUnusable, QueueUnusable
from hummingbird.domain.limits import QUEUE_RECEIVES, QUEUE_WAIT_S
from hummingbird.ports.inbox import Inbox, Letter
from hummingbird.service.envelopes import Unwanted, from_sqs
from hummingbird.service.ingress import Ingress
from hummingbird.service.outages import Outage, growing, unless

_log = logging.getLogger("hummingbird.service")


class EventsQueue:
    """Belongs to one event loop."""

    def __init__(self, inbox: Inbox, ingress: Ingress) -> None:
        self._inbox = inbox
        self._ingress = ingress
        self._outage = Outage("The queue of events")
        self._behind = Outage("What keeps events")
        self._pauses = growing()
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """What is at hand is handed on, then `run` returns."""
        self._stopping.set()

    async def run(self) -> None:
        """Until there is a stop."""
        while not self._stopping.is_set():
            receiving = self._outage.surely(partial(self._inbox.receive, QUEUE_WAIT_S))
            letters = await unless(self._stopping, receiving) or ()
            kept = await asyncio.gather(*(self._take(letter) for letter in letters))
            if all(kept):
                self._pauses = growing()
            else:
                await unless(self._stopping, asyncio.sleep(next(self._pauses)))

    async def _take(self, letter: Letter) -> bool:
        """False if nothing can be kept at the moment; the letter comes again by itself."""
        try:
            await self._hand_on(letter)
        except EventUnreadable as error:
            return await self._unreadable(letter, error)
        except (QueueUnusable, ObjectsUnusable) as error:
            self._behind.noticed(error)
            return False
        self._behind.over()
        await self._delete(letter)
        return True

    async def _hand_on(self, letter: Letter) -> None:
        delivery = from_sqs(letter.body, letter.attributes)
        if isinstance(delivery, Unwanted):
            _log.info("Message %s of the queue of events is not for us: %s.", letter.id, delivery.reason)
        else:
            await self._ingress.take(delivery)

    async def _unreadable(self, letter: Letter, error: EventUnreadable) -> bool:
        _log.warning("Message %s of the queue of events was not understood: %s", letter.id, error)
        if letter.receives > QUEUE_RECEIVES:  # a queue with dead letters would have put it there
            await self._delete(letter)
        return True

    async def _delete(self, letter: Letter) -> None:
        try:
            await self._inbox.delete(letter)
        except QueueUnusable as error:
            self._outage.noticed(error)  # it comes again, and is recognised by its identity
