"""Work that can be stopped from outside at any await (L19), told apart from the cancellation of the caller."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from hummingbird.domain.limits import INTERRUPT_GRACE_S

T = TypeVar("T")


class Interrupted(Exception):
    """A signal between this module and the loop, not an error."""


class Interruptible:
    """Runs one piece of work at a time. `stop()` cancels it; one that does not end within the grace period is
    left behind, so that an interrupt always returns. It goes on cleaning up."""

    def __init__(self, grace_s: float = INTERRUPT_GRACE_S) -> None:
        self._grace_s = grace_s
        self._task: asyncio.Task[Any] | None = None
        self._given_up: asyncio.Future[None] | None = None
        self._stopped = False

    def _was_stopped(self) -> bool:
        return self._stopped

    def reset(self) -> None:
        self._stopped = False

    def stop(self) -> None:
        self._stopped = True
        if self._task is not None and self._given_up is not None:
            self._task.cancel()
            asyncio.get_running_loop().call_later(self._grace_s, _resolve, self._given_up)

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The work's result. Raises Interrupted when it was stopped."""
        if self._was_stopped():
            work.close()
            raise Interrupted
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
            _resolve(given_up)
        if self._was_stopped():
            if task.done() and not task.cancelled():
                task.exception()  # seen; what it brought no longer counts (L16)
            raise Interrupted
        return task.result()


async def within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """The work's result. Raises TimeoutError when it takes longer. Work that does not end when it is cancelled is
    left behind after the grace period; a result that it still brings in that time counts."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        if not await _brings_a_result(task):
            raise
    if not await _brings_a_result(task):
        raise TimeoutError
    return task.result()


async def _brings_a_result(task: asyncio.Task[Any]) -> bool:
    if not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=INTERRUPT_GRACE_S)
    return task.done() and not task.cancelled()


def being_cancelled() -> bool:
    """Whether somebody wants the current task to stop, also when the cancellation itself was swallowed."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def no_task_is_left() -> bool:
    """Stops what is still running; False when something does not stop."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    return not others or not (await asyncio.wait(others, timeout=INTERRUPT_GRACE_S))[1]
