"""gzip as the two servers use it. The cluster compresses JSON above 128 KB, KubeArchive whatever is no error.

Facts: section 4. Both only for clients that ask. Bytes in, bytes out; what they say is nobody's business here.
"""

import zlib
from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CLUSTER_THRESHOLD_BYTES = 128 * 1024
Wanted = Callable[[int, str], bool]  # of an answer's status and media type
_GZIP = 16 + zlib.MAX_WBITS
_FAST = 1


def squeezed(application: ASGIApp, wanted: Wanted, *, above: int = 0) -> ASGIApp:
    async def squeezing(scope: Scope, receive: Receive, send: Send) -> None:
        asked = "gzip" in Headers(scope=scope).get("accept-encoding", "")
        await application(scope, receive, _Squeezing(send, wanted, above) if asked else send)

    return squeezing


class _Squeezing:
    """Holds an answer back until it is over or known to be large enough."""

    def __init__(self, send: Send, wanted: Wanted, above: int) -> None:
        self._send = send
        self._wanted = wanted
        self._above = above
        self._start: Message | None = None
        self._held = b""
        self._plain = False
        self._squeezer = zlib.compressobj(_FAST, zlib.DEFLATED, _GZIP)

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=list(message["headers"]))
            self._plain = not self._wanted(message["status"], headers.get("content-type", ""))
            self._start = message
            return
        more = message.get("more_body", False)
        self._held += message.get("body", b"")
        if self._start is not None and len(self._held) <= self._above and more:
            return
        if self._start is not None:
            await self._begin(self._start)
        await self._pass_on(more=more)

    async def _begin(self, start: Message) -> None:
        self._start = None
        self._plain = self._plain or len(self._held) <= self._above
        if not self._plain:
            headers = MutableHeaders(raw=list(start["headers"]))
            del headers["content-length"]
            headers["content-encoding"] = "gzip"
            headers.add_vary_header("Accept-Encoding")
            start = {**start, "headers": headers.raw}
        await self._send(start)

    async def _pass_on(self, *, more: bool) -> None:
        content, self._held = self._held, b""
        if not self._plain:
            content = self._squeezer.compress(content) + (b"" if more else self._squeezer.flush())
        await self._send({"type": "http.response.body", "body": content, "more_body": more})
