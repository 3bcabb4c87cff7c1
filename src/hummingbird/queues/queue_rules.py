"""Rules that all queues share: which messages they accept, and how they return messages that nobody waits for.

The rules for messages are those of SQS, so that whatever the SQLite queue accepts also works in the cloud.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Generic, TypeVar

from hummingbird.core.errors import HummingbirdError, InvalidRequest, QueueUnusable
from hummingbird.core.limits import QUEUE_BATCH, QUEUE_BODY_BYTES, QUEUE_HELD_S, QUEUE_NAME_CHARS, QUEUE_WAIT_S

_NAME = re.compile(rf"[!-~]{{1,{QUEUE_NAME_CHARS}}}")  # ASCII letters, digits and punctuation
_NOT_CARRIED = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # not allowed in XML 1.0


def check_sendable(body: str, group: str, dedup_id: str) -> None:
    """Check that a queue can carry the message. Raises InvalidRequest."""
    for what, name in (("group", group), ("deduplication id", dedup_id)):
        if not _NAME.fullmatch(name):
            raise InvalidRequest(
                f"A message's {what} is 1 to {QUEUE_NAME_CHARS} ASCII characters without spaces, not {name[:200]!a}; "
                "use a hash of it."
            )
    _check_body(body)


def _check_body(body: str) -> None:
    if not body:
        raise InvalidRequest("A queue carries no empty message; put something into its body.")
    if found := _NOT_CARRIED.search(body):
        raise InvalidRequest(
            f"A queue cannot carry the character U+{ord(found[0]):04X} at position {found.start()}; encode the body."
        )
    if (weight := len(body.encode())) > QUEUE_BODY_BYTES:
        raise InvalidRequest(
            f"The message weighs {weight} bytes and a queue carries {QUEUE_BODY_BYTES}; store it and send its name."
        )


def check_receivable(most: int, wait_s: float) -> None:
    """Check the batch size and the waiting time of a receive. Raises InvalidRequest."""
    if not 1 <= most <= QUEUE_BATCH:
        raise InvalidRequest(f"A queue gives 1 to {QUEUE_BATCH} messages at once, not {most}; ask again for more.")
    if not 0 <= wait_s <= QUEUE_WAIT_S:
        raise InvalidRequest(f"A queue waits 0 to {QUEUE_WAIT_S:.0f} seconds, not {wait_s}; ask again to wait longer.")


def check_holdable(seconds: int, least: int) -> None:
    """Check for how long a message is to be held. Raises InvalidRequest."""
    if not least <= seconds <= QUEUE_HELD_S:
        raise InvalidRequest(
            f"A message is held for {least} to {QUEUE_HELD_S} seconds, not {seconds}; send a successor for later work."
        )


MessageT = TypeVar("MessageT")


class UnclaimedMessages(Generic[MessageT]):
    """Return messages to the queue when the caller that wanted them was cancelled meanwhile.

    Receives run in threads, which cannot be cancelled. Without this class, messages that such a thread still receives
    would stay in flight until their visibility timeout, with nobody working on them.
    """

    def __init__(self, give_back: Callable[[Sequence[MessageT]], Awaitable[None]]) -> None:
        self._give_back = give_back
        self._left: set[asyncio.Task[None]] = set()
        self._claims = 0
        self._closing = asyncio.Event()

    def check_open(self) -> None:
        """Raise QueueUnusable if the queue is closing or closed."""
        if self.is_closing():
            raise QueueUnusable("The queue is closed; open it again to receive from it.")

    async def claim(self, taking: Coroutine[Any, Any, Sequence[MessageT]]) -> Sequence[MessageT]:
        """Return the messages that `taking` receives; nothing if the queue closes first."""
        task = asyncio.ensure_future(taking)
        self._claims += 1
        try:
            return await self._wait_for_claim(task)
        except asyncio.CancelledError:
            self._abandon(task)
            raise
        finally:
            self._claims -= 1

    async def _wait_for_claim(self, task: asyncio.Task[Sequence[MessageT]]) -> Sequence[MessageT]:
        closing = asyncio.ensure_future(self._closing.wait())
        try:
            await asyncio.wait((task, closing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            closing.cancel()
        if task.done():
            return task.result()
        self._abandon(task)
        return ()

    def _abandon(self, task: asyncio.Task[Sequence[MessageT]]) -> None:
        leaving = asyncio.ensure_future(self._return_messages(task))
        self._left.add(leaving)
        leaving.add_done_callback(self._left.discard)

    async def _return_messages(self, task: asyncio.Task[Sequence[MessageT]]) -> None:
        try:
            if messages := await task:
                await self._give_back(messages)
        except HummingbirdError:
            return  # their visibility timeout makes them available again

    def is_closing(self) -> bool:
        return self._closing.is_set()

    def begin_closing(self) -> None:
        """End all waiting claims."""
        self._closing.set()

    async def wait_until_returned(self) -> None:
        """Wait until all claims have ended and all abandoned messages were returned."""
        while self._claims or self._left:
            if self._left:
                await asyncio.wait(tuple(self._left))
            else:
                await asyncio.sleep(0)  # the claiming task has been woken and is about to return
