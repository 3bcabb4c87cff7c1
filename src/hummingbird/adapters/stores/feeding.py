"""Somebody's chunks on their way into a bucket: counted, and ended when the upload ends.

obstore reads an iterator in tasks of its own. When the upload is cancelled it forgets them: whoever waits for the next
chunk would go on waiting for it, after the one who asked for the upload has left.
"""

import asyncio
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self


class Feed:
    """Leaving it raises what the chunks raised, in place of what the upload made of it."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self.size = 0
        self._chunks = chunks
        self._reading: asyncio.Task[object] | None = None
        self._broke: BaseException | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        self._reading = asyncio.current_task()
        try:
            chunk = await anext(self._chunks)
        except StopAsyncIteration:
            raise
        except BaseException as error:  # whatever it is: it is the caller's, and goes there
            self._broke = error
            raise
        finally:
            self._reading = None
        self.size += len(chunk)
        return chunk

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])
        elif self._broke is not None and not isinstance(error, asyncio.CancelledError):
            raise self._broke
