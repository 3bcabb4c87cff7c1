"""Send requests to GitLab's API with one token: the client under `gitlab.read` and `gitlab.write`.

It bounds the size of every body, and takes the token to no other address than the configured one. It raises
`RequestFailed` when no usable response came; each side turns that, and refusals, into errors for its own readers.
Cancelling the caller ends the request. No error holds the token.

A read, and a write that has no further effect, may always be repeated. Any other write is repeated only when GitLab
certainly did nothing: it answered 429, or was never reached. GitLab's own headers decide about the pause when it sends
them; otherwise the pause grows exponentially, because GitLab's application rate limiter answers 429 without any header.
"""

import asyncio
import os
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Protocol, TypeAlias, TypeVar
from urllib.parse import urljoin, urlsplit

import httpx2
import msgspec

from hummingbird.clients.http_clients import (
    default_ssl_context,
    explain_client_errors,
    load_ssl_context,
    parse_retry_after,
)
from hummingbird.clients.url_fetch import TRANSPORT_ERRORS, BodyDecoder, Deadline
from hummingbird.core.errors import InvalidRequest, SourceResponseInvalid
from hummingbird.core.limits import FORGE_LEAVING_S, HTTP_REFUSAL_BYTES, RETRY_JITTER
from hummingbird.core.text import shorten_line
from hummingbird.core.work_context import ensure_work_lease


def may_retry_status(status: int, *, repeatable: bool) -> bool:
    """Return whether a request that was answered with this status may be sent again."""
    return status == 429 or (repeatable and (status in (408, 425) or status >= 500))


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how patiently a request is repeated.

    A server that is silent costs a whole timeout each time, so it gets fewer attempts. A server that asks for a pause
    longer than `longest_pause_s`, or for more than `total_pause_s` together, is not waited for at all.
    """

    attempts: int
    silent_attempts: int
    first_pause_s: float
    longest_pause_s: float
    total_pause_s: float

    def next_pause_s(
        self, attempt: int, waited_s: float, *, headers: Mapping[str, str], now: float, silent: bool = False
    ) -> float | None:
        """Return the pause after attempt number `attempt`, which counts from 1; None to give up.

        `headers` are those of the refusal, empty if no response came. `now` is in seconds since 1970.
        """
        if attempt >= (self.silent_attempts if silent else self.attempts):
            return None
        pause = self.pause_s(headers, attempt, now)
        return pause if pause <= self.longest_pause_s and waited_s + pause <= self.total_pause_s else None

    def pause_s(self, headers: Mapping[str, str], attempt: int, now: float) -> float:
        """Return the pause from Retry-After, else from RateLimit-Reset, else the backoff."""
        for asked in (parse_retry_after(headers.get("Retry-After", ""), now), _reset_s(headers, now)):
            if asked is not None:
                return asked
        return self.backoff_s(attempt)

    def backoff_s(self, attempt: int) -> float:
        """Return a pause that doubles with each attempt, plus jitter."""
        return self.first_pause_s * float(2 ** (attempt - 1)) * (1 + RETRY_JITTER * random.random())  # noqa: S311 - spreads load


def _reset_s(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds until the rate limit resets; None when that time has passed.

    GitLab sends the header with successful responses too, so it counts only when RateLimit-Remaining is 0.
    """
    text = headers.get("RateLimit-Reset", "").strip()
    if headers.get("RateLimit-Remaining", "0").strip() != "0" or not (text.isascii() and text.isdigit()):
        return None
    seconds = float(text[:12]) - now
    return seconds if seconds > 0 else None


JsonObject: TypeAlias = Mapping[str, Any]
Params: TypeAlias = Mapping[str, str | int]
API_PATH = "/api/v4"


class GitLabToken(Protocol):
    """A secret for the header PRIVATE-TOKEN. Reading and writing have a type each, and neither accepts the other's."""

    def reveal(self) -> str: ...


def create_http_client(ca_bundle: str, timeout: httpx2.Timeout, keepalive_s: float) -> httpx2.AsyncClient:
    """Create a pooled client without redirects and cookies, which several projects may share.

    Proxies come from the environment. Raises MissingSetting for certificates or proxies that cannot be used.
    """
    # The session cookie of one project's bot would be sent together with another project's token.
    cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
    ca_bundle = ca_bundle or _environment_bundle()
    with explain_client_errors():
        return httpx2.AsyncClient(
            verify=load_ssl_context(ca_bundle) if ca_bundle else default_ssl_context(),
            timeout=timeout,
            limits=httpx2.Limits(keepalive_expiry=keepalive_s),
            cookies=cookies,
            follow_redirects=False,
        )


