"""Work that is done to its end even when whoever waits for it is cancelled: half of it would leave a pod behind."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def finished(work: Coroutine[Any, Any, T], undo: Callable[[T], Awaitable[object]] | None = None) -> T:
    """The work's outcome. Cancelled meanwhile: waits all the same, undoes what came of it, and is cancelled then."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if task.cancelled():
            raise
        await _waited(task)
        if undo is not None and not task.cancelled() and task.exception() is None:
            await _waited(asyncio.ensure_future(undo(task.result())))
        raise


async def _waited(task: asyncio.Future[Any]) -> None:
    """However often we are cancelled. What it raises stays with it."""
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            continue
    if not task.cancelled():
        task.exception()
