"""Check GitLab and the write token for `doctor`: is it reachable, whose is the token, what may it do?

It only reads, without retries, and follows no redirects: the token goes only to the configured address.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlsplit

import httpx2

from hummingbird.core.errors import (
    CredentialRefused,
    GitLabNotFound,
    GitLabRequestRefused,
    GitLabUnavailable,
    HummingbirdError,
    MissingSetting,
)
from hummingbird.core.json_codec import InvalidJson, decode_lenient_json
from hummingbird.core.limits import DOCTOR_ANSWER_BYTES, DOCTOR_ANSWER_S, SOURCE_CONNECT_S
from hummingbird.core.text import shorten_line
from hummingbird.gitlab.access import TokenFacts, parse_token_facts
from hummingbird.gitlab.http_client import (
    FailureKind,
    GitLabConnection,
    GitLabHttpClient,
    GitLabRequest,
    RequestFailed,
    RetryPolicy,
    create_http_client,
)
from hummingbird.gitlab.write.protocol import OrchestratorToken

_CHECK_URL = "check settings.gitlab_url"
_NO_RETRIES = RetryPolicy(attempts=1, silent_attempts=1, first_pause_s=0, longest_pause_s=0, total_pause_s=0)
_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "hummingbird"}


@dataclass(frozen=True, slots=True)
class GitLabServerClock:
    """The time by GitLab's clock in seconds since the epoch; None if the response does not say."""

    server_time: float | None


@dataclass(frozen=True, slots=True)
class WebhookInfo:
    """A webhook of a project; GitLab disables one that fails too often."""

    url: str
    events: frozenset[str]
    is_disabled: bool


@dataclass(frozen=True, slots=True)
class _SelfCheckResponse:
    status: int
    headers: Mapping[str, str]
    body: Any


