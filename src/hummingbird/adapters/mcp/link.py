"""How bytes get to a server and back: what a program on this machine and an address in the network have in common."""

import asyncio
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeAlias

Streams: TypeAlias = tuple[Any, Any]  # what comes in and what goes out, as the library for the protocol wants them


class Link(Protocol):
    """One connection; made anew for the next one."""

    def streams(self) -> AbstractAsyncContextManager[Streams]:
        """What was started is gone when this is left, also when whoever leaves it is cancelled."""
        ...

    def explained(self, error: BaseException | None) -> str:
        """Why there is no connection (any more): the rest of a sentence that begins with the server's name, and what
        to do about it. `error`: what became of it, None where it ended by itself."""
        ...

    def remarks(self) -> list[str]:
        """What else should be known about the connection: rests of sentences as above."""
        ...


async def undisturbed(work: Coroutine[Any, Any, None]) -> None:
    """To its end, however often we are cancelled meanwhile; then we are."""
    task, cancelled = asyncio.ensure_future(work), False
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError
    task.result()
