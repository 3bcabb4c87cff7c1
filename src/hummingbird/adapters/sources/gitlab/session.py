"""The session that python-gitlab speaks through (D8): it reads, from one origin, within bounds, and tries again.

python-gitlab's own retries are switched off: they wait as long as a server says, and cannot be woken. Whatever is not a
GET, and whatever leads to another origin (a redirect, a link to the next page), is refused before it is sent, so the
token stays at home. One session serves one call; the connections behind it are shared. Knows nothing of GitLab's API.
"""

import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import BaseAdapter
from urllib3.exceptions import HTTPError, ReadTimeoutError

from hummingbird.adapters.sources.gitlab.connections import Connections, on_behalf_of
from hummingbird.adapters.sources.gitlab.effort import Effort
from hummingbird.adapters.sources.gitlab.waiting import AGAIN, growing_s, pause_s
from hummingbird.domain.errors import AnswerUnusable, SourceRefused
from hummingbird.domain.limits import (
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

_NO_ADDRESS = "GitLab's address is not usable: it must begin with https:// and a host."
_PORTS = {"http": 80, "https": 443}
_BROKEN = (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError)


def origin(url: str) -> tuple[str, str, int]:
    """Scheme, host and port. Raises SourceRefused for an address that has none of them."""
    try:
        parts = urlsplit(url)
        found = parts.scheme, (parts.hostname or "").rstrip("."), parts.port or _PORTS[parts.scheme]
    except (ValueError, KeyError) as error:
        raise SourceRefused(_NO_ADDRESS) from error
    if not found[1]:
        raise SourceRefused(_NO_ADDRESS)
    return found


class ReadingSession(requests.Session):
    """Raises SourceRefused for what it does not send, SourceDown once its effort is stopped, AnswerUnusable for more
    bytes than an answer may have."""

    def __init__(self, url: str, effort: Effort, connections: Connections) -> None:
        super().__init__()
        self._home = origin(url)
        self._effort = effort
        self.max_redirects = HTTP_REDIRECTS
        self.headers["Accept-Encoding"] = "gzip"  # the others are not bounded by every library that unpacks them
        self.auth = _unchanged  # without one, requests looks for passwords in ~/.netrc
        self.adapters.clear()
        self.mount("", _Watched(connections, effort))

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        self._refuse_strangers(request)
        options["timeout"] = (SOURCE_CONNECT_S, SOURCE_STALL_S)
        if options.get("allow_redirects", True):
            return self._tried_again(request, options)
        return super().send(request, **options)  # the next hop of a redirect: tried again from its beginning

    def rebuild_auth(self, prepared_request: requests.PreparedRequest, response: requests.Response) -> None:
        """Nothing changes: the next hop is at home, or not taken."""

    def _refuse_strangers(self, request: requests.PreparedRequest) -> None:
        if request.method != "GET":
            raise SourceRefused(f"{request.method} was not sent to GitLab: data sources only read.")
        if origin(request.url or "") != self._home:
            raise SourceRefused(
                "GitLab led to another host, and was not followed there with its token: go on without this."
            )

    def _tried_again(self, request: requests.PreparedRequest, options: Mapping[str, Any]) -> requests.Response:
        waited = 0.0
        for attempt in range(1, SOURCE_ATTEMPTS + 1):
            last = attempt == SOURCE_ATTEMPTS
            try:
                response = super().send(request, **options)
            except requests.exceptions.SSLError:
                raise
            except _BROKEN as error:
                self._effort.check()
                if last or (silent(error) and attempt >= SOURCE_SILENT_ATTEMPTS):
                    raise
                pause = growing_s(attempt)
            else:
                pause = pause_s(response.headers, attempt, time.time())
                too_long = pause > SOURCE_RETRY_AFTER_CAP_S or waited + pause > SOURCE_WAIT_S
                if last or too_long or response.status_code not in AGAIN:
                    return _of_the_api(response)
                response.close()
            waited += pause
            self._effort.rest(pause)
        raise AssertionError("the last attempt returns or raises")


def silent(error: Exception) -> bool:
    """Whether nothing came for too long. In the middle of a body, requests calls that a broken connection."""
    inner = error.args[0] if error.args else None
    return isinstance(error, requests.Timeout) or isinstance(inner, ReadTimeoutError)


def _of_the_api(response: requests.Response) -> requests.Response:
    """Raises AnswerUnusable for a page made for people, which is what a proxy or a sign-in form sends."""
    kind = response.headers.get("Content-Type", "").split(";")[0].strip().lower()
    if response.ok and kind == "text/html":
        response.close()
        raise AnswerUnusable(
            "GitLab answered with a web page instead of its API: whoever runs this must check its address and token."
        )
    return response


def _unchanged(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


class _Watched(BaseAdapter):
    """Sends through the shared connections; what comes back is measured and can be stopped."""

    def __init__(self, connections: Connections, effort: Effort) -> None:
        super().__init__()
        self._connections = connections
        self._effort = effort

    # requests declares its options one by one; they only pass by here
    def send(self, request: requests.PreparedRequest, stream: bool = False, **options: Any) -> requests.Response:  # type: ignore[override]
        self._effort.count()
        with on_behalf_of(self._effort):
            response = self._connections.send(request, stream=stream, **options)
        most = GITLAB_TEXT_BYTES if stream else GITLAB_JSON_BYTES
        self._effort.reads(response.raw)
        response.raw = _Measured(response.raw, self._effort, most if response.ok else None)
        return response

    def close(self) -> None:
        """The connections outlive the session."""


class _Measured:
    """A body that ends with a sentence where it becomes too large. What comes with a refusal is only cut short."""

    def __init__(self, raw: Any, effort: Effort, most: int | None) -> None:
        self._raw = raw
        self._effort = effort
        self._most = most

    def stream(self, amount: int, decode_content: bool | None = None) -> Iterator[bytes]:
        size = 0
        for chunk in self._stoppable(amount, decode_content):
            size += len(chunk)
            if self._most is None and size > HTTP_REFUSAL_BYTES:
                self._raw.close()
                return
            if self._most is not None and size > self._most:
                raise AnswerUnusable(
                    f"GitLab's answer is larger than the {self._most // 1024**2} MiB that are read: "
                    "ask for something narrower."
                )
            yield chunk

    def _stoppable(self, amount: int, decode_content: bool | None) -> Iterator[bytes]:
        """A connection that we shut ourselves looks like one that broke, or like the end."""
        try:
            for chunk in self._raw.stream(amount, decode_content=decode_content):
                self._effort.check()
                yield chunk
        except HTTPError:
            self._effort.check()
            raise
        self._effort.check()

    def read(self, *arguments: Any, **options: Any) -> bytes:
        """requests drains redirects with it that it could not decode."""
        self._raw.close()
        return b""

    def close(self) -> None:
        self._raw.close()

    def release_conn(self) -> None:
        self._raw.release_conn()
