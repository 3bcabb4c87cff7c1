"""HTTP responses of the dashboard, with security headers: no foreign scripts, no framing, no caching of pages."""

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


class ConnectionLimit:
    """Limits how many requests may use something at the same time.

    Acquire before the first `await`, so that the next request sees the seat taken; close the seat to give it back.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.in_use = 0

    def acquire(self) -> ExitStack | None:
        """Return a seat, or None when all are taken. `pop_all()` on a seat hands it on to a longer-lived owner."""
        if self.in_use >= self._most:
            return None
        self.in_use += 1
        seat = ExitStack()
        seat.callback(self._release)
        return seat

    def _release(self) -> None:
        self.in_use -= 1


CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

HTML_HEADERS = {"Content-Type": "text/html; charset=utf-8"}
PLAIN_HEADERS = {"Content-Type": "text/plain; charset=utf-8"}
_SLICE_CHARS = 32 * 1024


def with_security_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers together with those that every response has."""
    return {**_SECURITY_HEADERS, "Cache-Control": "no-store", **headers}


def html_response(content: str, code: int = 200) -> Response:
    body = content.encode("utf-8", "replace")
    return Response(body, code, with_security_headers(HTML_HEADERS))


def text_response(code: int, content: str, headers: Mapping[str, str] | None = None) -> Response:
    body = content.encode("utf-8", "replace")
    return Response(body, code, with_security_headers({**PLAIN_HEADERS, **(headers or {})}))


async def static_response(request: Request) -> Response:
    """Serve a static file from memory; browsers may cache it for five minutes."""
    name = str(request.path_params["name"])
    if name not in _static_files():
        return text_response(404, "There is no such file.")
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return Response(
        _static_files()[name], headers={**_SECURITY_HEADERS, "Content-Type": kind, "Cache-Control": "max-age=300"}
    )


@lru_cache(maxsize=1)
def _static_files() -> Mapping[str, bytes]:
    return {file.name: file.read_bytes() for file in Path(__file__).with_name("static").iterdir()}


class PieceStreamResponse(Response):
    """Sends pieces as they come, until the client disconnects or `seconds` have passed.

    Afterwards it closes the generator of the pieces, without a time limit, and the `seat` in every case.
    """

    def __init__(
        self,
        pieces: AsyncIterator[bytes],
        headers: Mapping[str, str],
        seconds: float | None = None,
        seat: ExitStack | None = None,
    ) -> None:
        super().__init__(headers=with_security_headers(headers))
        del self.headers["content-length"]
        self._pieces, self._seconds, self._seat = pieces, seconds, seat or ExitStack()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._seat:
            await self._send_body(receive, send)

    async def _send_body(self, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        gone = asyncio.ensure_future(_wait_for_disconnect(receive))
        telling = asyncio.ensure_future(self._send_pieces(send))
        try:
            await asyncio.wait({gone, telling}, timeout=self._seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (gone, telling):
                task.cancel()
            for ended in await asyncio.gather(gone, telling, return_exceptions=True):
                if isinstance(ended, Exception) and not isinstance(ended, OSError):
                    raise ended

    async def _send_pieces(self, send: Send) -> None:
        pieces: Any = self._pieces
        async with aclosing(pieces):
            async for piece in pieces:
                if piece:
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
        with suppress(OSError):
            await send({"type": "http.response.body", "body": b"", "more_body": False})


def event_stream_response(pieces: AsyncIterator[bytes], seat: ExitStack) -> Response:
    return PieceStreamResponse(pieces, {"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}, seat=seat)


async def slice_text(content: str, *after: str) -> AsyncGenerator[bytes, None]:
    """Yield the texts in slices, so that a response to a slow reader can be stopped between two slices."""
    for text in (content, *after):
        for at in range(0, len(text), _SLICE_CHARS):
            yield text[at : at + _SLICE_CHARS].encode("utf-8", "replace")


def busy_response(sentence: str) -> Response:
    return text_response(503, sentence, {"Retry-After": "30"})


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
