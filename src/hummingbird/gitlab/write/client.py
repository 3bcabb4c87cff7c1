"""Send requests to GitLab with the write token, and decide which of them may be retried.

Reads and idempotent writes are retried. Any other write is retried only if GitLab certainly did nothing: it answered
429, or was never reached. Redirects are not followed, so the token goes only to the configured address. No error holds
the token.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx2
import msgspec

from hummingbird.clients.http_clients import default_ssl_context, explain_client_errors, load_ssl_context
from hummingbird.core.errors import GitLabRequestRefused, GitLabWriteError
from hummingbird.core.limits import (
    FORGE_ATTEMPTS,
    FORGE_CONNECT_S,
    FORGE_IDLE_S,
    FORGE_JSON_BYTES,
    FORGE_PAGES,
    FORGE_PER_PAGE,
    FORGE_REFUSAL_BYTES,
    FORGE_WAIT_S,
)
from hummingbird.gitlab.retry_policy import writer_backoff_s, writer_pause_s
from hummingbird.gitlab.write import api_response
from hummingbird.gitlab.write.api_response import GitLabRequest, GitLabResponse, JsonObject
from hummingbird.gitlab.write.protocol import OrchestratorToken


def create_http_client(ca_bundle: str, answer_s: float) -> httpx2.AsyncClient:
    """Create the pooled client that all projects share, without redirects and cookies.

    Proxies come from the environment. Raises MissingSetting for certificates or proxies that cannot be used.
    """
    timeout = httpx2.Timeout(answer_s, connect=min(answer_s, FORGE_CONNECT_S))
    # A write on a connection that GitLab closes at that moment has an unknown outcome, so idle connections are closed
    # before the server does it.
    limits = httpx2.Limits(keepalive_expiry=FORGE_IDLE_S)
    # The session cookie of one project's bot would be sent together with another project's token.
    cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
    with explain_client_errors():
        return httpx2.AsyncClient(
            verify=load_ssl_context(ca_bundle) if ca_bundle else default_ssl_context(),
            timeout=timeout,
            limits=limits,
            cookies=cookies,
            follow_redirects=False,
        )


_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "hummingbird"}
Params = Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class GitLabConnection:
    """What the clients of all projects share. `api_url` has no slash at its end."""

    http: httpx2.AsyncClient
    api_url: str
    response_timeout_s: float
    sleep: Callable[[float], Awaitable[None]]
    now: Callable[[], float]


class _RetryableError(Exception):
    """The attempt failed but may be repeated; `error` is raised when no attempt is left."""

    def __init__(self, error: GitLabWriteError, answer: GitLabResponse | None = None) -> None:
        super().__init__()
        self.error = error
        self.answer = answer


class _TokenAuth(httpx2.Auth):
    """Send the token in its header; credentials in the address or in a netrc file are ignored."""

    def __init__(self, token: OrchestratorToken) -> None:
        self._token = token

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        request.headers["PRIVATE-TOKEN"] = self._token.reveal()
        yield request


class GitLabWriteClient:
    """Send requests as one project's bot. A `path` is below /api/v4; `what` begins an error sentence: "The thread"."""

    def __init__(self, door: GitLabConnection, token: OrchestratorToken, project: str) -> None:
        self._connection = door
        self._auth = _TokenAuth(token)
        self._token = token
        self._project = project

    async def get(self, what: str, path: str, params: Params | None = None) -> GitLabResponse:
        """Send a GET request.

        Raises GitLabNotFound, GitLabRequestRefused, GitLabUnavailable, CredentialRefused.
        """
        return await self._send_with_retries(GitLabRequest(what, "GET", path, dict(params or {}), None, True))

    async def get_pages(
        self, what: str, path: str, params: Params | None = None
    ) -> AsyncGenerator[list[JsonObject], None]:
        """Yield all pages of a list; an empty page need not be the last one. Raises like `get`."""
        page = 1
        for _ in range(FORGE_PAGES):
            answer = await self.get(what, path, {**(params or {}), "per_page": FORGE_PER_PAGE, "page": page})
            yield answer.json_objects()
            page = answer.next_page(page)
            if not page:
                return
        raise GitLabRequestRefused(f"{what} came on more than {FORGE_PAGES} pages, which is too much to read.")

    async def write(self, what: str, method: str, path: str, body: dict[str, Any]) -> GitLabResponse:
        """Send a write that must not happen twice. Raises like `get`, and GitLabWriteUncertain."""
        return await self._send_with_retries(GitLabRequest(what, method, path, {}, body, False))

    async def write_idempotent(
        self, what: str, method: str, path: str, body: dict[str, Any] | None = None, *, fine: tuple[int, ...] = ()
    ) -> GitLabResponse:
        """Send a write that may be repeated without further effect. Raises like `write`.

        A refusal with a status in `fine` is returned instead of raised.
        """
        return await self._send_with_retries(GitLabRequest(what, method, path, {}, body, True, fine))

    async def _send_with_retries(self, asked: GitLabRequest) -> GitLabResponse:
        waited = 0.0
        for attempt in range(1, FORGE_ATTEMPTS + 1):
            try:
                return await self._send_once(asked)
            except _RetryableError as again:
                pause = (
                    writer_pause_s(again.answer.headers, attempt, self._connection.now())
                    if again.answer
                    else writer_backoff_s(attempt)
                )
                waited += pause
                if attempt == FORGE_ATTEMPTS or waited > FORGE_WAIT_S:
                    raise again.error from again.__cause__
            await self._connection.sleep(pause)
        raise AssertionError("The last attempt returns or raises.")

    async def _send_once(self, asked: GitLabRequest) -> GitLabResponse:
        """Send the request once. Raises _RetryableError, or the error that a retry would not change."""
        answer = await self._send_translated(asked)
        if answer.status < 300:
            return answer
        if answer.status == 429:
            raise _RetryableError(api_response.busy_error(asked), answer)
        if answer.status in (408, 425) or answer.status >= 500:
            raise self._unclear_outcome_error(asked, f"it failed with status {answer.status}", answer)
        error = api_response.refusal_error(asked, answer, self._project)
        if answer.status in asked.accepted_statuses and isinstance(error, GitLabWriteError):
            return answer
        raise error

    def _unclear_outcome_error(self, asked: GitLabRequest, why: str, answer: GitLabResponse | None = None) -> Exception:
        error = api_response.uncertain_error(asked, why)
        return _RetryableError(error, answer) if asked.repeatable else error

    async def _send_translated(self, asked: GitLabRequest) -> GitLabResponse:
        """Send the request and translate the HTTP client's errors."""
        try:
            async with asyncio.timeout(self._connection.response_timeout_s):
                return await self._exchange(asked)
        except api_response.NOT_SENT as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise api_response.certificate_error(asked) from error
            raise _RetryableError(
                api_response.unreachable_error(asked, f"it cannot be reached ({api_response.error_reason(error)})")
            ) from error
        except (httpx2.TimeoutException, TimeoutError) as error:
            raise self._unclear_outcome_error(asked, "it did not answer in time") from error
        except api_response.INVALID_ADDRESS as error:
            raise api_response.invalid_address_error(error) from error
        except httpx2.LocalProtocolError:  # not chained: its text may hold a header
            raise self._unclear_outcome_error(asked, "the request could not be encoded") from None
        except api_response.CONNECTION_LOST as error:
            raise self._unclear_outcome_error(
                asked, f"the connection broke ({api_response.error_reason(error)})"
            ) from error

    async def _exchange(self, asked: GitLabRequest) -> GitLabResponse:
        body = None if asked.body is None else msgspec.json.encode(asked.body)
        headers = _HEADERS if body is None else {**_HEADERS, "Content-Type": "application/json"}
        async with self._connection.http.stream(
            asked.method,
            self._connection.api_url + asked.path,
            params=asked.params or None,
            content=body,
            headers=headers,
            auth=self._auth,
        ) as response:
            content = await self._read_body(asked, response)
            return GitLabResponse(asked.what, response.status_code, response.headers, content)

    async def _read_body(self, asked: GitLabRequest, response: httpx2.Response) -> bytes:
        """Read the body; cut off that of a refusal, raise an error for a response that is too large."""
        most = FORGE_JSON_BYTES if response.status_code < 300 else FORGE_REFUSAL_BYTES
        content = bytearray()
        async for piece in response.aiter_bytes():
            content += piece
            if len(content) > most and response.status_code < 300:
                why = f"its answer is larger than {most} bytes"
                raise (
                    api_response.uncertain_error(asked, why)
                    if asked.is_write
                    else GitLabRequestRefused(f"{asked.what} was not read: {why}.")
                )
            if len(content) > most:
                break
        return bytes(content) if response.status_code < 300 else self._remove_token(bytes(content))

    def _remove_token(self, refusal: bytes) -> bytes:
        """Remove the token from a refusal: a proxy might echo it, and error sentences quote the refusal."""
        return refusal.replace(self._token.reveal().encode(), b"")
