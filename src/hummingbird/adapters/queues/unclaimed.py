"""What a thread took from a queue for somebody who has left meanwhile: it is given back.

A thread cannot be cancelled. Without this, what it takes would be in flight until its time is over, with nobody.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Generic, TypeVar

from hummingbird.domain.errors import HummingbirdError, QueueUnusable

Taken = TypeVar("Taken")


class Unclaimed(Generic[Taken]):
    def __init__(self, give_back: Callable[[Sequence[Taken]], Awaitable[None]]) -> None:
        self._give_back = give_back
        self._left: set[asyncio.Task[None]] = set()
        self._claims = 0
        self._closing = asyncio.Event()

    def check_open(self) -> None:
        """Raises QueueUnusable."""
        if self.is_closing():
            raise QueueUnusable("The queue is closed; open it again to receive from it.")

    async def claim(self, taking: Coroutine[Any, Any, Sequence[Taken]]) -> Sequence[Taken]:
        """What it takes; nothing when the queue is closed first."""
        task = asyncio.ensure_future(taking)
        self._claims += 1
        try:
            return await self._claimed(task)
        except asyncio.CancelledError:
            self._leave(task)
            raise
        finally:
            self._claims -= 1

    async def _claimed(self, task: asyncio.Task[Sequence[Taken]]) -> Sequence[Taken]:
        closing = asyncio.ensure_future(self._closing.wait())
        try:
            await asyncio.wait((task, closing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            closing.cancel()
        if task.done():
            return task.result()
        self._leave(task)
        return ()

    def _leave(self, task: asyncio.Task[Sequence[Taken]]) -> None:
        leaving = asyncio.ensure_future(self._return(task))
        self._left.add(leaving)
        leaving.add_done_callback(self._left.discard)

    async def _return(self, task: asyncio.Task[Sequence[Taken]]) -> None:
        try:
            if messages := await task:
                await self._give_back(messages)
        except HummingbirdError:
            return  # their time in flight ends by itself

    def is_closing(self) -> bool:
        return self._closing.is_set()

    def begin_closing(self) -> None:
        """Nothing is claimed any more."""
        self._closing.set()

    async def settled(self) -> None:
        """Returns when everything is back."""
        while self._claims or self._left:
            if self._left:
                await asyncio.wait(tuple(self._left))
            else:
                await asyncio.sleep(0)  # whoever claims is awake and about to leave
