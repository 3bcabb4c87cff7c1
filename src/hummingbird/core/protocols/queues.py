"""Define the protocols of the work queue and of the inbox that others put events into.

The queue guarantees order within a group, one holder per message at a time, and that nothing is lost when a holder
dies. It does not interpret messages. The worker deletes a message only after its work is done.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class QueueMessage:
    """A received message.

    `receives` counts this receive too. `receipt` is only valid for the queue that gave it, and only the latest receipt
    of a message works.
    """

    id: str
    group: str
    body: str
    receives: int
    receipt: str


@dataclass(frozen=True, slots=True)
class SuccessorMessage:
    """A message that replaces a received one."""

    body: str
    dedup_id: str


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that was given up."""

    id: str
    group: str
    body: str


class Queue(Protocol):
    """A queue of messages in groups.

    Every method raises QueueUnusable when the queue cannot be opened or reached, or is closed.

    A received message is in flight until it is deleted or its lease ends; then it is the first of its group again.
    While any message of a group is in flight, the queue gives out no other message of it; other groups are not
    affected.
    """

    @property
    def most_receives(self) -> int:
        """How often a message may be received before the queue gives it up, at most QUEUE_RECEIVES."""
        ...

    async def send(self, body: str, *, group: str, dedup_id: str) -> str:
        """Send a message, and return its id once it is stored safely.

        Sending with the same `dedup_id` within QUEUE_DEDUP_S of the first time sends nothing, even if the first message
        was deleted, and returns the id of the first. Raises InvalidRequest when the body is too large, empty, or has
        characters that a queue cannot carry.
        """
        ...

    async def receive(self, most: int, wait_s: float) -> Sequence[QueueMessage]:
        """Receive the oldest free messages, at most QUEUE_BATCH; those of one group come in order.

        Waits while there are none, up to QUEUE_WAIT_S. Returns nothing on timeout or when the queue is closed
        meanwhile. Cancelling gives unseen messages back; with SQS that counts as a receive, but never as the last one.
        Raises InvalidRequest.
        """
        ...

    async def extend_lease(self, message: QueueMessage, seconds: int) -> None:
        """Keep the message in flight for `seconds` from now, at most QUEUE_HELD_S from its receive.

        Raises ReceiptExpired, InvalidRequest.
        """
        ...

    async def postpone(self, message: QueueMessage, seconds: int) -> None:
        """Give the message back, to be received again after `seconds`; its group waits for it.

        Raises ReceiptExpired, InvalidRequest.
        """
        ...

    async def delete(self, message: QueueMessage) -> None:
        """Delete a message whose work is done.

        Raises ReceiptExpired when another process may have it by now.
        """
        ...

    async def bury(self, message: QueueMessage) -> bool:
        """Give up a message; return whether it is kept as a dead letter.

        A queue that has no place for dead letters deletes it. Raises ReceiptExpired.
        """
        ...

    async def replace(self, messages: Sequence[QueueMessage], successors: Sequence[SuccessorMessage]) -> None:
        """Send the successors to the end of the group, then delete the messages, which are all of that group.

        A process that dies meanwhile has done all of it or nothing; with SQS it may have sent without deleting, and
        then the messages still come first. Raises ReceiptExpired when another process may have one of the messages by
        now; then nothing was sent, unless SQS noticed it only when it deleted. Raises InvalidRequest.
        """
        ...

    async def count_messages(self) -> int:
        """Return about how many messages are not done: those that wait, also for a time, and those in flight."""
        ...

    async def list_dead_letters(self) -> Sequence[DeadLetter]:
        """Return at most QUEUE_DEAD_LISTED dead letters.

        A message that nobody buried becomes one when it would be received once too often. Each group shows its
        oldest ones; with SQS, others may appear only after those are retried or deleted.
        """
        ...

    async def retry_dead_letter(self, letter_id: str) -> str:
        """Send a dead letter again, as the last of its group, and return its new id.

        Raises UsageError when there is no such letter.
        """
        ...

    async def delete_dead_letter(self, letter_id: str) -> None:
        """Delete a dead letter permanently.

        Raises UsageError when there is no such letter.
        """
        ...

    async def check(self) -> None:
        """Return if the queue can be used; takes no message from it."""
        ...

    async def close(self) -> None:
        """End all waiting. May be called more than once."""
        ...


@dataclass(frozen=True, slots=True)
class InboxMessage:
    """A received message of an inbox.

    `attributes` holds only attributes with a text value. `receives` counts this receive too.
    """

    id: str
    body: str
    receives: int
    receipt: str
    attributes: Mapping[str, str] = field(default_factory=dict)


class Inbox(Protocol):
    """A queue that others put events into: in any order, perhaps twice, and kept until deleted.

    Every method raises QueueUnusable when the queue cannot be reached or is closed.
    """

    async def receive(self, wait_s: float) -> Sequence[InboxMessage]:
        """Receive at most QUEUE_BATCH messages, waiting while there are none.

        Messages that are not deleted come again. Cancelling gives unseen messages back at once, except those that were
        received before: these come again when their visibility timeout ends.
        """
        ...

    async def delete(self, letter: InboxMessage) -> None:
        """Delete a message; succeeds also if it is already gone."""
        ...

    async def close(self) -> None:
        """Close the inbox. May be called more than once."""
        ...
