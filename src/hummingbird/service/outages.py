"""Patience with a queue that cannot be reached: told once, asked again ever more seldom, told when it is back."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, TypeVar

from hummingbird.domain.errors import HummingbirdError, ObjectsUnusable, QueueUnusable
from hummingbird.domain.limits import OUTAGE_PAUSE_CAP_S, OUTAGE_PAUSE_S

Answer = TypeVar("Answer")
_log = logging.getLogger("hummingbird.service")


def growing() -> Iterator[float]:
    """Pauses in seconds, without end."""
    pause = OUTAGE_PAUSE_S
    while True:
        yield pause
        pause = min(2 * pause, OUTAGE_PAUSE_CAP_S)


class Outage:
    """Of one thing that several ask; `what` it is begins a sentence."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._told = False

    async def surely(self, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """Its answer, however long that takes. Raises what is no outage."""
        pauses = growing()
        while True:
            try:
                answer = await ask()
            except (QueueUnusable, ObjectsUnusable) as error:
                self.noticed(error)
                await asyncio.sleep(next(pauses))
            else:
                self.over()
                return answer

    def noticed(self, error: HummingbirdError) -> None:
        if not self._told:
            _log.error("%s cannot be used, and is asked again until it can: %s", self._what, error)
        self._told = True

    def over(self) -> None:
        if self._told:
            _log.warning("%s can be used again.", self._what)
        self._told = False


async def unless(stop: asyncio.Event, work: Coroutine[Any, Any, Answer]) -> Answer | None:
    """What it returns, or None if there is a stop first; then it is cancelled."""
    task, stopped = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((task, stopped), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            task.cancel()
            await asyncio.wait((task,))
        return None if task.cancelled() else task.result()
    finally:
        stopped.cancel()
        task.cancel()
