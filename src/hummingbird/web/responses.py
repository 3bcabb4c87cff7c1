"""How pages leave: nothing of theirs may run, load or be framed but what we serve ourselves, and nobody keeps them."""

import asyncio
import mimetypes
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import ExitStack, aclosing, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_ALWAYS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

HTML = {"Content-Type": "text/html; charset=utf-8"}
PLAIN = {"Content-Type": "text/plain; charset=utf-8"}
_SLICE_CHARS = 32 * 1024


def part(headers: Mapping[str, str]) -> dict[str, str]:
    """With those that everything of ours has."""
    return {**_ALWAYS, "Cache-Control": "no-store", **headers}


def html(content: str, code: int = 200) -> Response:
    body = content.encode("utf-8", "replace")
    return Response(body, code, part(HTML))


def text(code: int, content: str, headers: Mapping[str, str] | None = None) -> Response:
    body = content.encode("utf-8", "replace")
    return Response(body, code, part({**PLAIN, **(headers or {})}))


async def static(request: Request) -> Response:
    """Files of ours, from memory; a browser may keep them for a while."""
    name = str(request.path_params["name"])
    if name not in _files():
        return text(404, "There is no such file.")
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return Response(_files()[name], headers={**_ALWAYS, "Content-Type": kind, "Cache-Control": "max-age=300"})


@lru_cache(maxsize=1)
def _files() -> Mapping[str, bytes]:
    return {file.name: file.read_bytes() for file in Path(__file__).with_name("static").iterdir()}


class PiecesResponse(Response):
    """Pieces as they come, until whoever looks is gone; no longer than `seconds`, if that is given. What makes them is
    closed then, with all the time it needs; and `seat`, however it ends and whether or not it ever began."""

    def __init__(
        self,
        pieces: AsyncIterator[bytes],
        headers: Mapping[str, str],
        seconds: float | None = None,
        seat: ExitStack | None = None,
    ) -> None:
        super().__init__(headers=part(headers))
        del self.headers["content-length"]
        self._pieces, self._seconds, self._seat = pieces, seconds, seat or ExitStack()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._seat:
            await self._sent(receive, send)

    async def _sent(self, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        gone = asyncio.ensure_future(_gone(receive))
        telling = asyncio.ensure_future(self._told(send))
        try:
            await asyncio.wait({gone, telling}, timeout=self._seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (gone, telling):
                task.cancel()
            for ended in await asyncio.gather(gone, telling, return_exceptions=True):
                if isinstance(ended, Exception) and not isinstance(ended, OSError):
                    raise ended

    async def _told(self, send: Send) -> None:
        pieces: Any = self._pieces
        async with aclosing(pieces):
            async for piece in pieces:
                if piece:
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
        with suppress(OSError):
            await send({"type": "http.response.body", "body": b"", "more_body": False})


def news(pieces: AsyncIterator[bytes], seat: ExitStack) -> Response:
    return PiecesResponse(pieces, {"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}, seat=seat)


async def slices(content: str, *after: str) -> AsyncGenerator[bytes, None]:
    """So that whoever reads slowly can be let go between two of them."""
    for text in (content, *after):
        for at in range(0, len(text), _SLICE_CHARS):
            yield text[at : at + _SLICE_CHARS].encode("utf-8", "replace")


def busy(sentence: str) -> Response:
    return text(503, sentence, {"Retry-After": "30"})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
