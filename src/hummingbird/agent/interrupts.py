"""Run work that can be stopped from outside at any await, and tell a stop from the caller's own cancellation."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from hummingbird.core.limits import INTERRUPT_GRACE_S

PROMPT_GRACE_S = 0.15  # that the prompt waits for interrupted work before it is left to end by itself
T = TypeVar("T")


class WorkInterrupted(Exception):
    """A signal from this module to the loop, not an error."""


class InterruptibleWork:
    """Run one piece of work at a time.

    `stop()` cancels it. Work that does not end within the grace period is left behind to clean up, so that an interrupt
    always returns.
    """

    def __init__(self, grace_s: float = INTERRUPT_GRACE_S) -> None:
        self._grace_s = grace_s
        self._task: asyncio.Task[Any] | None = None
        self._given_up: asyncio.Future[None] | None = None
        self._stopped = False

    def _is_stopped(self) -> bool:
        return self._stopped

    def reset(self) -> None:
        self._stopped = False

    def stop(self) -> None:
        self._stopped = True
        if self._task is not None and self._given_up is not None:
            self._task.cancel()
            asyncio.get_running_loop().call_later(self._grace_s, _resolve_future, self._given_up)

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the work's result.

        Raises WorkInterrupted when it was stopped.
        """
        if self._is_stopped():
            work.close()
            raise WorkInterrupted
        task = asyncio.ensure_future(work)
        given_up: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task, self._given_up = task, given_up
        both: set[asyncio.Future[Any]] = {task, given_up}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait({task}, timeout=INTERRUPT_GRACE_S)
            raise
        finally:
            self._task = self._given_up = None
            _resolve_future(given_up)
        if self._is_stopped():
            if task.done() and not task.cancelled():
                task.exception()  # mark it as retrieved; it no longer matters
            raise WorkInterrupted
        return task.result()


async def run_within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """Return the work's result; raise TimeoutError when it takes longer.

    Work that does not end when it is cancelled is left behind after the grace period. A result within that period
    counts.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        if not await _finish_or_cancel(task):
            raise
    if not await _finish_or_cancel(task):
        raise TimeoutError
    return task.result()


async def _finish_or_cancel(task: asyncio.Task[Any]) -> bool:
    if not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=INTERRUPT_GRACE_S)
    return task.done() and not task.cancelled()


def is_being_cancelled() -> bool:
    """Return whether the current task should stop, also when the cancellation itself was swallowed."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _resolve_future(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def cancel_other_tasks() -> bool:
    """Cancel all other tasks; return False when one does not stop."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    return not others or not (await asyncio.wait(others, timeout=INTERRUPT_GRACE_S))[1]


def is_outside_interrupt(error: BaseException) -> bool:
    """Return whether the error is an interrupt or Ctrl-C, which a caller of foreign code must not swallow."""
    return isinstance(error, KeyboardInterrupt) or (isinstance(error, asyncio.CancelledError) and is_being_cancelled())
