"""Where a case is played: fresh queues, several openings of one, and other processes at it. Knows no backend."""

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

from hummingbird.core.limits import QUEUE_WAIT_S
from hummingbird.core.protocols.queues import Queue, QueueMessage

LONGEST_CASE_S = 120.0
LONG_S = 120  # in flight for as long as a case lasts
PATIENCE_S = QUEUE_WAIT_S  # with what has to come; whoever waits for it returns as soon as it does
_WORKER = Path(__file__).with_name("worker.py")


class Site(Protocol):
    """One queue that any number of people can open."""

    def open(self, visibility_s: int) -> Queue: ...

    def words(self) -> Sequence[str]:
        """How another process is told to open it."""
        ...


class Backend(Protocol):
    @property
    def refuses_expired(self) -> bool:
        """Whether a receipt is refused whose time is over, though nobody has received the message since."""
        ...

    async def site(self) -> Site:
        """A new, empty queue."""
        ...


class Case(Protocol):
    __name__: str

    def __call__(self, stage: "Stage") -> Coroutine[Any, Any, None]: ...


class Stage:
    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._after = AsyncExitStack()

    async def play(self, case: Case) -> None:
        async with asyncio.timeout(LONGEST_CASE_S), AsyncExitStack() as self._after:
            await case(self)

    async def queue(self, visibility_s: int = LONG_S) -> Queue:
        """A fresh one, closed after the case."""
        return self.opened(await self.backend.site(), visibility_s)

    def opened(self, site: Site, visibility_s: int = LONG_S) -> Queue:
        queue = site.open(visibility_s)
        self._after.push_async_callback(queue.close)
        return queue

    @asynccontextmanager
    async def worker(self, site: Site, deed: str, visibility_s: int, *more: str) -> AsyncIterator[Process]:
        words = (str(_WORKER), deed, str(visibility_s), *site.words(), *more)
        process = await asyncio.create_subprocess_exec(sys.executable, *words, stdin=DEVNULL, stdout=PIPE)
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()


async def one(queue: Queue, wait_s: float = PATIENCE_S) -> QueueMessage:
    """The next message, alone."""
    (message,) = await queue.receive(1, wait_s)
    return message


async def nothing(queue: Queue) -> None:
    assert not await queue.receive(10, 0)


async def sent(queue: Queue, group: str, *bodies: str) -> list[str]:
    """Their ids. A body is its own deduplication id."""
    return [await queue.send(body, group=group, dedup_id=f"{group}/{body}") for body in bodies]


def bodies(messages: Sequence[QueueMessage]) -> list[str]:
    return [message.body for message in messages]