def _environment_bundle() -> str:
    """Return the certificates named by variables that other GitLab clients obey and httpx2 does not."""
    return os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE") or ""


class FailureKind(Enum):
    """Why no usable response came."""

    NOT_SENT = auto()  # GitLab was never reached, so it did nothing
    SILENT = auto()  # it did not answer in time
    HUNG_UP = auto()  # the connection broke before the response began
    BROKEN_OFF = auto()  # the body ended too early, or cannot be unpacked
    TOO_LARGE = auto()
    ELSEWHERE = auto()  # it redirects to another origin, or for ever
    UNTRUSTED = auto()  # its certificate
    INVALID_ADDRESS = auto()
    UNSENDABLE = auto()  # the request itself breaks HTTP's rules
    OUT_OF_TIME = auto()  # the request's own deadline has passed


_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)
_CONNECTION_LOST = (httpx2.HTTPError, httpx2.StreamError, *TRANSPORT_ERRORS)
# UnicodeError and ExceptionGroup result from a host name or a port that no socket accepts.
_INVALID_ADDRESS = (httpx2.InvalidURL, httpx2.UnsupportedProtocol, UnicodeError, ExceptionGroup)
_REPEATABLE_FAILURES = frozenset({FailureKind.SILENT, FailureKind.HUNG_UP, FailureKind.BROKEN_OFF})
_REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})


class RequestFailed(Exception):
    """No usable response came, after all attempts.

    `reason` is the cause on one short line; `address` is where GitLab led to, if that is elsewhere.
    """

    def __init__(self, kind: FailureKind, reason: str = "", *, silent: bool = False, address: str = "") -> None:
        super().__init__(f"{kind.name}: {reason}")
        self.kind = kind
        self.reason = reason
        self.address = address
        self.silent = silent or kind is FailureKind.SILENT


@dataclass(frozen=True, slots=True)
class GitLabRequest:
    """A request to GitLab's API; `path` is below /api/v4.

    `what` begins an error sentence: "The thread". `repeatable` says that sending it twice has no further effect.
    `max_bytes` limits the body of a success. A request with a `deadline` ends at that moment, retries included.
    """

    what: str
    method: str
    path: str
    params: Params = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    repeatable: bool = True
    headers: Mapping[str, str] = field(default_factory=dict)
    max_bytes: int = 0
    deadline: Deadline | None = None

    @property
    def is_write(self) -> bool:
        return self.method != "GET"

    @property
    def ends_at(self) -> float | None:
        """Return the deadline in the event loop's time."""
        return self.deadline.ends_at if self.deadline is not None else None


