"""What the worker asks of those who do the work, and what they may answer. The worker knows queues; they know what a
message means."""

from dataclasses import dataclass
from typing import Protocol

from hummingbird.domain.orders import Arrived, WorkOrder


@dataclass(frozen=True, slots=True)
class Later:
    """Not yet: `successor` is to be looked at in that many seconds. It costs neither a slot nor a try (E3)."""

    seconds: float
    successor: WorkOrder
    reason: str


class Stages(Protocol):
    """Both raise HummingbirdErrors for what may go better another time; then the message is received again, and after
    QUEUE_RECEIVES times it is a dead letter. Both may be called again for the same message at any time (N3)."""

    async def arrived(self, event: Arrived) -> tuple[WorkOrder, ...]:
        """What is to be done about it; the caller puts it on the queue before the event is gone from it."""
        ...

    async def ordered(self, order: WorkOrder, *, last_try: bool) -> Later | None:
        """Does it. `last_try`: nobody will be asked again, so a failure has to be told in the thread (N6). Cancelling
        it parks it: the same order goes on where it was."""
        ...
