"""Retry a queue or store until it is available again, and log the start and the end of the outage once."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, TypeVar

from hummingbird.core.errors import HummingbirdError, ObjectStoreUnusable, QueueUnusable
from hummingbird.core.limits import OUTAGE_PAUSE_CAP_S, OUTAGE_PAUSE_S

Answer = TypeVar("Answer")
_log = logging.getLogger("hummingbird.service")


def backoff_pauses() -> Iterator[float]:
    """Yield growing pauses in seconds, without end."""
    pause = OUTAGE_PAUSE_S
    while True:
        yield pause
        pause = min(2 * pause, OUTAGE_PAUSE_CAP_S)


class OutageRetry:
    """The outage of one service that several callers use; `what` names it at the start of a sentence."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._told = False

    async def retry_until_available(self, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """Return the answer, however long that takes.

        Raises what is not an outage.
        """
        pauses = backoff_pauses()
        while True:
            try:
                answer = await ask()
            except (QueueUnusable, ObjectStoreUnusable) as error:
                self.report_error(error)
                await asyncio.sleep(next(pauses))
            else:
                self.report_recovery()
                return answer

    def report_error(self, error: HummingbirdError) -> None:
        if not self._told:
            _log.error("%s is not available and will be retried until it is: %s", self._what, error)
        self._told = True

    def report_recovery(self) -> None:
        if self._told:
            _log.warning("%s is available again.", self._what)
        self._told = False


async def run_unless_stopped(stop: asyncio.Event, work: Coroutine[Any, Any, Answer]) -> Answer | None:
    """Return the result of the work; cancel it and return None if `stop` is set first."""
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