@dataclass(frozen=True, slots=True)
class GitLabHttpResponse:
    """Status, headers and body of a response; the body of a refusal is cut to HTTP_REFUSAL_BYTES."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _TokenAuth(httpx2.Auth):
    """Send the token in its header; credentials in the address or in a netrc file are ignored."""

    def __init__(self, token: GitLabToken | None) -> None:
        self._token = token

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        if self._token is not None:
            request.headers["PRIVATE-TOKEN"] = self._token.reveal()
        yield request


Answer = TypeVar("Answer", httpx2.Response, GitLabHttpResponse)


@dataclass(frozen=True, slots=True)
class GitLabConnection:
    """What the clients of all projects share.

    `response_timeout_s` limits one response with its body; None leaves it to the HTTP client's timeouts. `redirects`
    is how many redirects to the same origin are followed. A `read_only` connection sends nothing but GET.
    """

    http: httpx2.AsyncClient
    url: str
    policy: RetryPolicy
    headers: Mapping[str, str]
    response_timeout_s: float | None = None
    redirects: int = 0
    read_only: bool = False
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    now: Callable[[], float] = time.time

    @property
    def api_url(self) -> str:
        return self.url.rstrip("/") + API_PATH


class GitLabHttpClient:
    """Send requests with one token."""

    def __init__(self, connection: GitLabConnection, token: GitLabToken | None) -> None:
        self.connection = connection
        self._token = token
        self._auth = _TokenAuth(token)

    async def send(self, request: GitLabRequest) -> GitLabHttpResponse:
        """Send the request and read its response, whatever its status. Raises RequestFailed."""
        return await self._follow_redirects(request, self._read_response)

    @asynccontextmanager
    async def open(self, request: GitLabRequest) -> AsyncGenerator[httpx2.Response, None]:
        """Send the request and yield its response while the body is unread. Raises RequestFailed."""
        response = await self._follow_redirects(request, self._return_response)
        try:
            yield response
        finally:
            await _close_quietly(response)

    async def read_refusal(self, response: httpx2.Response) -> GitLabHttpResponse:
        """Read the body of a refusal that `open` yielded, as far as it comes."""
        body = b""
        with suppress(RequestFailed):
            body = await self._read_body(response, GitLabRequest("", "GET", ""))
        return GitLabHttpResponse(response.status_code, response.headers, body)

    async def _follow_redirects(
        self, request: GitLabRequest, receive: Callable[[GitLabRequest, httpx2.Response], Awaitable[Answer]]
    ) -> Answer:
        if self.connection.read_only and request.method != "GET":
            raise InvalidRequest(f"{request.method} was not sent to GitLab: data sources only read.")
        url = self.connection.api_url + request.path
        for _ in range(self.connection.redirects + 1):
            answer = await self._send_with_retries(request, url, receive)
            location = answer.headers.get("location", "")
            if not self.connection.redirects or _status(answer) not in _REDIRECT_STATUSES or not location:
                return answer
            await _close_quietly(answer)
            url, request = self._redirect_target(url, location), replace(request, params={})
        raise RequestFailed(FailureKind.ELSEWHERE, "it redirects for ever")

    def _redirect_target(self, url: str, location: str) -> str:
        try:
            target = urljoin(url, location)
        except ValueError as error:
            raise RequestFailed(FailureKind.ELSEWHERE) from error
        origin = url_origin(target)
        if origin is None or origin != url_origin(self.connection.url):
            raise RequestFailed(FailureKind.ELSEWHERE, address=target)
        return target

    async def _send_with_retries(
        self, request: GitLabRequest, url: str, receive: Callable[[GitLabRequest, httpx2.Response], Awaitable[Answer]]
    ) -> Answer:
        waited, policy = 0.0, self.connection.policy
        for attempt in range(1, policy.attempts + 1):
            answer, failed = None, None
            try:
                send = self._send_write if request.is_write else self._send_once
                answer = await send(request, url, receive)
            except RequestFailed as error:
                if not _may_retry(error, request):
                    raise
                failed = error
            if answer is not None and not may_retry_status(_status(answer), repeatable=request.repeatable):
                return answer
            pause = policy.next_pause_s(
                attempt,
                waited,
                headers=answer.headers if answer is not None else {},
                now=self.connection.now(),
                silent=failed is not None and failed.silent,
            )
            if pause is None and failed is not None:
                raise failed
            if pause is None and answer is not None:
                return answer
            assert pause is not None
            await _close_quietly(answer)
            waited += pause
            await self._sleep(request, pause)
        raise AssertionError("the last attempt returns or raises")

    async def _sleep(self, request: GitLabRequest, pause: float) -> None:
        try:
            async with asyncio.timeout_at(request.ends_at):
                await self.connection.sleep(pause)
        except TimeoutError as error:
            raise RequestFailed(FailureKind.OUT_OF_TIME) from error

    async def _send_write(
        self, request: GitLabRequest, url: str, receive: Callable[[GitLabRequest, httpx2.Response], Awaitable[Answer]]
    ) -> Answer:
        """Send a write if this work is still ours; if the caller is cancelled, let it end for a moment.

        Whoever takes the work over looks first for what was written, and would not find what is still on its way.
        Raises ReceiptExpired too.
        """

        async def send() -> Answer:
            await ensure_work_lease()  # in the task that sends: nothing may come between the two
            return await self._send_once(request, url, receive)

        sending = asyncio.ensure_future(send())
        try:
            return await asyncio.shield(sending)
        except asyncio.CancelledError:
            await asyncio.wait((sending,), timeout=FORGE_LEAVING_S)
            sending.cancel()
            await asyncio.wait((sending,))
            if not sending.cancelled():
                sending.exception()
            raise

    async def _send_once(
        self, request: GitLabRequest, url: str, receive: Callable[[GitLabRequest, httpx2.Response], Awaitable[Answer]]
    ) -> Answer:
        """Send the request once and translate the HTTP client's errors."""
        if self.connection.http.is_closed:
            raise RequestFailed(FailureKind.NOT_SENT, "the connections were closed")
        if request.deadline is not None and request.deadline.is_over():
            raise RequestFailed(FailureKind.OUT_OF_TIME)
        began: list[httpx2.Response] = []
        try:
            async with asyncio.timeout_at(self._latest_end(request)):
                response = await self.connection.http.send(
                    self._build_request(request, url), stream=True, auth=self._auth
                )
                began.append(response)
                try:
                    return await receive(request, response)
                except BaseException:
                    await _close_quietly(response)
                    raise
        except _NOT_SENT as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise RequestFailed(FailureKind.UNTRUSTED, _reason(error)) from error
            silent = isinstance(error, httpx2.TimeoutException)
            raise RequestFailed(FailureKind.NOT_SENT, _reason(error), silent=silent) from error
        except (httpx2.TimeoutException, TimeoutError) as error:
            over = request.deadline is not None and request.deadline.is_over()
            kind = FailureKind.OUT_OF_TIME if over else FailureKind.SILENT
            raise RequestFailed(kind, _reason(error)) from error
        except _INVALID_ADDRESS as error:
            raise RequestFailed(FailureKind.INVALID_ADDRESS, type(error).__name__) from error
        except httpx2.LocalProtocolError:  # not chained: its text may hold a header
            raise RequestFailed(FailureKind.UNSENDABLE) from None
        except _CONNECTION_LOST as error:
            raise RequestFailed(FailureKind.BROKEN_OFF if began else FailureKind.HUNG_UP, _reason(error)) from error

    def _latest_end(self, request: GitLabRequest) -> float | None:
        per_response = self.connection.response_timeout_s
        if per_response is None:
            return request.ends_at
        end = asyncio.get_running_loop().time() + per_response
        return end if request.ends_at is None else min(end, request.ends_at)

    def _build_request(self, request: GitLabRequest, url: str) -> httpx2.Request:
        body = None if request.body is None else msgspec.json.encode(request.body)
        headers = {**self.connection.headers, **({} if body is None else {"Content-Type": "application/json"})}
        return self.connection.http.build_request(
            request.method,
            url,
            params=dict(request.params) or None,
            content=body,
            headers={**headers, **request.headers},
        )

    async def _return_response(self, _: GitLabRequest, response: httpx2.Response) -> httpx2.Response:
        return response

    async def _read_response(self, request: GitLabRequest, response: httpx2.Response) -> GitLabHttpResponse:
        body = await self._read_body(response, request)
        await response.aclose()
        return GitLabHttpResponse(response.status_code, response.headers, body)

    async def _read_body(self, response: httpx2.Response, request: GitLabRequest) -> bytes:
        """Read the body; cut off that of a refusal, and remove the token from it: a proxy might echo it."""
        content, refused = bytearray(), not response.is_success
        most = HTTP_REFUSAL_BYTES if refused else request.max_bytes
        try:
            decoder = BodyDecoder(response.headers.get("content-encoding", ""))
            async for chunk in response.aiter_raw():
                for piece in decoder.feed(chunk):
                    content += piece
                    if len(content) > most and not refused:
                        raise RequestFailed(FailureKind.TOO_LARGE)
                    if len(content) > most:
                        break
                if len(content) > most:
                    break
            else:
                decoder.end()
        except SourceResponseInvalid as error:
            if not refused:
                raise RequestFailed(FailureKind.BROKEN_OFF, "it cannot be unpacked") from error
        if not refused:
            return bytes(content)
        secret = b"" if self._token is None else self._token.reveal().encode()
        return bytes(content[:most]).replace(secret, b"") if secret else bytes(content[:most])


