"""Holds the real clock; tests use another one."""

import asyncio
import time


class SystemClock:
    """Implements `core.protocols.observer.Clock` with the system's time."""

    def now(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
