"""The one way in (E1, E2): an event that was taken is on the queue, and whoever sent it may forget it.

What no queue carries lies in the store of large things until it is worked off. Knows no door.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from hummingbird.domain.errors import ObjectsUnusable
from hummingbird.domain.incoming import Ignored
from hummingbird.domain.limits import QUEUE_BODY_BYTES
from hummingbird.domain.orders import Arrived, written
from hummingbird.ports.objects import Objects
from hummingbird.ports.queue import Queue
from hummingbird.service.envelopes import Delivery, group_of
from hummingbird.service.intake import read

_log = logging.getLogger("hummingbird.service")


@dataclass(frozen=True, slots=True)
class Taken:
    """`ignored` says why nothing was queued; empty for what was."""

    identity: str
    ignored: str = ""


@dataclass(frozen=True, slots=True)
class Ingress:
    queue: Queue
    objects: Objects
    now: Callable[[], float]

    async def take(self, delivery: Delivery, *, forced: bool = False) -> Taken:
        """Durable when it returns. Raises EventUnreadable, QueueUnusable, ObjectsUnusable."""
        incoming = read(delivery.body)
        if isinstance(incoming, Ignored):
            return Taken(delivery.identity, incoming.reason)
        await self.queue.send(
            await self._packed(delivery, forced), group=group_of(delivery), dedup_id=delivery.identity
        )
        return Taken(delivery.identity)

    async def _packed(self, delivery: Delivery, forced: bool) -> str:
        arrived = Arrived(identity=delivery.identity, at=self.now(), forced=forced)
        if len(delivery.body) <= QUEUE_BODY_BYTES:  # as JSON inside of JSON it may still become too large
            text = written(_with(arrived, body=delivery.body.decode()))
            if len(text) <= QUEUE_BODY_BYTES:
                return text
        name = f"events/{delivery.identity}"
        await self.objects.put(name, delivery.body)
        return written(_with(arrived, reference=name))

    async def body_of(self, arrived: Arrived) -> bytes:
        """Raises ObjectsUnusable."""
        if not arrived.reference:
            return arrived.body.encode()
        body = await self.objects.get(arrived.reference)
        if body is None:
            raise ObjectsUnusable(
                f"The body of event {arrived.identity} is not in the store; see whether this process uses the same "
                "store as the one that took the event."
            )
        return body

    async def forget(self, arrived: Arrived) -> None:
        """After it was worked off. What cannot be deleted is told to the operator: it is in nobody's way."""
        if not arrived.reference:
            return
        try:
            await self.objects.delete(arrived.reference)
        except ObjectsUnusable as error:
            _log.warning("The body of event %s stays in the store: %s", arrived.identity, error)


def _with(arrived: Arrived, *, body: str = "", reference: str = "") -> Arrived:
    return Arrived(identity=arrived.identity, at=arrived.at, forced=arrived.forced, body=body, reference=reference)
