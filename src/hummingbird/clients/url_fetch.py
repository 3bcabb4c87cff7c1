"""Fetch URLs for data sources: GET requests with retries, size limits and checked redirects.

Redirects are followed by hand: each target is checked, and nothing that the caller sends along goes to another origin.
Only GET is used, so every attempt may be repeated.
"""

import asyncio
import random
import time
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import urljoin

import anyio
import httpx2

from hummingbird.clients.address_policy import describe_site, printable_url
from hummingbird.clients.http_clients import parse_retry_after
from hummingbird.core.errors import (
    CallDenied,
    CredentialRefused,
    SourceError,
    SourceRefused,
    SourceResponseInvalid,
    SourceUnavailable,
)
from hummingbird.core.limits import (
    HTTP_GATHERING_S,
    HTTP_PIECE_BYTES,
    HTTP_REDIRECTS,
    HTTP_REFUSAL_BYTES,
    HTTP_WORTHWHILE_BYTES,
    SOURCE_ATTEMPTS,
    SOURCE_CONNECT_S,
    SOURCE_DELAY_S,
    SOURCE_HEADERS_S,
    SOURCE_RETRY_AFTER_CAP_S,
    SOURCE_SILENT_ATTEMPTS,
    SOURCE_STALL_S,
    SOURCE_WAIT_S,
)
from hummingbird.core.text import replace_surrogates, shorten_line

ACCEPT_ENCODING = "gzip, deflate"
_GZIP, _ZLIB, _RAW = 31, 15, -15


class BodyDecoder:
    """Decompress a body in bounded pieces.

    `encoding` is the Content-Encoding. However much is fed, only one piece is in memory at a time. Raises
    SourceResponseInvalid.
    """

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding.strip().lower()
        self._stream: zlib._Decompress | None = None
        self._begun = self._over = False
        if self._encoding not in {"", "identity", "gzip", "x-gzip", "deflate"}:
            raise SourceResponseInvalid(
                "The source compressed its answer in a way that was not requested; it was not read. Ask again."
            )

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield pieces of at most HTTP_PIECE_BYTES."""
        if self._encoding in {"", "identity"}:
            view = memoryview(chunk)
            for at in range(0, len(chunk), HTTP_PIECE_BYTES):
                yield bytes(view[at : at + HTTP_PIECE_BYTES])
            return
        while chunk:
            if self._stream is None and not self._start_stream(chunk):
                return
            yield from self._decompress(chunk)
            assert self._stream is not None
            chunk = self._stream.unused_data
            self._stream = None if self._stream.eof else self._stream

    def end(self) -> None:
        """Raise SourceResponseInvalid for a compressed body whose end is missing."""
        if self._stream is not None:
            raise SourceResponseInvalid("The source's answer broke off in the middle of compressed data. Ask again.")

    def _start_stream(self, chunk: bytes) -> bool:
        """Start the next stream; gzip streams may follow each other, anything else after the first is ignored."""
        packed = self._encoding.endswith("gzip")
        if self._over or (self._begun and not (packed and chunk.startswith(b"\x1f"))):
            self._over = True
            return False
        # "deflate" means zlib's format, but some servers send it without the header.
        self._stream = zlib.decompressobj(_GZIP if packed else _ZLIB if chunk[0] & 0x0F == 8 else _RAW)
        self._begun = True
        return True

    def _decompress(self, chunk: bytes) -> Iterator[bytes]:
        assert self._stream is not None
        while True:
            try:
                piece = self._stream.decompress(chunk, HTTP_PIECE_BYTES)
            except zlib.error as error:
                raise SourceResponseInvalid(f"The source's answer cannot be unpacked ({error}). Ask again.") from error
            if piece:
                yield piece
            chunk = self._stream.unconsumed_tail
            if self._stream.eof or (not chunk and len(piece) < HTTP_PIECE_BYTES):
                return


# Errors of lower layers that httpx2 does not translate
TRANSPORT_ERRORS = (
    OSError,
    anyio.BrokenResourceError,
    anyio.BusyResourceError,
    anyio.ClosedResourceError,
    anyio.EndOfStream,
)
_TIMEOUTS = (httpx2.TimeoutException, TimeoutError)
_BROKEN_CONNECTION = (httpx2.HTTPError, httpx2.StreamError, *TRANSPORT_ERRORS)


def error_reason(error: BaseException) -> str:
    """Return the reason of an error, for use in a sentence.

    Protocol errors quote the source behind a colon; those foreign words are left out.
    """
    words = str(error).partition(":")[0] if isinstance(error, httpx2.ProtocolError) else str(error)
    return shorten_line(replace_surrogates(words), 200) or type(error).__name__


class FetchRefused(SourceRefused):
    """The source answered with an error.

    `body` is at most HTTP_REFUSAL_BYTES of its answer, decompressed. The error's sentence quotes none of it, because
    outsiders may have written it.
    """

    def __init__(self, sentence: str, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(sentence)
        self.status = status
        self.headers = headers
        self.body = body


@dataclass(slots=True)
class Deadline:
    """The moment, in the event loop's time, at which a call of `total_s` seconds ends."""

    total_s: float
    ends_at: float

    @classmethod
    def start(cls, total_s: float) -> "Deadline":
        """Return the deadline of a call that starts now."""
        return cls(total_s, asyncio.get_running_loop().time() + total_s)

    def is_over(self) -> bool:
        return asyncio.get_running_loop().time() >= self.ends_at

    def error(self) -> SourceUnavailable:
        """Return the error for a call that takes too long."""
        return SourceUnavailable(
            f"The source took longer than {self.total_s:.0f} seconds in all: ask for less, or try later."
        )