class GitLabSelfCheck:
    """Ask GitLab for what `doctor` reports; an async context manager.

    `url` is GitLab's address, without /api. Raises MissingSetting for certificates or proxies that cannot be used.
    """

    def __init__(self, url: str, ca_bundle: str = "") -> None:
        timeout = httpx2.Timeout(DOCTOR_ANSWER_S, connect=SOURCE_CONNECT_S)
        http = create_http_client(ca_bundle, timeout, DOCTOR_ANSWER_S)
        self._connection = GitLabConnection(http, url, _NO_RETRIES, _HEADERS)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._connection.http.aclose()

    async def check_reachable(self) -> GitLabServerClock:
        """Check, without a token, that a GitLab answers at the address; return its time.

        Raises GitLabUnavailable, GitLabRequestRefused.
        """
        answer = await self._get("/version")
        if answer.status not in (200, 401) or not isinstance(answer.body, Mapping):
            raise GitLabRequestRefused(
                f"{self._host} answers with status {answer.status}, but not as a GitLab does: {_CHECK_URL}."
            )
        return GitLabServerClock(_parse_http_date(answer.headers.get("date", "")))

    async def read_token_facts(self, token: OrchestratorToken) -> TokenFacts:
        """Return what GitLab says about the token.

        Raises CredentialRefused, GitLabRequestRefused, GitLabUnavailable, MissingSetting.
        """
        answer = await self._get("/personal_access_tokens/self", token)
        facts = parse_token_facts(self._require_ok(answer))
        if facts is None:
            raise GitLabRequestRefused(
                f"{self._host} does not say what the token may do: use a personal or project one."
            )
        return facts

    async def read_role(self, token: OrchestratorToken, project: str, user_id: int) -> int:
        """Return the user's level in the project, 0 for somebody who is not a member.

        Raises GitLabNotFound if the token may not see the project.
        """
        place = f"/projects/{quote(project, safe='')}"
        self._require_ok(await self._get(place, token))
        answer = await self._get(f"{place}/members/all/{user_id}", token)
        if answer.status == 404:
            return 0
        level = self._require_ok(answer)
        return int(level["access_level"]) if isinstance(level, dict) and "access_level" in level else 0

    async def list_hooks(self, token: OrchestratorToken, project: str) -> tuple[WebhookInfo, ...] | None:
        """Return the project's webhooks; None if the token's role may not see them."""
        answer = await self._get(f"/projects/{quote(project, safe='')}/hooks?per_page=100", token)
        if answer.status in (401, 403, 404):
            return None
        found = self._require_ok(answer)
        return tuple(_parse_hook(one) for one in found if isinstance(one, Mapping)) if isinstance(found, list) else ()

    async def can_read_reactions(self, token: OrchestratorToken, project: str) -> bool:
        """Return whether the emoji of a merge request could be read; False if the project has no merge request.

        Raises like `read_role`.
        """
        place = f"/projects/{quote(project, safe='')}/merge_requests"
        found = self._require_ok(await self._get(f"{place}?state=all&per_page=1", token))
        first = found[0] if isinstance(found, list) and found else None
        iid = first.get("iid") if isinstance(first, Mapping) else None
        if not isinstance(iid, int):
            return False
        self._require_ok(await self._get(f"{place}/{iid:d}/award_emoji?per_page=1", token))
        return True

    @property
    def _host(self) -> str:
        return urlsplit(self._connection.url).netloc

    async def _get(self, path: str, token: OrchestratorToken | None = None) -> _SelfCheckResponse:
        client = GitLabHttpClient(self._connection, _check_token(token))
        try:
            answer = await client.send(GitLabRequest("GitLab", "GET", path, max_bytes=DOCTOR_ANSWER_BYTES))
        except RequestFailed as failed:
            raise self._failure_error(failed) from failed
        try:
            body = decode_lenient_json(answer.body)
        except InvalidJson:
            body = None
        return _SelfCheckResponse(answer.status, answer.headers, body)

    def _require_ok(self, answer: _SelfCheckResponse) -> Any:
        """Return the body of a response with status 200.

        Raises CredentialRefused, GitLabNotFound, GitLabRequestRefused, GitLabUnavailable.
        """
        if answer.status == 200:
            return answer.body
        raise self._refusal_error(answer)

    def _refusal_error(self, answer: _SelfCheckResponse) -> HummingbirdError:
        status = answer.status
        if status == 401:
            return CredentialRefused(
                f"{self._host} says that the token is invalid, expired or revoked: make a new one."
            )
        if status == 403:
            return CredentialRefused(f"{self._host} does not let this token ask: give it the scope api.")
        if status == 404:
            return GitLabNotFound("the project does not exist, or the token may not see it")
        if 300 <= status < 400:
            place = shorten_line(urlsplit(answer.headers.get("location", "")).netloc, 100)
            return GitLabRequestRefused(
                f"{self._host} redirects to {place or 'another address'}: set settings.gitlab_url to the final address."
            )
        if status >= 500 or status == 429:
            return GitLabUnavailable(f"{self._host} fails with status {status}: try again later.")
        return GitLabRequestRefused(f"{self._host} answers with status {status}: {_CHECK_URL}.")

    def _failure_error(self, failed: RequestFailed) -> HummingbirdError:
        """Return the error for a missing response, without the HTTP client's text, which may quote a header."""
        match failed.kind:
            case FailureKind.TOO_LARGE:
                return GitLabRequestRefused(f"{self._host} answers with more than any GitLab does: {_CHECK_URL}.")
            case FailureKind.UNTRUSTED:
                return GitLabUnavailable(
                    f"The certificate of {self._host} is not trusted: set settings.ca_bundle to your authority's."
                )
            case FailureKind.INVALID_ADDRESS:
                return GitLabRequestRefused(f"settings.gitlab_url is not a usable address: {_CHECK_URL}.")
            case _ if failed.silent:
                return GitLabUnavailable(f"{self._host} does not answer in time: {_CHECK_URL} and the network.")
            case _:
                return GitLabUnavailable(f"{self._host} cannot be reached: {_CHECK_URL}, the network and the proxy.")


def _check_token(token: OrchestratorToken | None) -> OrchestratorToken | None:
    value = token.reveal() if token is not None else ""
    if value.isascii() and (not value or value.isprintable()) and " " not in value:
        return token
    raise MissingSetting("The token holds characters that no token has: copy it again.")


def _parse_http_date(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None


def _parse_hook(raw: Mapping[str, Any]) -> WebhookInfo:
    events = frozenset(key for key, value in raw.items() if key.endswith("_events") and value is True)
    return WebhookInfo(str(raw.get("url", "")), events, raw.get("alert_status", "executable") != "executable")
