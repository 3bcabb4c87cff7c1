"""Send model requests over HTTP and return decoded JSON or server-sent events.

Size and time of every answer are limited. Redirects are not followed, because they would forward the key. Errors of
httpx2 are translated to ours; text quoted from a server is shortened. The module is independent of the API's format.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import urlsplit

import anyio
import httpx2

from hummingbird.clients.http_clients import (
    default_ssl_context,
    explain_client_errors,
    load_ssl_context,
    parse_retry_after,
)
from hummingbird.core.errors import (
    HummingbirdError,
    MissingSetting,
    ProviderConnectionLost,
    ProviderReplyUnreadable,
    ProviderRequestRefused,
    ProviderTimeout,
    ProviderUnavailable,
    ProviderUnreachable,
)
from hummingbird.core.json_codec import InvalidJson, decode_json, decode_lenient_json
from hummingbird.core.limits import (
    ANSWER_TIMEOUT_S,
    CONNECT_TIMEOUT_S,
    DRAIN_BYTES,
    DRAIN_TIMEOUT_S,
    REPLY_BYTES,
    STALL_TIMEOUT_S,
    STREAM_TIMEOUT_S,
)
from hummingbird.core.text import replace_surrogates, shorten_line
from hummingbird.models.endpoints import is_local

# Errors of lower layers that httpx2 does not translate, when it reads or closes
_BELOW = (OSError, anyio.BrokenResourceError, anyio.BusyResourceError, anyio.ClosedResourceError, anyio.EndOfStream)
# The last two come from host names and ports that no socket accepts
_NOWHERE = (httpx2.InvalidURL, httpx2.UnsupportedProtocol, UnicodeError, ExceptionGroup)
_LOCAL_RETRY_S = 1.0  # where nothing listens on this machine or network, waiting long does not help
_LOST = (httpx2.HTTPError, httpx2.StreamError, *_BELOW)


def create_http_client(ca_bundle: str | None) -> httpx2.AsyncClient:
    """Create the HTTP client, with the proxies of the environment. Raises MissingSetting."""
    trusted = None if ca_bundle is None else load_ssl_context(ca_bundle)
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=64)
    with explain_client_errors():
        return httpx2.AsyncClient(limits=limits, verify=trusted or default_ssl_context(), follow_redirects=False)


def request_timeouts(read_s: float) -> httpx2.Timeout:
    """Return the timeouts of a request: one for reading, a fixed one for connecting, none for the pool."""
    return httpx2.Timeout(read_s, connect=CONNECT_TIMEOUT_S, pool=None)


def check_headers(headers: Mapping[str, str]) -> None:
    """Raise MissingSetting for a value that no header can hold; the HTTP client's own error would quote the key."""
    for name, value in headers.items():
        if not (value.isascii() and value.isprintable()):
            raise MissingSetting(
                f"The credential for the header {name} holds a line break, a control character or a letter that is "
                "not ASCII: copy it again."
            )


@contextmanager
def translate_http_errors(url: str = "") -> Iterator[None]:
    """Translate errors of the HTTP client to ours; `url` is where the request went.

    The original error is chained, except where its text may contain a header and so a key.
    """
    try:
        yield
    except (httpx2.ConnectTimeout, httpx2.ConnectError) as error:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            raise _untrusted_certificate(error) from error
        raise _unreachable(url, error) from error
    except (httpx2.TimeoutException, TimeoutError) as error:
        raise ProviderTimeout(f"The model did not answer in time ({type(error).__name__}).") from error
    except _NOWHERE as error:
        raise ProviderRequestRefused(
            "The model's address is not one: set its base URL to one like https://host.example/v1 "
            f"({_error_text(error)})."
        ) from error
    except httpx2.LocalProtocolError:
        raise ProviderConnectionLost("The connection to the model broke: the request could not be written.") from None
    except _LOST as error:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            raise _untrusted_certificate(error) from error
        raise ProviderConnectionLost(f"The connection to the model broke: {_error_text(error)}") from error


