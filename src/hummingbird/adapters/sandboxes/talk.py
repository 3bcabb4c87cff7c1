"""One conversation with the program inside: frames out, frames in, input fed beside.

What comes back was written where untrusted commands run, so its lengths and words are checked, never believed.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec

from hummingbird.adapters.sandboxes.inside.frames import ENDED, HEAD, INPUT, OVER, REQUEST, frame
from hummingbird.adapters.sandboxes.link import Farewell, Link
from hummingbird.domain.errors import SandboxBroken
from hummingbird.domain.limits import FRAME_BYTES, TRANSFER_STALL_S
from hummingbird.ports.sandbox import Chunks

T = TypeVar("T")
Size: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class Facts(msgspec.Struct, frozen=True):
    """How a piece of work ended, as the program inside says."""

    exit_code: Annotated[int, msgspec.Meta(ge=0, le=255)] = 0
    timed_out: bool = False
    stdout_bytes: Size = 0
    stderr_bytes: Size = 0
    stdout_file: str = ""
    stderr_file: str = ""
    complaint: str = ""
    bytes: Size = 0
    error: str = ""


class Talk:
    """Iterate `frames` for what a command writes; `facts` is set once it ended, None when it broke off.

    `patience_s`: how long we wait for the other side altogether, not counting what somebody takes to look at what came;
    for a transfer, None, as long as it takes, but not `TRANSFER_STALL_S` without getting on. `wanted`: the kinds of
    frames that may come, and how many bytes of each; None, as many as somebody takes.
    """

    def __init__(self, link: Link, patience_s: float | None, wanted: Mapping[bytes, int | None]) -> None:
        self._link = link
        self._feeding: asyncio.Task[None] | None = None
        self._patience_s = patience_s
        self._waited_s = 0.0
        self._wanted = dict(wanted)
        self.facts: Facts | None = None
        self.farewell = Farewell()

    def ask(self, request: dict[str, Any], chunks: Chunks) -> None:
        asked = json.dumps(request).encode()  # not msgspec: paths may hold bytes that are no UTF-8
        self._link.writer.write(frame(REQUEST, asked))
        self._feeding = asyncio.create_task(self._feed(chunks))

    async def _feed(self, chunks: Chunks) -> None:
        writer = self._link.writer
        try:
            async for chunk in chunks:
                view = memoryview(chunk)
                for start in range(0, len(view), FRAME_BYTES):
                    piece = view[start : start + FRAME_BYTES]
                    writer.write(HEAD.pack(INPUT, len(piece)))
                    writer.write(piece)
                    await self._drained()
            writer.write(frame(OVER, b""))
            await self._drained()
        except ConnectionError:
            pass  # the other side has ended; it says how
        finally:
            if isinstance(chunks, AsyncGenerator):
                await chunks.aclose()  # it may be a command of another sandbox, which shall not wait for us any more

    async def _drained(self) -> None:
        if self._patience_s is not None:  # a command may leave its input unread for as long as it runs
            await self._link.writer.drain()
            return
        try:
            async with asyncio.timeout(TRANSFER_STALL_S):
                await self._link.writer.drain()
        except TimeoutError as error:
            raise SandboxBroken(f"The sandbox took nothing for {TRANSFER_STALL_S:g} s. {AGAIN}") from error

    async def frames(self) -> AsyncIterator[tuple[bytes, bytes]]:
        """What was written to stdout and stderr, until the end. Raises what the input's source raised."""
        while self.facts is None:
            found = await self._next()
            if found is None:
                return
            kind, content = found
            if kind == ENDED:
                self.facts = _decoded(content)
            else:
                self._check(kind, len(content))
                yield kind, content

    def _check(self, kind: bytes, size: int) -> None:
        if kind not in self._wanted or not size:
            raise SandboxBroken(f"The sandbox sent something unknown ({kind!r}). {AGAIN}")
        if (left := self._wanted[kind]) is not None:
            if size > left:
                raise SandboxBroken(f"The sandbox sent more than it was asked for. {AGAIN}")
            self._wanted[kind] = left - size

    async def _next(self) -> tuple[bytes, bytes] | None:
        """The next frame; None when the stream breaks off. Input that cannot be had ends the waiting."""
        if self._feeding is None:
            return await self._in_time(self._read())
        reading = asyncio.ensure_future(self._read())
        both: set[asyncio.Future[Any]] = {reading, self._feeding}
        try:
            await self._in_time(asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED))
            if self._feeding.done():
                fed, self._feeding = self._feeding, None
                fed.result()
            return await self._in_time(reading)
        finally:
            reading.cancel()
            await asyncio.wait({reading})  # two cannot read from one stream, and hanging up reads too

    async def _in_time(self, awaited: Awaitable[T]) -> T:
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            async with asyncio.timeout(self._left_s()):
                return await awaited
        except TimeoutError as error:
            raise SandboxBroken(f"The sandbox did not answer in time. {AGAIN}") from error
        finally:
            self._waited_s += clock() - began

    def _left_s(self) -> float | None:
        if self._patience_s is None:
            return TRANSFER_STALL_S if self._feeding is None else None
        return max(0.0, self._patience_s - self._waited_s)

    async def _read(self) -> tuple[bytes, bytes] | None:
        reader = self._link.reader
        try:
            kind, size = HEAD.unpack(await reader.readexactly(HEAD.size))
            if size > FRAME_BYTES:
                raise SandboxBroken(f"The sandbox announced {size} bytes at once. {AGAIN}")
            return kind, await reader.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    async def hang_up(self) -> None:
        """Ends the work inside if it has not ended."""
        if self._feeding is not None:
            self._feeding.cancel()
            await asyncio.wait({self._feeding})
            if not self._feeding.cancelled():
                self._feeding.exception()  # seen: what the input's source raised after the end no longer matters
        self.farewell = await self._link.end()


AGAIN = "Start a new sandbox; if it happens again, run `hummingbird sandbox check`."


def _decoded(content: bytes) -> Facts:
    try:
        return msgspec.json.decode(content, type=Facts)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise SandboxBroken(f"The sandbox told its outcome in a way that cannot be read. {AGAIN}") from error
