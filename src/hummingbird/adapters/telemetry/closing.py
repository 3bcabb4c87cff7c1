"""Ending what may wait for somebody else, within a time: a collector that is away must not hold up the end."""

import asyncio
import threading
from collections.abc import Callable


async def within(seconds: float, close: Callable[[], None]) -> bool:
    """Whether it ended in time. It has a thread of its own that keeps no process alive: those of the event loop are
    waited for."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def run() -> None:
        try:
            close()
        finally:
            if not loop.is_closed():
                loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=run, name="telemetry-closing", daemon=True).start()
    try:
        async with asyncio.timeout(seconds):
            await ended.wait()
    except TimeoutError:
        return False
    return True