def _untrusted_certificate(error: Exception) -> ProviderRequestRefused:
    return ProviderRequestRefused(
        f"The certificate of the model's host is not trusted: set ca_bundle to your authority's certificates "
        f"({_error_text(error)})."
    )


def _unreachable(url: str, error: Exception) -> ProviderUnreachable:
    """Return the error for an address where nothing answers."""
    parts = urlsplit(url)
    where = f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")
    wait_s = _LOCAL_RETRY_S if is_local(parts.hostname or "") else None
    return ProviderUnreachable(
        f"Nothing answers at {where}: check the address, and that the model's server runs ({_error_text(error)}).",
        wait_s,
    )


def _error_text(error: Exception) -> str:
    return shorten_line(str(error) or type(error).__name__, 200)


_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class ServerSentEvent(NamedTuple):
    """One event. `name` is empty if the server gave none; `content` is the text of its `data` lines."""

    name: str
    content: bytes


class EventStreamReader:
    """Parse the bytes of one stream into server-sent events, however the network split them.

    Lines end with LF, CRLF or CR. The HTTP client's `aiter_lines` would also split at U+2028. The reader keeps at most
    `most` bytes and takes linear time.
    """

    def __init__(self, most: int = REPLY_BYTES) -> None:
        self._most = most
        self._size = 0
        self._begun = False
        self._line = bytearray()  # the beginning of an incomplete line
        self._after_cr = False
        self._name = ""
        self._content = bytearray()

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Return the events that this chunk completes.

        Raises ProviderReplyUnreadable when the whole stream is larger than a reply may be.
        """
        self._size += len(chunk)
        if self._size > self._most:
            raise ProviderReplyUnreadable(
                f"The model's stream is larger than {self._most} bytes; the rest was not read."
            )
        if not chunk:
            return []
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")  # the second half of a CRLF
        self._after_cr = chunk.endswith(b"\r")
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *ended, rest = chunk.split(b"\n")
        events = [event for line in ended if (event := self._end_line(line))]
        self._line += rest
        return events

    def finish(self) -> list[ServerSentEvent]:
        """Return the last event if no blank line followed it."""
        events = [self._end_line(b""), self._end_line(b"")]
        return [event for event in events if event]

    def _end_line(self, tail: bytes) -> ServerSentEvent | None:
        line = tail
        if self._line:
            line = bytes(self._line) + tail
            self._line.clear()
        if not self._begun:
            self._begun = True
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if not line:
            return self._dispatch()
        self._read_field(line)
        return None

    def _read_field(self, line: bytes) -> None:
        """Read one line. A comment is a line whose field has no name; `id` and `retry` are for reconnecting clients."""
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._content += value
            self._content += b"\n"
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")

    def _dispatch(self) -> ServerSentEvent | None:
        name, self._name = self._name, ""
        if not self._content:
            return None
        event = ServerSentEvent(name, bytes(memoryview(self._content)[:-1]))
        self._content = bytearray()
        return event


ClassifyError: TypeAlias = Callable[[int, Any], HummingbirdError]

DONE = "[DONE]"
WHOLE = "[WHOLE]"
_FIELD = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:data|event|id|retry)?:")
_LONGEST_FIELD = 16


class ModelTransport:
    """Send requests with one shared HTTP client in each event loop: connections belong to the loop that opened them.

    `now` is the wall clock, for a Retry-After given as a date. `stall_timeout_s` limits the silence within a stream,
    `whole_timeout_s` an answer without streaming, and `stream_timeout_s` a streamed one.
    """

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
        self._unused: httpx2.AsyncClient | None = None
        self._clients: dict[asyncio.AbstractEventLoop, tuple[httpx2.AsyncClient, AsyncGenerator[None, None]]] = {}

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, classify: ClassifyError) -> Any:
        """Send a request without streaming and return the decoded answer.

        The model may be silent until the timeout for the whole answer. Once the body has begun, the timeout for silence
        applies.
        """
        with translate_http_errors(url):
            async with (
                asyncio.timeout(self._whole_timeout_s),
                self._send(url, headers, body, self._whole_timeout_s, classify) as response,
            ):
                content = await _read_all(self._chunks_until_stall(response))
        return decode_reply(content)

    async def get(self, url: str, headers: Mapping[str, str], timeout_s: float, classify: ClassifyError) -> Any:
        """Return the decoded answer to a question about the server itself."""
        with translate_http_errors(url):
            async with (
                asyncio.timeout(timeout_s),
                self._send(url, headers, b"", timeout_s, classify, method="GET") as response,
            ):
                content = await _read_all(self._chunks_until_stall(response))
        return decode_reply(content)

    async def stream(
        self, url: str, headers: Mapping[str, str], body: bytes, classify: ClassifyError
    ) -> AsyncGenerator[tuple[str, Any], None]:
        """Send a streaming request and yield pairs of event name and decoded content.

        A [DONE] sentinel ends the stream and is yielded as (DONE, None): where nothing else marks the end, a stream
        without it was cut off. If the server does not stream, there is one pair, (WHOLE, its answer).
        """
        with translate_http_errors(url):
            async with (
                self._send(url, headers, body, self._stall_timeout_s, classify) as response,
                aclosing(self._chunks_until_deadline(response)) as chunks,
            ):
                head = b"" if _is_event_stream(response) else await _read_head(chunks)
                if head and not _FIELD.match(head):
                    yield WHOLE, decode_reply(await _read_all(chunks, head))
                    return
                async with aclosing(_iterate_events(chunks, head)) as events:
                    async for event in events:
                        if event.content == b"[DONE]":
                            yield DONE, None
                            await _drain(chunks)
                            return
                        if event.content.strip():  # some servers send empty events to keep the connection alive
                            yield event.name, decode_reply(event.content)

    def check_settings(self) -> None:
        """Raise MissingSetting for unusable proxies and certificates."""
        self._unused = self._unused or create_http_client(self._ca_bundle)

    async def close(self) -> None:
        """Close the connections of this event loop."""
        if (held := self._clients.pop(asyncio.get_running_loop(), None)) is not None:
            await held[1].aclose()

    async def client(self) -> httpx2.AsyncClient:
        """Return the client of this event loop."""
        here = asyncio.get_running_loop()
        if here not in self._clients:
            self.check_settings()
            client, self._unused = self._unused, None
            assert client is not None
            closing = _close_at_the_end(client)
            self._clients = {loop: held for loop, held in self._clients.items() if not loop.is_closed()}
            self._clients[here] = client, closing
            await anext(closing)
        return self._clients[here][0]

    @asynccontextmanager
    async def _send(
        self,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        read_s: float,
        classify: ClassifyError,
        *,
        method: str = "POST",
    ) -> AsyncIterator[httpx2.Response]:
        """Send a request and yield its response; raise for errors and redirects."""
        check_headers(headers)
        sent = {"content-type": "application/json", **headers}
        client = await self.client()
        async with client.stream(method, url, content=body, headers=sent, timeout=request_timeouts(read_s)) as response:
            if response.status_code >= 400:
                async with asyncio.timeout(self._whole_timeout_s):
                    content = await _read_all(self._chunks_until_stall(response))
                raise self._error_from_response(response, content, classify)
            if response.status_code >= 300:
                raise _redirect_error(response)
            yield response

    async def _chunks_until_stall(self, response: httpx2.Response) -> AsyncIterator[bytes]:
        """Yield the body; raise TimeoutError when it stalls."""
        chunks = response.aiter_bytes()
        while True:
            async with asyncio.timeout(self._stall_timeout_s):
                chunk = await anext(chunks, None)
            if chunk is None:
                return
            yield chunk

    async def _chunks_until_deadline(self, response: httpx2.Response) -> AsyncGenerator[bytes, None]:
        clock = asyncio.get_running_loop().time
        end = clock() + self._stream_timeout_s
        async for chunk in response.aiter_bytes():
            if clock() > end:
                raise ProviderTimeout(f"The model's stream did not end within {self._stream_timeout_s:.0f} s.")
            yield chunk

    def _error_from_response(
        self, response: httpx2.Response, content: bytes, classify: ClassifyError
    ) -> HummingbirdError:
        try:
            answer = decode_reply(content)
        except ProviderReplyUnreadable:
            answer = content[:2000].decode("utf-8", "replace")
        error = classify(response.status_code, answer)
        if isinstance(error, ProviderUnavailable):
            told = parse_retry_after(response.headers.get("retry-after", ""), self._now())
            error.retry_after_s = error.retry_after_s if told is None else told
        return error


def decode_reply(content: bytes) -> Any:
    """Decode a provider's JSON. Replace lone surrogates, which msgspec refuses."""
    with suppress(InvalidJson):
        return decode_json(content)
    try:
        return _replace_surrogates(decode_lenient_json(content.decode("utf-8", "replace")))
    except InvalidJson as error:
        seen = shorten_line(content[:200].decode("utf-8", "replace"), 120) or "nothing"
        raise ProviderReplyUnreadable(f"The model's answer is not JSON; it begins with: {seen}") from error


