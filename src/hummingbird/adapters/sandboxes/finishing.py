"""Work that is done to its end even when whoever waits for it is cancelled: half of it would leave a pod behind.

And the end of a program's streams, once it has ended itself.
"""

import asyncio
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from hummingbird.domain.limits import CLIENT_LEAVING_S, FRAME_BYTES

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


async def let_go(process: Process, *listening: asyncio.Task[None]) -> None:
    """Of a program that has ended or was killed: those who listen hear it out, and then its streams are closed.

    Something that it started may hold them for ever, and asyncio would wait for their end along with the program's.
    """
    try:
        if listening:
            await asyncio.wait(listening, timeout=CLIENT_LEAVING_S)
    finally:
        _close_streams(process)
    await asyncio.gather(*listening, return_exceptions=True)
    for stream in (process.stdout, process.stderr):
        with suppress(OSError):
            while stream is not None and await stream.read(FRAME_BYTES):
                pass  # it is closed a turn of the loop later, and the loop may end before
    await process.wait()


def _close_streams(process: Process) -> None:
    if process.stdin is not None and process.stdin.transport.get_write_buffer_size():
        process.stdin.transport.abort()  # closing would wait for somebody to read what is left
    transport: asyncio.SubprocessTransport = process._transport  # type: ignore[attr-defined]  # the only way to them
    for pipe in map(transport.get_pipe_transport, range(3)):
        if pipe is not None:
            pipe.close()


async def _waited(task: asyncio.Future[Any]) -> None:
    """However often we are cancelled. What it raises stays with it."""
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            continue
    if not task.cancelled():
        task.exception()
