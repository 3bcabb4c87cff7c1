"""Sessions that are opened to the end, also when whoever waits for one is cancelled: a thread that waits for a disk
cannot be called back, nor can a write that is on its way to a bucket. What they bring then is let go of, and nobody
waits for that but who wants the same session next.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, Generic, TypeVar

from hummingbird.domain.session_limits import COMMIT_S
from hummingbird.ports.sessions import Session

S = TypeVar("S", bound=Session)


class Openings(Generic[S]):
    """Of one store of sessions, in one event loop."""

    def __init__(self) -> None:
        self._leaving: dict[asyncio.Task[None], str] = {}

    async def opened(self, session_id: str, opening: Coroutine[Any, Any, S]) -> S:
        """What `opening` brings, and raises."""
        try:
            await self._left(session_id)
        except BaseException:
            opening.close()
            raise
        task = asyncio.ensure_future(opening)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            leaving = asyncio.create_task(_let_go(task))
            self._leaving[leaving] = session_id
            leaving.add_done_callback(self._leaving.pop)
            raise

    async def _left(self, session_id: str) -> None:
        """Nobody is told that another process has what we are just letting go of ourselves. A store that hangs is met
        by the opening that comes now, which can say so."""
        if leaving := {task for task, left in self._leaving.items() if left == session_id}:
            await asyncio.wait(leaving, timeout=COMMIT_S)


async def _let_go(opening: asyncio.Task[S]) -> None:
    await asyncio.wait({opening})
    if not opening.cancelled() and opening.exception() is None:
        await opening.result().release()
