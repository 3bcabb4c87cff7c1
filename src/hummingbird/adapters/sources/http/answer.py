"""One answer of a source, read in bounded pieces (D8): unpacked, counted, and never taken for whole when it is not.

Knows nothing of retries and redirects: they are over when there is an answer.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, aclosing, suppress

import anyio
import httpx2

from hummingbird.adapters.sources.http.unpacking import Unpacking
from hummingbird.domain.errors import AnswerUnusable, SourceDown, SourceError, SourceRefused
from hummingbird.domain.limits import HTTP_GATHERING_S, HTTP_PIECE_BYTES, HTTP_WORTHWHILE_BYTES, SOURCE_HEADERS_S
from hummingbird.domain.text import plain, shortened

# What httpx2 lets through of the layers below it
BELOW = (OSError, anyio.BrokenResourceError, anyio.BusyResourceError, anyio.ClosedResourceError, anyio.EndOfStream)
_LATE = (httpx2.TimeoutException, TimeoutError)
_CUT = (httpx2.HTTPError, httpx2.StreamError, *BELOW)


def why(error: BaseException) -> str:
    """For a sentence. What breaks the protocol is quoted by those who noticed, behind a colon: somebody else's words,
    which no sentence of ours repeats."""
    words = str(error).partition(":")[0] if isinstance(error, httpx2.ProtocolError) else str(error)
    return shortened(plain(words), 200) or type(error).__name__


class Refused(SourceRefused):
    """The source said no. `body` is at most HTTP_REFUSAL_BYTES of what it said, unpacked. The sentence quotes none of
    it: whoever wrote what the source stores may have written that too."""

    def __init__(self, sentence: str, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(sentence)
        self.status = status
        self.headers = headers
        self.body = body


class Answer:
    """`url` is where it came from in the end. The body can be read once."""

    def __init__(self, response: httpx2.Response, most_bytes: int) -> None:
        self._response = response
        self._most_bytes = most_bytes
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self.url = str(response.url)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Pieces of at most HTTP_PIECE_BYTES; small ones are gathered while the source is quick.

        What came before trouble is handed on before it is raised: AnswerUnusable for a body that is too large, breaks
        off or cannot be unpacked, SourceDown for one that stalls.
        """
        gathered, clock = bytearray(), asyncio.get_running_loop().time
        since, trouble = clock(), None
        async with aclosing(self._counted()) as pieces:
            try:
                async for piece in pieces:
                    if gathered and len(gathered) + len(piece) > HTTP_PIECE_BYTES:
                        yield bytes(gathered)
                        gathered.clear()
                    gathered += piece
                    if len(gathered) >= HTTP_WORTHWHILE_BYTES or clock() - since > HTTP_GATHERING_S:
                        yield bytes(gathered)
                        gathered.clear()
                        since = clock()
            except SourceError as error:
                trouble = error
        if gathered:
            yield bytes(gathered)
        if trouble is not None:
            raise trouble

    async def content(self) -> bytes:
        """The whole body. Raises like `chunks`."""
        return b"".join([chunk async for chunk in self.chunks()])

    async def beginning(self) -> bytes:
        """As much of the body as comes in time and fits, whatever becomes of the rest."""
        kept = bytearray()
        with suppress(SourceError, TimeoutError):
            async with asyncio.timeout(SOURCE_HEADERS_S), aclosing(self.chunks()) as chunks:
                async for chunk in chunks:
                    kept += chunk
        return bytes(kept)

    async def _counted(self) -> AsyncGenerator[bytes, None]:
        left = self._most_bytes
        async with aclosing(self._unpacked()) as pieces:
            async for piece in pieces:
                if len(piece) > left:
                    yield piece[:left]
                    raise self._too_large()
                left -= len(piece)
                yield piece

    async def _unpacked(self) -> AsyncGenerator[bytes, None]:
        unpacking = Unpacking(self.headers.get("content-encoding", ""))
        came = 0
        async with aclosing(self._raw()) as chunks:
            async for chunk in chunks:
                came += len(chunk)
                for number, piece in enumerate(unpacking.feed(chunk)):
                    if number:  # a chunk may unpack to a thousand times its size: others have their turn meanwhile
                        await asyncio.sleep(0)
                    yield piece
                if came > self._most_bytes:  # what unpacks to nothing may still go on for ever
                    raise self._too_large()
        unpacking.end()

    async def _raw(self) -> AsyncGenerator[bytes, None]:
        try:
            async with aclosing(self._response.aiter_raw()) as chunks:
                async for chunk in chunks:
                    yield chunk
        except _LATE as error:
            raise SourceDown("The source fell silent in the middle of its answer. Ask again later.") from error
        except _CUT as error:
            raise AnswerUnusable(f"The source's answer broke off before its end ({why(error)}). Ask again.") from error

    def _too_large(self) -> AnswerUnusable:
        return AnswerUnusable(
            f"The source's answer is larger than {self._most_bytes} bytes; the rest was not read. Ask for less."
        )


class HeldOpen(AsyncIterator[bytes]):
    """The chunks of an answer that was entered on `stack`, for somebody who reads them later. The stack is closed after
    the last one, after trouble, and by `aclose`, even if nobody ever began to read."""

    def __init__(self, stack: AsyncExitStack, chunks: AsyncIterator[bytes]) -> None:
        self._stack = stack
        self._chunks = chunks

    async def __anext__(self) -> bytes:
        try:
            return await anext(self._chunks)
        except BaseException:
            await self.aclose()
            raise

    async def aclose(self) -> None:
        try:
            if (close := getattr(self._chunks, "aclose", None)) is not None:
                await close()
        finally:
            await self._stack.aclose()
