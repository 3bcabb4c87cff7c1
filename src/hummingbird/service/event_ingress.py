"""Accept events into our queue, from webhooks or from an SQS queue of events.

An event that was accepted is on the queue, and its sender may forget it. Messages that cannot be read are left to the
dead letters of the SQS queue; if it has none, they are deleted when they keep coming.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from hummingbird.core.errors import EventUnreadable, ObjectStoreUnusable, QueueUnusable
from hummingbird.core.limits import QUEUE_BODY_BYTES, QUEUE_RECEIVES, QUEUE_WAIT_S
from hummingbird.core.orders import EventEnvelope, encode_envelope
from hummingbird.core.protocols.queues import Inbox, InboxMessage, Queue
from hummingbird.core.protocols.storage import ObjectStore
from hummingbird.gitlab.webhook_events import IgnoredEvent
from hummingbird.service.envelopes import EventDelivery, UnwantedMessage, delivery_from_sqs, queue_group
from hummingbird.service.event_parser import parse_event
from hummingbird.service.outage_retry import OutageRetry, backoff_pauses, run_unless_stopped

_log = logging.getLogger("hummingbird.service")


@dataclass(frozen=True, slots=True)
class IngressReceipt:
    """What became of an event; `ignored` says why it was not queued, and is empty if it was."""

    identity: str
    ignored: str = ""


@dataclass(frozen=True, slots=True)
class EventIngress:
    """Put events on the queue.

    A body that is too large for a message lies in the object store until the event is processed.
    """

    queue: Queue
    objects: ObjectStore
    now: Callable[[], float]

    async def accept(self, delivery: EventDelivery, *, forced: bool = False) -> IngressReceipt:
        """Store the event durably before returning.

        Raises EventUnreadable, QueueUnusable and ObjectStoreUnusable.
        """
        incoming = parse_event(delivery.body)
        if isinstance(incoming, IgnoredEvent):
            return IngressReceipt(delivery.identity, incoming.reason)
        await self.queue.send(
            await self._pack(delivery, forced), group=queue_group(delivery), dedup_id=delivery.identity
        )
        return IngressReceipt(delivery.identity)

    async def _pack(self, delivery: EventDelivery, forced: bool) -> str:
        arrived = EventEnvelope(identity=delivery.identity, at=self.now(), forced=forced)
        if len(delivery.body) <= QUEUE_BODY_BYTES:  # as JSON inside JSON it may still become too large
            text = encode_envelope(_with_payload(arrived, body=delivery.body.decode()))
            if len(text) <= QUEUE_BODY_BYTES:
                return text
        name = f"events/{delivery.identity}"
        await self.objects.put(name, delivery.body)
        return encode_envelope(_with_payload(arrived, reference=name))

    async def load_body(self, arrived: EventEnvelope) -> bytes:
        """Return the event's body.

        Raises ObjectStoreUnusable.
        """
        if not arrived.reference:
            return arrived.body.encode()
        body = await self.objects.get(arrived.reference)
        if body is None:
            raise ObjectStoreUnusable(
                f"The body of event {arrived.identity} is not in the store; see whether this process uses the same "
                "store as the one that took the event."
            )
        return body

    async def delete_body(self, arrived: EventEnvelope) -> None:
        """Delete a stored body after its event was processed; a failure is only logged, because it does no harm."""
        if not arrived.reference:
            return
        try:
            await self.objects.delete(arrived.reference)
        except ObjectStoreUnusable as error:
            _log.warning("The body of event %s stays in the store: %s", arrived.identity, error)


def _with_payload(arrived: EventEnvelope, *, body: str = "", reference: str = "") -> EventEnvelope:
    return EventEnvelope(
        identity=arrived.identity, at=arrived.at, forced=arrived.forced, body=body, reference=reference
    )


class EventQueueReader:
    """Forward events from an SQS queue to the ingress and delete them there. Belongs to one event loop."""

    def __init__(self, inbox: Inbox, ingress: EventIngress) -> None:
        self._inbox = inbox
        self._ingress = ingress
        self._outage = OutageRetry("The event queue")
        self._storage_outage = OutageRetry("The event storage")
        self._pauses = backoff_pauses()
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Forward the messages at hand, then let `run` return."""
        self._stopping.set()

    async def run(self) -> None:
        """Forward messages until `stop` is called."""
        while not self._stopping.is_set():
            receiving = self._outage.retry_until_available(partial(self._inbox.receive, QUEUE_WAIT_S))
            letters = await run_unless_stopped(self._stopping, receiving) or ()
            kept = await asyncio.gather(*(self._process_letter(letter) for letter in letters))
            if all(kept):
                self._pauses = backoff_pauses()
            else:
                await run_unless_stopped(self._stopping, asyncio.sleep(next(self._pauses)))

    async def _process_letter(self, letter: InboxMessage) -> bool:
        """Return False if nothing can be stored at the moment; the message will be received again."""
        try:
            await self._forward_letter(letter)
        except EventUnreadable as error:
            return await self._handle_unreadable(letter, error)
        except (QueueUnusable, ObjectStoreUnusable) as error:
            self._storage_outage.report_error(error)
            return False
        self._storage_outage.report_recovery()
        await self._delete_letter(letter)
        return True

    async def _forward_letter(self, letter: InboxMessage) -> None:
        delivery = delivery_from_sqs(letter.body, letter.attributes)
        if isinstance(delivery, UnwantedMessage):
            _log.info("Message %s of the event queue is ignored: %s.", letter.id, delivery.reason)
        else:
            await self._ingress.accept(delivery)

    async def _handle_unreadable(self, letter: InboxMessage, error: EventUnreadable) -> bool:
        _log.warning("Message %s of the event queue cannot be read: %s", letter.id, error)
        if letter.receives > QUEUE_RECEIVES:  # a queue with dead letters would have moved it there by now
            await self._delete_letter(letter)
        return True

    async def _delete_letter(self, letter: InboxMessage) -> None:
        try:
            await self._inbox.delete(letter)
        except QueueUnusable as error:
            self._outage.report_error(error)  # it will be received again and recognised by its identity
