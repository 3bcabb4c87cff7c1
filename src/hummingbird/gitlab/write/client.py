"""Send requests to GitLab with the write token, and turn failures into errors for whoever operates the service.

Redirects are not followed, and a write that GitLab may have processed is never repeated: see `gitlab.http_client`.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import httpx2

from hummingbird.core.errors import GitLabRequestRefused, GitLabWriteError, HummingbirdError
from hummingbird.core.limits import (
    FORGE_ATTEMPTS,
    FORGE_CONNECT_S,
    FORGE_DELAY_S,
    FORGE_IDLE_S,
    FORGE_JSON_BYTES,
    FORGE_PAGES,
    FORGE_PER_PAGE,
    FORGE_WAIT_S,
)
from hummingbird.gitlab.http_client import (
    FailureKind,
    GitLabConnection,
    GitLabHttpClient,
    GitLabRequest,
    JsonObject,
    Params,
    RequestFailed,
    RetryPolicy,
    create_http_client,
)
from hummingbird.gitlab.write import api_response
from hummingbird.gitlab.write.api_response import GitLabResponse
from hummingbird.gitlab.write.protocol import OrchestratorToken

WRITE_POLICY = RetryPolicy(FORGE_ATTEMPTS, FORGE_ATTEMPTS, FORGE_DELAY_S, FORGE_WAIT_S, FORGE_WAIT_S)
_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "hummingbird"}


def create_connection(
    url: str,
    ca_bundle: str,
    answer_s: float,
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    now: Callable[[], float] = time.time,
) -> GitLabConnection:
    """Create the connection that all projects share. Raises MissingSetting for unusable certificates or proxies."""
    # A write on a connection that GitLab closes at that moment has an unknown outcome, so idle connections are closed
    # before the server does it.
    timeout = httpx2.Timeout(answer_s, connect=min(answer_s, FORGE_CONNECT_S))
    http = create_http_client(ca_bundle, timeout, FORGE_IDLE_S)
    return GitLabConnection(http, url, WRITE_POLICY, _HEADERS, answer_s, sleep=sleep, now=now)


class GitLabWriteClient:
    """Send requests as one project's bot. A `path` is below /api/v4; `what` begins an error sentence: "The thread"."""

    def __init__(self, connection: GitLabConnection, token: OrchestratorToken, project: str) -> None:
        self._client = GitLabHttpClient(connection, token)
        self._project = project

    async def get(self, what: str, path: str, params: Params | None = None) -> GitLabResponse:
        """Send a GET request.

        Raises GitLabNotFound, GitLabRequestRefused, GitLabUnavailable, CredentialRefused.
        """
        return await self._send(GitLabRequest(what, "GET", path, params or {}, max_bytes=FORGE_JSON_BYTES))

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
        return await self._send(
            GitLabRequest(what, method, path, body=body, repeatable=False, max_bytes=FORGE_JSON_BYTES)
        )

    async def write_idempotent(
        self, what: str, method: str, path: str, body: dict[str, Any] | None = None, *, fine: tuple[int, ...] = ()
    ) -> GitLabResponse:
        """Send a write that may be repeated without further effect. Raises like `write`.

        A refusal with a status in `fine` is returned instead of raised.
        """
        request = GitLabRequest(what, method, path, body=body, max_bytes=FORGE_JSON_BYTES)
        return await self._send(request, fine)

    async def _send(self, asked: GitLabRequest, fine: tuple[int, ...] = ()) -> GitLabResponse:
        try:
            raw = await self._client.send(asked)
        except RequestFailed as failed:
            raise _failure_error(asked, failed) from (None if failed.kind is FailureKind.UNSENDABLE else failed)
        answer = GitLabResponse(asked.what, raw.status, raw.headers, raw.body)
        if answer.status < 300:
            return answer
        if answer.status == 429:
            raise api_response.busy_error(asked)
        if answer.status in (408, 425) or answer.status >= 500:
            raise api_response.uncertain_error(asked, f"it failed with status {answer.status}")
        error = api_response.refusal_error(asked, answer, self._project)
        if answer.status in fine and isinstance(error, GitLabWriteError):
            return answer
        raise error


def _failure_error(asked: GitLabRequest, failed: RequestFailed) -> HummingbirdError:
    match failed.kind:
        case FailureKind.UNTRUSTED:
            return api_response.certificate_error(asked)
        case FailureKind.NOT_SENT:
            return api_response.unreachable_error(asked, f"it cannot be reached ({failed.reason})")
        case FailureKind.INVALID_ADDRESS:
            return api_response.invalid_address_error(failed.reason)
        case FailureKind.SILENT:
            return api_response.uncertain_error(asked, "it did not answer in time")
        case FailureKind.UNSENDABLE:
            return api_response.uncertain_error(asked, "the request could not be encoded")
        case FailureKind.TOO_LARGE:
            why = f"its answer is larger than {FORGE_JSON_BYTES} bytes"
            if not asked.is_write:
                return GitLabRequestRefused(f"{asked.what} was not read: {why}.")
            return api_response.uncertain_error(asked, why)
        case _:
            return api_response.uncertain_error(asked, f"the connection broke ({failed.reason})")
