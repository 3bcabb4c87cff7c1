"""Check GitLab and the write token for `doctor`: is it reachable, whose is the token, what may it do?

It only reads, without retries, and follows no redirects: the token goes only to the configured address.
"""

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlsplit

import httpx2
import msgspec

from hummingbird.core.errors import (
    CredentialRefused,
    GitLabNotFound,
    GitLabRequestRefused,
    GitLabUnavailable,
    HummingbirdError,
    MissingSetting,
)
from hummingbird.core.limits import DOCTOR_ANSWER_BYTES, DOCTOR_ANSWER_S, SOURCE_CONNECT_S
from hummingbird.core.text import shorten_line
from hummingbird.gitlab.access import TokenFacts, parse_token_facts
from hummingbird.gitlab.write.protocol import OrchestratorToken

_CHECK_URL = "check settings.gitlab_url"


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
        self._url = url.rstrip("/")
        self._client = _create_client(ca_bundle)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

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
        return urlsplit(self._url).netloc

    async def _get(self, path: str, token: OrchestratorToken | None = None) -> _SelfCheckResponse:
        headers = {"accept": "application/json", "user-agent": "hummingbird"}
        if token is not None:
            headers["private-token"] = _check_token(token)
        with self._translate_errors():
            async with self._client.stream("GET", f"{self._url}/api/v4{path}", headers=headers) as answer:
                body = b""
                async for piece in answer.aiter_bytes():
                    body += piece
                    if len(body) > DOCTOR_ANSWER_BYTES:
                        raise GitLabRequestRefused(
                            f"{self._host} answers with more than any GitLab does: {_CHECK_URL}."
                        )
                return _SelfCheckResponse(answer.status_code, answer.headers, _decode_json(body))

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

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Translate the HTTP client's errors without their texts, which may quote a header."""
        try:
            yield
        except httpx2.TimeoutException as error:
            raise GitLabUnavailable(f"{self._host} does not answer in time: {_CHECK_URL} and the network.") from error
        except httpx2.HTTPError as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise GitLabUnavailable(
                    f"The certificate of {self._host} is not trusted: set settings.ca_bundle to your authority's."
                ) from error
            raise GitLabUnavailable(
                f"{self._host} cannot be reached: {_CHECK_URL}, the network and the proxy."
            ) from error
        except (httpx2.InvalidURL, UnicodeError) as error:
            raise GitLabRequestRefused(f"settings.gitlab_url is not a usable address: {_CHECK_URL}.") from error


def _create_client(ca_bundle: str) -> httpx2.AsyncClient:
    """Create the HTTP client; proxies come from the environment."""
    patience = httpx2.Timeout(DOCTOR_ANSWER_S, connect=SOURCE_CONNECT_S)
    try:
        return httpx2.AsyncClient(verify=_tls_context(ca_bundle), follow_redirects=False, timeout=patience)
    except (ImportError, ValueError, httpx2.InvalidURL):
        raise MissingSetting(
            "HTTP_PROXY, HTTPS_PROXY or ALL_PROXY is no proxy that can be used: write it like "
            "http://proxy.example:3128, or unset it."
        ) from None


def _tls_context(ca_bundle: str) -> ssl.SSLContext | bool:
    try:
        return ssl.create_default_context(cafile=ca_bundle) if ca_bundle else True
    except OSError as error:
        raise MissingSetting(f"settings.ca_bundle, {ca_bundle!r}, cannot be read: set it to a PEM file.") from error


def _check_token(token: OrchestratorToken) -> str:
    value = token.reveal()
    if value.isascii() and value.isprintable() and " " not in value:
        return value
    raise MissingSetting("The token holds characters that no token has: copy it again.")


def _decode_json(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _parse_http_date(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None


def _parse_hook(raw: Mapping[str, Any]) -> WebhookInfo:
    events = frozenset(key for key, value in raw.items() if key.endswith("_events") and value is True)
    return WebhookInfo(str(raw.get("url", "")), events, raw.get("alert_status", "executable") != "executable")