class FetchedResponse:
    """A successful response, read in bounded pieces and never taken for complete when it is not.

    `url` is the final address after redirects. The body can be read once. `what` begins an error sentence. When the
    `deadline` has passed, what came is still delivered.
    """

    def __init__(
        self,
        response: httpx2.Response,
        most_bytes: int,
        *,
        what: str = "The source's answer",
        deadline: Deadline | None = None,
    ) -> None:
        self._response = response
        self._most_bytes = most_bytes
        self._what = what
        self._deadline = deadline
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self.url = str(response.url)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield pieces of at most HTTP_PIECE_BYTES; small ones are gathered while the source is fast.

        Yields everything that came before an error, then raises it: SourceResponseInvalid for a body that is too large,
        breaks off or cannot be decompressed, SourceUnavailable for one that stalls.
        """
        gathered, clock = bytearray(), asyncio.get_running_loop().time
        since, trouble = clock(), None
        async with aclosing(self._limit_size()) as pieces:
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

    async def read_all(self) -> bytes:
        """Return the whole body. Raises like `chunks`."""
        return b"".join([chunk async for chunk in self.chunks()])

    async def read_beginning(self) -> bytes:
        """Return as much of the body as arrives in time and fits; errors are ignored."""
        kept = bytearray()
        with suppress(SourceError, TimeoutError):
            async with asyncio.timeout(SOURCE_HEADERS_S), aclosing(self.chunks()) as chunks:
                async for chunk in chunks:
                    kept += chunk
        return bytes(kept)

    async def _limit_size(self) -> AsyncGenerator[bytes, None]:
        left = self._most_bytes
        async with aclosing(self._unpack()) as pieces:
            async for piece in pieces:
                if len(piece) > left:
                    yield piece[:left]
                    raise self._too_large_error()
                left -= len(piece)
                yield piece

    async def _unpack(self) -> AsyncGenerator[bytes, None]:
        unpacking = BodyDecoder(self.headers.get("content-encoding", ""))
        came = 0
        async with aclosing(self._raw_chunks()) as chunks:
            async for chunk in chunks:
                came += len(chunk)
                for number, piece in enumerate(unpacking.feed(chunk)):
                    if number:  # a chunk may grow a thousandfold when decompressed: let other tasks run
                        await asyncio.sleep(0)
                    yield piece
                if came > self._most_bytes:  # a stream that decompresses to nothing may never end
                    raise self._too_large_error()
        unpacking.end()

    async def _raw_chunks(self) -> AsyncGenerator[bytes, None]:
        try:
            async with aclosing(self._response.aiter_raw()) as chunks:
                while True:
                    async with asyncio.timeout_at(self._deadline.ends_at if self._deadline is not None else None):
                        chunk = await anext(chunks, None)
                    if chunk is None:
                        return
                    yield chunk
        except _TIMEOUTS as error:
            if self._deadline is not None and self._deadline.is_over():
                raise self._deadline.error() from error
            raise SourceUnavailable(
                f"{self._what} stopped in the middle: the source fell silent. Ask again later."
            ) from error
        except _BROKEN_CONNECTION as error:
            raise SourceResponseInvalid(
                f"{self._what} broke off before its end ({error_reason(error)}). Ask again."
            ) from error

    def _too_large_error(self) -> SourceResponseInvalid:
        whole_mib, rest = divmod(self._most_bytes, 1024**2)
        size = f"{self._most_bytes} bytes" if rest else f"{whole_mib} MiB"
        return SourceResponseInvalid(f"{self._what} is larger than {size}; the rest was not read. Ask for less.")


class OpenResponseStream(AsyncIterator[bytes]):
    """The chunks of a response that was entered on `stack`, for a later reader.

    The stack is closed after the last chunk, after an error, and by `aclose`, even if nobody ever read a chunk.
    """

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
        """Close the response."""
        try:
            if (close := getattr(self._chunks, "aclose", None)) is not None:
                await close()
        finally:
            await self._stack.aclose()


async def prepend_chunk(first: bytes, chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield a chunk that was read ahead, then the others."""
    if first:
        yield first
    async for chunk in chunks:
        yield chunk


