"""A server at an address: its headers go there and nowhere else, and what comes back is bounded.

The library follows redirects within the address's own origin alone. Sentences name neither headers nor the address
beyond its host: both may hold credentials.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx2

from hummingbird.adapters.clients.making import trusting, understood
from hummingbird.adapters.mcp.limits import Bounds
from hummingbird.adapters.mcp.link import Streams
from hummingbird.adapters.mcp.settings import ServerSettings
from hummingbird.domain.errors import MissingSetting

_SLACK_S = 30.0  # a call ends before its connection does
_EVENTS = "text/event-stream"


class Endpoint:
    """One session with it."""

    def __init__(self, settings: ServerSettings, ca_bundle: str, bounds: Bounds) -> None:
        self._settings = settings
        self._ca_bundle = ca_bundle
        self._bounds = bounds
        self._client: _Client | None = None

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[Streams]:
        """Raises MissingSetting for an address, headers, proxies or certificates that cannot be used."""
        from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415 - slow to import

        self._client = self._made()
        most = self._bounds.message_bytes
        async with (
            self._client as client,
            streamable_http_client(self._settings.url, http_client=client, max_sse_event_size=most) as streams,
        ):
            yield streams

    def explained(self, error: BaseException | None) -> str:
        if isinstance(error, MissingSetting):
            return str(error)
        status = self._client.status if self._client else 0
        if status in (401, 403):
            return f"does not accept us ({status}): check the credential in its `headers`."
        if 300 <= status < 400:
            return f"redirects us elsewhere ({status}), which is not followed: put the right address into its `url`."
        if status >= 500:
            return f"at {self._host()} has trouble ({status}): look at its log, or try again later."
        if status >= 400:
            return f"has no MCP endpoint at its `url` ({status}): check the address, its path above all."
        why = f" ({type(error).__name__})" if isinstance(error, httpx2.HTTPError) else ""
        return f"at {self._host()} cannot be reached or does not speak MCP{why}: check its `url`, and that it runs."

    def remarks(self) -> list[str]:
        return []

    def _host(self) -> str:
        with suppress(httpx2.InvalidURL):
            return httpx2.URL(self._settings.url).host or "its address"
        return "its address"

    def _made(self) -> "_Client":
        try:
            address = httpx2.URL(self._settings.url)
            if address.scheme not in ("http", "https") or not address.host:
                raise httpx2.InvalidURL("no address")
        except httpx2.InvalidURL:
            raise MissingSetting("has no usable `url`: write it like https://mcp.example/mcp.") from None
        try:
            headers = httpx2.Headers({**self._settings.headers, "Accept-Encoding": "identity"}, encoding="ascii")
        except (UnicodeError, TypeError):
            headers = None
        if headers is None or any(set("\r\n\0") & set(value) for value in headers.values()):
            raise MissingSetting("has `headers` with characters that HTTP does not allow: check their values.")
        waiting = httpx2.Timeout(self._bounds.open_s, read=self._settings.timeout_s + _SLACK_S)
        certificates = trusting(self._ca_bundle)
        with understood():
            return _Client(self._bounds.message_bytes, headers=headers, timeout=waiting, verify=certificates)


class _Client(httpx2.AsyncClient):
    """Remembers how the server answered last, and stops reading where an answer is too long."""

    def __init__(self, limit_bytes: int, **options: Any) -> None:
        super().__init__(**options)
        self._limit = limit_bytes
        self.status = 0

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        self.status = 0
        response = await super().send(request, **options)
        self.status = response.status_code
        if response.headers.get("content-encoding", "identity").lower() != "identity":  # a bomb, or nobody asked for it
            await response.aclose()
            raise httpx2.DecodingError("the answer is packed", request=request)
        events = response.headers.get("content-type", "").lower().startswith(_EVENTS)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        if not (events and request.method == "GET"):  # that one lasts as long as the session; each event is bounded
            response.stream = _Bounded(response.stream, self._limit, events=events)
        return response


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, limit_bytes: int, *, events: bool) -> None:
        self._stream = stream
        self._left = limit_bytes
        self._words = f"it has more than {limit_bytes:,} bytes; ask for less"
        self._events = events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            self._left -= len(chunk)
            if self._left < 0:  # the two that the library turns into an answer of this one request
                raise httpx2.SSEError(self._words) if self._events else httpx2.StreamError(self._words)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
