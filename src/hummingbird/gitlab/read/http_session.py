"""Provide the HTTP session that python-gitlab uses: GET only, one origin only, with size limits and retries.

The session refuses, before it sends anything, every request that is not a GET or that leads to another origin (a
redirect, a link to the next page). So the token never leaves the configured host. python-gitlab's own retries are off:
they wait as long as the server says and cannot be interrupted. One session serves one call; all share the connections.
"""

import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import BaseAdapter, HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError, ReadTimeoutError

from hummingbird.core.errors import SourceRefused, SourceResponseInvalid
from hummingbird.core.limits import (
    CONCURRENT_TOOLS,
    GITLAB_JSON_BYTES,
    GITLAB_TEXT_BYTES,
    HTTP_REDIRECTS,
    HTTP_REFUSAL_BYTES,
    SOURCE_ATTEMPTS,
    SOURCE_CONNECT_S,
    SOURCE_RETRY_AFTER_CAP_S,
    SOURCE_SILENT_ATTEMPTS,
    SOURCE_STALL_S,
    SOURCE_WAIT_S,
)
from hummingbird.gitlab.read.worker_thread import InterruptibleCall
from hummingbird.gitlab.retry_policy import RETRY_STATUSES, reader_backoff_s, reader_pause_s

_thread_state = threading.local()


@contextmanager
def interruptible_by(effort: InterruptibleCall) -> Iterator[None]:
    """Let stopping the call interrupt whatever this thread waits for inside the block."""
    _thread_state.effort = effort
    try:
        yield
    finally:
        _thread_state.effort = None


class InterruptibleAdapter(HTTPAdapter):
    """The connections that all calls share, each of which can be interrupted while it waits for a response.

    urllib3 can interrupt a body but not the wait before it, which is the long one: GitLab first packs an archive or
    sums up a test report. So each connection tells the current call which socket it waits on. Threads may share the
    adapter, as they may share urllib3's pool; they may not share a session.
    """

    def __init__(self) -> None:
        super().__init__(pool_connections=2, pool_maxsize=CONCURRENT_TOOLS, max_retries=0)

    def get_connection_with_tls_context(self, *arguments: Any, **options: Any) -> Any:
        pool: Any = super().get_connection_with_tls_context(*arguments, **options)
        pool.ConnectionCls = _InterruptibleHttpsConnection if pool.scheme == "https" else _InterruptibleHttpConnection
        return pool


class _InterruptibleHttpConnection(HTTPConnection):
    def getresponse(self) -> Any:
        _watch_socket(self.sock)
        return super().getresponse()


class _InterruptibleHttpsConnection(HTTPSConnection):
    def getresponse(self) -> Any:
        _watch_socket(self.sock)
        return super().getresponse()