_PERMANENT_STATUSES = frozenset({501, 505})


def is_transient(status: int) -> bool:
    """Tell whether the same read may succeed a little later."""
    return status == 429 or (500 <= status < 600 and status not in _PERMANENT_STATUSES)


def retry_pause_s(
    attempt: int, waited_s: float, asked_s: float | None, chance: float, *, silent: bool = False
) -> float | None:
    """Return the seconds to wait after attempt number `attempt` (from 1), or None to give up.

    `asked_s` is the value of Retry-After. A longer wait than allowed is not shortened: a server that says when to come
    back means it. `chance` is between 0 and 1 and spreads clients over time. `silent`: the source did not respond at
    all, which costs a whole timeout each time.
    """
    if attempt >= (SOURCE_SILENT_ATTEMPTS if silent else SOURCE_ATTEMPTS):
        return None
    wait = asked_s if asked_s is not None else SOURCE_DELAY_S * 2 ** (attempt - 1) * (0.5 + chance)
    return wait if wait <= SOURCE_RETRY_AFTER_CAP_S and waited_s + wait <= SOURCE_WAIT_S else None


Params: TypeAlias = Mapping[str, str | int]
_TIMEOUT = httpx2.Timeout(SOURCE_STALL_S, connect=SOURCE_CONNECT_S, pool=SOURCE_HEADERS_S)
_REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
_TIMEOUT_ERRORS = (httpx2.TimeoutException, TimeoutError)
_REQUEST_ERRORS = (httpx2.TransportError, *TRANSPORT_ERRORS)
_TOO_LONG_S = 86_400.0  # a day: no run lasts that long
# The only headers that are sent to another origin than the first
_HARMLESS_HEADERS = frozenset({"host", "accept", "accept-encoding", "user-agent", "connection"})


