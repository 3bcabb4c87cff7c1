"""The time a call has, standing still while a person is asked something on its behalf (T9)."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from hummingbird.agent.interruptible import within

T = TypeVar("T")


class Patience:
    """Begins when it is made. `over` is resolved when the time is used up."""

    def __init__(self, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self.over: asyncio.Future[None] = self._loop.create_future()
        self._seconds = self._left = seconds
        self._pauses = 0
        self._start()

    @property
    def used_s(self) -> float:
        running = 0.0 if self._pauses else self._loop.time() - self._since
        return self._seconds - self._left + running

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Several pauses at once are one that lasts from the first beginning to the last end."""
        if not self._pauses:
            self._stop()
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1
            if not self._pauses:
                self._start()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """As `within`: the work's result, or TimeoutError when the time is over; once only."""
        task = asyncio.ensure_future(work)
        either: set[asyncio.Future[Any]] = {task, self.over}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError as cancelled:
            try:
                return await within(0, _result(task))
            except TimeoutError:
                raise cancelled from None
        finally:
            self._stop()
            self.over.cancel()
        return await within(0, _result(task))

    def _start(self) -> None:
        self._since = self._loop.time()
        self._timer = self._loop.call_later(self._left, self._end)

    def _stop(self) -> None:
        self._timer.cancel()
        if not self._pauses:
            self._left -= self._loop.time() - self._since
            self._since = self._loop.time()

    def _end(self) -> None:
        if not self.over.done():
            self.over.set_result(None)


async def _result(task: "asyncio.Task[T]") -> T:
    return await task