class _WaitingSocket:
    def __init__(self, waits_on: socket.socket) -> None:
        self._socket = waits_on

    def shutdown(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Do nothing: the connection closes its socket itself."""


def _watch_socket(waits_on: socket.socket | None) -> None:
    effort: InterruptibleCall | None = getattr(_thread_state, "effort", None)
    if effort is not None and waits_on is not None:
        effort.watch_body(_WaitingSocket(waits_on))


_INVALID_ADDRESS = "GitLab's address is not usable: it must begin with https:// and a host."
_PORTS = {"http": 80, "https": 443}
_CONNECTION_ERRORS = (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError)


def parse_origin(url: str) -> tuple[str, str, int]:
    """Return scheme, host and port. Raises SourceRefused for an address without them."""
    try:
        parts = urlsplit(url)
        found = parts.scheme, (parts.hostname or "").rstrip("."), parts.port or _PORTS[parts.scheme]
    except (ValueError, KeyError) as error:
        raise SourceRefused(_INVALID_ADDRESS) from error
    if not found[1]:
        raise SourceRefused(_INVALID_ADDRESS)
    return found


class ReadOnlySession(requests.Session):
    """Send GET requests to one origin and retry them.

    Raises SourceRefused for a request that it does not send, SourceUnavailable once the call is stopped, and
    SourceResponseInvalid for a response that is too large.
    """

    def __init__(self, url: str, effort: InterruptibleCall, connections: InterruptibleAdapter) -> None:
        super().__init__()
        self._origin = parse_origin(url)
        self._call = effort
        self.max_redirects = HTTP_REDIRECTS
        self.headers["Accept-Encoding"] = "gzip"  # not every library limits the size of what other encodings unpack to
        self.auth = _no_auth  # without it, requests looks for passwords in ~/.netrc
        self.adapters.clear()
        self.mount("", _InterruptibleTransport(connections, effort))

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        self._refuse_unsafe_request(request)
        options["timeout"] = (SOURCE_CONNECT_S, SOURCE_STALL_S)
        if options.get("allow_redirects", True):
            return self._send_with_retries(request, options)
        return super().send(request, **options)  # the next hop of a redirect: a retry starts at the first request

    def rebuild_auth(self, prepared_request: requests.PreparedRequest, response: requests.Response) -> None:
        """Keep the token: `send` refuses every hop to another origin."""

    def _refuse_unsafe_request(self, request: requests.PreparedRequest) -> None:
        if request.method != "GET":
            raise SourceRefused(f"{request.method} was not sent to GitLab: data sources only read.")
        if parse_origin(request.url or "") != self._origin:
            raise SourceRefused(
                "GitLab led to another host, and was not followed there with its token: go on without this."
            )

    def _send_with_retries(self, request: requests.PreparedRequest, options: Mapping[str, Any]) -> requests.Response:
        waited = 0.0
        for attempt in range(1, SOURCE_ATTEMPTS + 1):
            last = attempt == SOURCE_ATTEMPTS
            try:
                response = super().send(request, **options)
            except requests.exceptions.SSLError:
                raise
            except _CONNECTION_ERRORS as error:
                self._call.raise_if_stopped()
                if last or (is_timeout(error) and attempt >= SOURCE_SILENT_ATTEMPTS):
                    raise
                pause = reader_backoff_s(attempt)
            else:
                pause = reader_pause_s(response.headers, attempt, time.time())
                too_long = pause > SOURCE_RETRY_AFTER_CAP_S or waited + pause > SOURCE_WAIT_S
                if last or too_long or response.status_code not in RETRY_STATUSES:
                    return _check_api_response(response)
                response.close()
            waited += pause
            self._call.sleep(pause)
        raise AssertionError("the last attempt returns or raises")


def is_timeout(error: Exception) -> bool:
    """Return whether GitLab was silent for too long; in the middle of a body requests reports a ConnectionError."""
    inner = error.args[0] if error.args else None
    return isinstance(error, requests.Timeout) or isinstance(inner, ReadTimeoutError)


def _check_api_response(response: requests.Response) -> requests.Response:
    """Return the response. Raises SourceResponseInvalid for a web page, as a proxy or a sign-in form sends it."""
    kind = response.headers.get("Content-Type", "").split(";")[0].strip().lower()
    if response.ok and kind == "text/html":
        response.close()
        raise SourceResponseInvalid(
            "GitLab answered with a web page instead of its API: whoever runs this must check its address and token."
        )
    return response


def _no_auth(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


class _InterruptibleTransport(BaseAdapter):
    """Send through the shared connections; the response bodies are limited in size and can be interrupted."""

    def __init__(self, connections: InterruptibleAdapter, effort: InterruptibleCall) -> None:
        super().__init__()
        self._connections = connections
        self._call = effort

    # requests declares its options one by one; this method only passes them on
    def send(self, request: requests.PreparedRequest, stream: bool = False, **options: Any) -> requests.Response:  # type: ignore[override]
        self._call.count_request()
        with interruptible_by(self._call):
            response = self._connections.send(request, stream=stream, **options)
        most = GITLAB_TEXT_BYTES if stream else GITLAB_JSON_BYTES
        self._call.watch_body(response.raw)
        response.raw = _SizeLimitedBody(response.raw, self._call, most if response.ok else None)
        return response

    def close(self) -> None:
        """Do nothing: the connections outlive the session."""


class _SizeLimitedBody:
    """A response body that raises SourceResponseInvalid when it becomes too large.

    The body of a refusal (`most` is None) is cut off silently instead.
    """

    def __init__(self, raw: Any, effort: InterruptibleCall, most: int | None) -> None:
        self._raw = raw
        self._call = effort
        self._most = most

    def stream(self, amount: int, decode_content: bool | None = None) -> Iterator[bytes]:
        size = 0
        for chunk in self._iter_until_stopped(amount, decode_content):
            size += len(chunk)
            if self._most is None and size > HTTP_REFUSAL_BYTES:
                self._raw.close()
                return
            if self._most is not None and size > self._most:
                raise SourceResponseInvalid(
                    f"GitLab's answer is larger than the {self._most // 1024**2} MiB that are read: "
                    "ask for something narrower."
                )
            yield chunk

    def _iter_until_stopped(self, amount: int, decode_content: bool | None) -> Iterator[bytes]:
        """Yield chunks until the call is stopped.

        A connection that `stop` shut looks like a broken one, or like the end of the body; both become the call's
        reason for stopping.
        """
        try:
            for chunk in self._raw.stream(amount, decode_content=decode_content):
                self._call.raise_if_stopped()
                yield chunk
        except HTTPError:
            self._call.raise_if_stopped()
            raise
        self._call.raise_if_stopped()

    def read(self, *arguments: Any, **options: Any) -> bytes:
        """Discard the body: requests calls this only to drain a redirect that it could not decode."""
        self._raw.close()
        return b""

    def close(self) -> None:
        self._raw.close()

    def release_conn(self) -> None:
        self._raw.release_conn()