class UrlFetcher:
    """Send GET requests through a client.

    `admits` returns the address to request in place of the one given or redirected to, or raises CallDenied or
    SourceRefused; without it the caller vouches for the first address, and redirects must stay at its origin. `sleep`
    and `now` (the wall clock, for Retry-After as a date) exist for tests.
    """

    def __init__(
        self,
        client: httpx2.AsyncClient,
        *,
        admits: Callable[[str], str] | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._admits = admits
        self._sleep = sleep
        self._now = now

    @asynccontextmanager
    async def open(
        self, url: str, *, params: Params | None = None, headers: Mapping[str, str] | None = None, most_bytes: int
    ) -> AsyncIterator[FetchedResponse]:
        """Send a GET request and yield its response if it succeeds (2xx).

        Raises FetchRefused for an error response, SourceUnavailable when all attempts failed, what `admits` raises,
        and, while the body is read, what `FetchedResponse.chunks` raises.
        """
        response = await self._follow_redirects(_build_url(self._admit(url), params), headers or {})
        try:
            if not response.is_success:
                raise await _refusal_error(response)
            yield FetchedResponse(response, most_bytes)
        finally:
            await _close_quietly(response)

    async def _follow_redirects(self, first: httpx2.URL, headers: Mapping[str, str]) -> httpx2.Response:
        target = first
        for _ in range(HTTP_REDIRECTS + 1):
            response = await self._send_with_retries(self._build_request(target, first, headers))
            location = response.headers.get("location", "")
            if response.status_code not in _REDIRECT_STATUSES or not location:
                return response
            await _close_quietly(response)
            target = self._redirect_target(target, first, location)
        raise SourceRefused(
            f"The source sent the request from one address to the next more than {HTTP_REDIRECTS} times, last to "
            f"{describe_site(str(target))}; give the address of the thing itself."
        )

    def _admit(self, url: str) -> str:
        return self._admits(url) if self._admits is not None else url

    def _redirect_target(self, target: httpx2.URL, first: httpx2.URL, location: str) -> httpx2.URL:
        try:
            onward = urljoin(str(target), location)
        except ValueError as error:
            raise SourceRefused("The source redirects to what is not an address; ask for something else.") from error
        try:
            address = _build_url(self._admit(onward))
        except CallDenied as denied:
            raise CallDenied(
                f"The source redirects to {describe_site(onward)} or to a path that is not on the "
                "allow-list, so it was not "
                "followed: ask for something else."
            ) from denied
        if self._admits is None and _url_origin(address) != _url_origin(first):
            raise SourceRefused(
                f"The source redirects to another host ({describe_site(onward)}), which is not "
                "followed: set its address to "
                "where it answers itself."
            )
        return address

    def _build_request(self, target: httpx2.URL, first: httpx2.URL, headers: Mapping[str, str]) -> httpx2.Request:
        at_home = _url_origin(target) == _url_origin(first)
        sent = {**(headers if at_home else {}), "Accept-Encoding": ACCEPT_ENCODING}
        try:
            request = self._client.build_request("GET", target, headers=sent, timeout=_TIMEOUT)
        except UnicodeError:
            raise _unsendable_credential_error() from None
        if not at_home:
            for name in set(request.headers) - _HARMLESS_HEADERS:
                del request.headers[name]
            request.extensions["elsewhere"] = True
        return request

    async def _send_with_retries(self, request: httpx2.Request) -> httpx2.Response:
        """Return the first response that is not a transient error."""
        attempt, waited = 0, 0.0
        while True:
            attempt += 1
            response, trouble = await self._send_once(request)
            if trouble is None and response is not None and not is_transient(response.status_code):
                return response
            asked = parse_retry_after(response.headers.get("retry-after", ""), self._now()) if response else None
            silent = isinstance(trouble, _TIMEOUT_ERRORS)
            pause = retry_pause_s(attempt, waited, asked, random.random(), silent=silent)  # noqa: S311 — no secret
            if pause is None:
                raise await _gave_up_error(request, response, trouble, asked)
            if response is not None:
                await _close_quietly(response)
            waited += pause
            await self._sleep(pause)

    async def _send_once(self, request: httpx2.Request) -> tuple[httpx2.Response | None, Exception | None]:
        # The client's own credentials are for the first origin only.
        auth = None if "elsewhere" in request.extensions else httpx2.USE_CLIENT_DEFAULT
        if self._client.is_closed:
            raise SourceUnavailable(
                "The source was closed while it was read: nothing more can be asked for in this run."
            )
        try:
            async with asyncio.timeout(SOURCE_HEADERS_S):
                return await self._client.send(request, stream=True, auth=auth, follow_redirects=False), None
        except httpx2.LocalProtocolError:
            raise _unsendable_credential_error() from None  # the original error quotes the header
        except httpx2.UnsupportedProtocol as error:
            raise SourceRefused(
                f"{printable_url(str(request.url))} is not an http or https address; fix it."
            ) from error
        except _REQUEST_ERRORS as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise SourceUnavailable(
                    f"The certificate of {_host_name(request)} is not trusted: set ca_bundle to your authority's "
                    f"certificates ({error_reason(error)})."
                ) from error
            return None, error


def _build_url(url: str, params: Params | None = None) -> httpx2.URL:
    try:
        address = httpx2.URL(url)
        return address.copy_merge_params(params) if params else address
    except (httpx2.InvalidURL, UnicodeError) as error:  # a source chooses some parameters, such as page tokens
        raise SourceRefused(f"{printable_url(url)} and its parameters are not a web address; correct it.") from error


def _url_origin(url: httpx2.URL) -> tuple[str, bytes, int | None]:
    return url.scheme, url.raw_host, url.port


def _host_name(request: httpx2.Request) -> str:
    return shorten_line(request.url.host, 100)


def _unsendable_credential_error() -> CredentialRefused:
    return CredentialRefused(
        "The credential for this source holds a line break, a control character or a letter that is not ASCII, so no "
        "request can carry it: copy it again."
    )


async def _gave_up_error(
    request: httpx2.Request, response: httpx2.Response | None, trouble: Exception | None, asked_s: float | None
) -> SourceUnavailable:
    if response is None:
        what = "did not answer in time" if isinstance(trouble, _TIMEOUT_ERRORS) else "cannot be reached"
        down = SourceUnavailable(
            f"{_host_name(request)} {what}, however often it was tried "
            f"({error_reason(trouble or OSError())}). Ask again later."
        )
        down.__cause__ = trouble
        return down
    refusal = await _refusal_error(response)
    await _close_quietly(response)
    again = f"in {asked_s:.0f} s" if asked_s and asked_s < _TOO_LONG_S else "later"
    down = SourceUnavailable(f"{refusal} It failed at each attempt: ask again {again}.")
    down.__cause__ = refusal
    return down


async def _refusal_error(response: httpx2.Response) -> FetchRefused:
    body = await FetchedResponse(response, HTTP_REFUSAL_BYTES).read_beginning()
    sentence = (
        f"{shorten_line(response.url.host, 100)} answered {response.status_code} {_reason_phrase(response.status_code)}"
    )
    return FetchRefused(sentence.rstrip() + ".", response.status_code, response.headers, body)


def _reason_phrase(status: int) -> str:
    """Return the standard's phrase, whatever the source sent."""
    return httpx2.codes.get_reason_phrase(status)


async def _close_quietly(response: httpx2.Response) -> None:
    with suppress(httpx2.HTTPError, *TRANSPORT_ERRORS):
        await response.aclose()