def _replace_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, list):
        return [_replace_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {replace_surrogates(key): _replace_surrogates(item) for key, item in value.items()}
    return value


def _redirect_error(response: httpx2.Response) -> ProviderRequestRefused:
    """Return the error for a redirect. Following it would send the conversation and the key to another host."""
    try:
        host = urlsplit(response.headers.get("location", "")).hostname
    except ValueError:
        host = None
    where = f"to {shorten_line(replace_surrogates(host), 100)}" if host else "to another path"
    return ProviderRequestRefused(
        f"The model's address points {where} ({response.status_code}), which is not followed: set the base URL to "
        "where the API itself is."
    )


def _is_event_stream(response: httpx2.Response) -> bool:
    return str(response.headers.get("content-type", "")).lower().startswith("text/event-stream")


async def _read_head(chunks: AsyncIterator[bytes]) -> bytes:
    """Read enough of the body to see whether it is an event stream."""
    head = b""
    async for chunk in chunks:
        head += chunk
        if len(head.strip()) >= _LONGEST_FIELD or len(head) > DRAIN_BYTES:
            break
    return head


async def _iterate_events(chunks: AsyncIterator[bytes], head: bytes) -> AsyncGenerator[ServerSentEvent, None]:
    reader = EventStreamReader()
    for event in reader.feed(head):
        yield event
    async for chunk in chunks:
        for event in reader.feed(chunk):
            yield event
    for event in reader.finish():
        yield event


async def _read_all(chunks: AsyncIterator[bytes], head: bytes = b"") -> bytes:
    content = bytearray(head)
    async for chunk in chunks:
        content += chunk
        if len(content) > REPLY_BYTES:
            raise ProviderReplyUnreadable(f"The model's answer is larger than {REPLY_BYTES} bytes; it was not read.")
    return bytes(content)


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Read to the end of the body, so that the connection can be reused.

    The answer is already complete, so errors and a server that does not end are ignored.
    """
    left = DRAIN_BYTES
    with suppress(HummingbirdError), translate_http_errors():
        async with asyncio.timeout(DRAIN_TIMEOUT_S):
            async for chunk in chunks:
                left -= len(chunk)
                if left < 0:
                    return


async def _close_at_the_end(client: httpx2.AsyncClient) -> AsyncGenerator[None, None]:
    """Close the client when the event loop ends, which closes its asynchronous generators, if nobody does it before."""
    try:
        yield
    finally:
        with suppress(HummingbirdError), translate_http_errors():
            await client.aclose()
