"""What we ask of a queue (E3): order within a group, one holder at a time, and nothing lost when a holder dies.

Knows nothing of what a message means. That nothing is deleted before its work is done is the worker's promise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Message:
    """One that was received. `receives` counts this time too. `receipt` is for the queue that gave it, and only the
    latest one of a message is of use."""

    id: str
    group: str
    body: str
    receives: int
    receipt: str


@dataclass(frozen=True, slots=True)
class Successor:
    """What is sent in the place of a message that was received."""

    body: str
    dedup_id: str


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One that was received QUEUE_RECEIVES times and never deleted."""

    id: str
    group: str
    body: str


class Queue(Protocol):
    """Every verb raises QueueUnusable when the queue cannot be opened or reached, or is closed.

    A message that was received is in flight until it is deleted or its time is over; then it is the first of its group
    again. A group of which anything is in flight gives out nothing more; other groups are not held up by that.
    """

    async def send(self, body: str, *, group: str, dedup_id: str) -> str:
        """The message's id, once it is safe. What is sent with the same `dedup_id` within QUEUE_DEDUP_S of the first
        is not sent again, deleted or not: the id of the first is returned. Raises InvalidRequest: too large, empty, or
        characters that a queue cannot carry."""
        ...

    async def receive(self, most: int, wait_s: float) -> Sequence[Message]:
        """The oldest ones that are free, at most QUEUE_BATCH; several of one group come in their order. Waits while
        there are none, up to QUEUE_WAIT_S. Empty when there were none, or when the queue is closed meanwhile.
        Cancelling it gives back what nobody has seen; with SQS that counts as a receive, but never as the last one.
        Raises InvalidRequest."""
        ...

    async def keep(self, message: Message, seconds: int) -> None:
        """In flight for that long from now, QUEUE_HELD_S from its receive at most. Raises ReceiptExpired,
        InvalidRequest."""
        ...

    async def postpone(self, message: Message, seconds: int) -> None:
        """Gives it back, to be received again after that time. Its group waits for it. Raises ReceiptExpired,
        InvalidRequest."""
        ...

    async def delete(self, message: Message) -> None:
        """It is done. Raises ReceiptExpired: it may be with somebody else by now."""
        ...

    async def replace(self, messages: Sequence[Message], successors: Sequence[Successor]) -> None:
        """Send the successors to the end of the group, then delete the messages, which are all of that group. A process
        that dies meanwhile has done all of it or nothing; with SQS it may have sent without deleting, and then the
        messages still come first. Raises ReceiptExpired: one of them may be with somebody else by now; then nothing
        was sent, unless SQS noticed it only when it deleted. Raises InvalidRequest."""
        ...

    async def dead(self) -> Sequence[DeadLetter]:
        """QUEUE_DEAD_LISTED at most. A message gets there when it would have been received again. Each group shows its
        oldest ones; with SQS others may come to light only when those are retried or dropped."""
        ...

    async def retry(self, letter_id: str) -> str:
        """Sends a dead letter anew, as the last of its group, and returns its new id. Raises UsageFault: no such
        letter."""
        ...

    async def drop(self, letter_id: str) -> None:
        """Forgets a dead letter. Raises UsageFault: no such letter."""
        ...

    async def check(self) -> None:
        """Returns if the queue can be used; takes nothing from it."""
        ...

    async def close(self) -> None:
        """Ends all waiting. May be called more than once."""
        ...