def _may_retry(failed: RequestFailed, request: GitLabRequest) -> bool:
    return failed.kind is FailureKind.NOT_SENT or (request.repeatable and failed.kind in _REPEATABLE_FAILURES)


def _status(answer: httpx2.Response | GitLabHttpResponse) -> int:
    return answer.status_code if isinstance(answer, httpx2.Response) else answer.status


def _reason(error: Exception) -> str:
    """Return the error's text on one short line, or its type if it has no text."""
    return shorten_line(str(error) or type(error).__name__, 200)


async def _close_quietly(answer: httpx2.Response | GitLabHttpResponse | None) -> None:
    if isinstance(answer, httpx2.Response):
        with suppress(httpx2.HTTPError, *TRANSPORT_ERRORS):
            await answer.aclose()


_PORTS = {"http": 80, "https": 443}


def url_origin(url: str) -> tuple[str, str, int] | None:
    """Return scheme, host and port of a web address; None for anything else."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").rstrip(".")
        return (parts.scheme, host, parts.port or _PORTS[parts.scheme]) if host else None
    except (ValueError, KeyError):
        return None


def next_page_path(headers: Mapping[str, str]) -> str | None:
    """Return the path and query of the link to the next page, below /api/v4; None at the end of the list.

    The link's host is the server's own idea of its address, so only what follows /api/v4 is used. Raises RequestFailed
    for a link that leads anywhere else.
    """
    links = httpx2.Response(200, headers={"Link": headers.get("Link", "")}).links
    url = links.get("next", {}).get("url")
    if not url:
        return None
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise RequestFailed(FailureKind.BROKEN_OFF, "the link to the next page cannot be read") from error
    _, found, path = parts.path.partition(f"{API_PATH}/")
    if not found:
        raise RequestFailed(FailureKind.ELSEWHERE)
    return f"/{path}?{parts.query}" if parts.query else f"/{path}"
