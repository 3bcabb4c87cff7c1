"""HTTP for model calls: one client, bytes in, decoded JSON or server-sent events out.

Bounded in size and time, whatever comes; no redirect is followed, since the key would go along. What is quoted from a
server is capped. Knows nothing of any wire format.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import httpx2
import msgspec

from hummingbird.adapters.models.http_client import check_headers, made_client, timeouts, translated
from hummingbird.adapters.models.sse import Event, EventReader
from hummingbird.domain.errors import HummingbirdError, ReplyUnreadable, RequestRefused, TimedOut, Unavailable
from hummingbird.domain.limits import (
    ANSWER_TIMEOUT_S,
    DRAIN_BYTES,
    DRAIN_TIMEOUT_S,
    REPLY_BYTES,
    STALL_TIMEOUT_S,
    STREAM_TIMEOUT_S,
)
from hummingbird.domain.retry_after import retry_after
from hummingbird.domain.text import plain, shortened

Classify: TypeAlias = Callable[[int, Any], HummingbirdError]

DONE = "[DONE]"
WHOLE = "[WHOLE]"
_FIELD = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:data|event|id|retry)?:")
_LONGEST_FIELD = 16


class Transport:
    """`now` is the wall clock, for Retry-After given as a date. `stall_timeout_s` is how long a stream may be silent,
    `whole_timeout_s` how long an answer that is not streamed may take, `stream_timeout_s` one that is."""

    def __init__(
        self,
        now: Callable[[], float],
        *,
        stall_timeout_s: float = STALL_TIMEOUT_S,
        whole_timeout_s: float = ANSWER_TIMEOUT_S,
        stream_timeout_s: float = STREAM_TIMEOUT_S,
        ca_bundle: str | None = None,
    ) -> None:
        self._now = now
        self._stall_timeout_s = stall_timeout_s
        self._whole_timeout_s = whole_timeout_s
        self._stream_timeout_s = stream_timeout_s
        self._ca_bundle = ca_bundle
        self._client: httpx2.AsyncClient | None = None

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, classify: Classify) -> Any:
        """The decoded answer of a call that is not streamed. It may think in silence until its time is up, but not
        fall silent once it speaks."""
        with translated():
            async with (
                asyncio.timeout(self._whole_timeout_s),
                self._send(url, headers, body, self._whole_timeout_s, classify) as response,
            ):
                content = await _read(self._flowing(response))
        return decoded(content)

    async def stream(
        self, url: str, headers: Mapping[str, str], body: bytes, classify: Classify
    ) -> AsyncGenerator[tuple[str, Any], None]:
        """(event name, decoded content) pairs.

        A [DONE] sentinel ends the stream and comes as (DONE, None): where nothing else marks the end, a stream without
        it was cut. A server that answers in one piece all the same gives one pair, (WHOLE, its answer).
        """
        with translated():
            async with (
                self._send(url, headers, body, self._stall_timeout_s, classify) as response,
                aclosing(self._until_late(response)) as chunks,
            ):
                head = b"" if _declared(response) else await _head(chunks)
                if head and not _FIELD.match(head):
                    yield WHOLE, decoded(await _read(chunks, head))
                    return
                async with aclosing(_events(chunks, head)) as events:
                    async for event in events:
                        if event.content == b"[DONE]":
                            yield DONE, None
                            await _drain(chunks)
                            return
                        if event.content.strip():  # some keep the connection alive with empty events
                            yield event.name, decoded(event.content)

    def open(self) -> httpx2.AsyncClient:
        """The client, made now if there is none. Raises MissingSetting for proxies and certificates that cannot be."""
        if self._client is None:
            self._client = made_client(self._ca_bundle)
        return self._client

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with suppress(HummingbirdError), translated():
                await client.aclose()

    @asynccontextmanager
    async def _send(
        self, url: str, headers: Mapping[str, str], body: bytes, read_s: float, classify: Classify
    ) -> AsyncIterator[httpx2.Response]:
        """The response, if it is an answer."""
        check_headers(headers)
        sent = {"content-type": "application/json", **headers}
        async with self.open().stream("POST", url, content=body, headers=sent, timeout=timeouts(read_s)) as response:
            if response.status_code >= 400:
                async with asyncio.timeout(self._whole_timeout_s):
                    content = await _read(self._flowing(response))
                raise self._refusal(response, content, classify)
            if response.status_code >= 300:
                raise _elsewhere(response)
            yield response

    async def _flowing(self, response: httpx2.Response) -> AsyncIterator[bytes]:
        """The body, as long as it does not stall."""
        chunks = response.aiter_bytes()
        while True:
            async with asyncio.timeout(self._stall_timeout_s):
                chunk = await anext(chunks, None)
            if chunk is None:
                return
            yield chunk

    async def _until_late(self, response: httpx2.Response) -> AsyncGenerator[bytes, None]:
        clock = asyncio.get_running_loop().time
        end = clock() + self._stream_timeout_s
        async for chunk in response.aiter_bytes():
            if clock() > end:
                raise TimedOut(f"The model's stream did not end within {self._stream_timeout_s:.0f} s.")
            yield chunk

    def _refusal(self, response: httpx2.Response, content: bytes, classify: Classify) -> HummingbirdError:
        try:
            answer = decoded(content)
        except ReplyUnreadable:
            answer = content[:2000].decode("utf-8", "replace")
        error = classify(response.status_code, answer)
        if isinstance(error, Unavailable):
            told = retry_after(response.headers.get("retry-after", ""), self._now())
            error.retry_after_s = error.retry_after_s if told is None else told
        return error


def decoded(content: bytes) -> Any:
    """JSON of a provider. Lone surrogates, which msgspec refuses, are replaced."""
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return _cleaned(json.loads(content.decode("utf-8", "replace")))
    except (ValueError, RecursionError) as error:
        seen = shortened(content[:200].decode("utf-8", "replace"), 120) or "nothing"
        raise ReplyUnreadable(f"The model's answer is not JSON; it begins with: {seen}") from error


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    if isinstance(value, dict):
        return {plain(key): _cleaned(item) for key, item in value.items()}
    return value


def _elsewhere(response: httpx2.Response) -> RequestRefused:
    """A redirect is not followed: it would hand the conversation and the key to whoever it names."""
    try:
        host = urlsplit(response.headers.get("location", "")).hostname
    except ValueError:
        host = None
    where = f"to {shortened(plain(host), 100)}" if host else "to another path"
    return RequestRefused(
        f"The model's address points {where} ({response.status_code}), which is not followed: set the base URL to "
        "where the API itself is."
    )


def _declared(response: httpx2.Response) -> bool:
    return str(response.headers.get("content-type", "")).lower().startswith("text/event-stream")


async def _head(chunks: AsyncIterator[bytes]) -> bytes:
    """Enough of the beginning to see whether these are events."""
    head = b""
    async for chunk in chunks:
        head += chunk
        if len(head.strip()) >= _LONGEST_FIELD or len(head) > DRAIN_BYTES:
            break
    return head


async def _events(chunks: AsyncIterator[bytes], head: bytes) -> AsyncGenerator[Event, None]:
    reader = EventReader()
    for event in reader.feed(head):
        yield event
    async for chunk in chunks:
        for event in reader.feed(chunk):
            yield event
    for event in reader.end():
        yield event


async def _read(chunks: AsyncIterator[bytes], head: bytes = b"") -> bytes:
    content = bytearray(head)
    async for chunk in chunks:
        content += chunk
        if len(content) > REPLY_BYTES:
            raise ReplyUnreadable(f"The model's answer is larger than {REPLY_BYTES} bytes; it was not read.")
    return bytes(content)


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """To the end of the body, for a connection that is not read to its end is closed. The answer is there already: a
    server that does not come to its end now, or breaks, takes nothing from it."""
    left = DRAIN_BYTES
    with suppress(HummingbirdError), translated():
        async with asyncio.timeout(DRAIN_TIMEOUT_S):
            async for chunk in chunks:
                left -= len(chunk)
                if left < 0:
                    return
