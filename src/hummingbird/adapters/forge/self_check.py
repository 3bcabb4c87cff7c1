"""Questions that `doctor` asks of GitLab with the token that writes: is it there, whose is the token, what may it do?

Reads only, tries nothing twice, and follows nobody to another place: the token goes to the configured address alone.
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

from hummingbird.domain.errors import (
    CredentialRefused,
    ForgeDown,
    ForgeMissing,
    ForgeRefused,
    HummingbirdError,
    MissingSetting,
)
from hummingbird.domain.limits import DOCTOR_ANSWER_BYTES, DOCTOR_ANSWER_S, SOURCE_CONNECT_S
from hummingbird.domain.text import shortened
from hummingbird.domain.token_facts import TokenFacts, token_facts
from hummingbird.ports.forge import OrchestratorToken

_WRONG = "check settings.gitlab_url"


@dataclass(frozen=True, slots=True)
class Reached:
    """`at`: seconds since the epoch by GitLab's clock; None if it does not say."""

    at: float | None


@dataclass(frozen=True, slots=True)
class HookSeen:
    url: str
    events: frozenset[str]
    resting: bool


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    body: Any


class SelfCheck:
    """An async context manager. `url` is GitLab's address, without /api. Raises MissingSetting for certificates or
    proxies that cannot be used."""

    def __init__(self, url: str, ca_bundle: str = "") -> None:
        self._url = url.rstrip("/")
        self._client = _client(ca_bundle)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def reached(self) -> Reached:
        """Whether a GitLab answers there at all; nobody signs in. Raises ForgeDown, ForgeRefused."""
        answer = await self._ask("/version")
        if answer.status not in (200, 401) or not isinstance(answer.body, Mapping):
            raise ForgeRefused(f"{self._host} answers with status {answer.status}, but not as a GitLab does: {_WRONG}.")
        return Reached(_clock(answer.headers.get("date", "")))

    async def token(self, token: OrchestratorToken) -> TokenFacts:
        """Raises CredentialRefused, ForgeRefused, ForgeDown, MissingSetting."""
        answer = await self._ask("/personal_access_tokens/self", token)
        facts = token_facts(self._wanted(answer))
        if facts is None:
            raise ForgeRefused(f"{self._host} does not say what the token may do: use a personal or project one.")
        return facts

    async def role(self, token: OrchestratorToken, project: str, user_id: int) -> int:
        """The token's level in the project, 0 for no member. Raises ForgeMissing if the project cannot be seen."""
        place = f"/projects/{quote(project, safe='')}"
        self._wanted(await self._ask(place, token))
        answer = await self._ask(f"{place}/members/all/{user_id}", token)
        if answer.status == 404:
            return 0
        level = self._wanted(answer)
        return int(level["access_level"]) if isinstance(level, dict) and "access_level" in level else 0

    async def hooks(self, token: OrchestratorToken, project: str) -> tuple[HookSeen, ...] | None:
        """The project's webhooks; None if the token's role may not see them."""
        answer = await self._ask(f"/projects/{quote(project, safe='')}/hooks?per_page=100", token)
        if answer.status in (401, 403, 404):
            return None
        found = self._wanted(answer)
        return tuple(_hook(one) for one in found if isinstance(one, Mapping)) if isinstance(found, list) else ()

    async def reactions(self, token: OrchestratorToken, project: str) -> bool:
        """Whether those of a merge request could be read; False if there is none to try it on. Raises as `role`."""
        place = f"/projects/{quote(project, safe='')}/merge_requests"
        found = self._wanted(await self._ask(f"{place}?state=all&per_page=1", token))
        first = found[0] if isinstance(found, list) and found else None
        iid = first.get("iid") if isinstance(first, Mapping) else None
        if not isinstance(iid, int):
            return False
        self._wanted(await self._ask(f"{place}/{iid:d}/award_emoji?per_page=1", token))
        return True

    @property
    def _host(self) -> str:
        return urlsplit(self._url).netloc

    async def _ask(self, path: str, token: OrchestratorToken | None = None) -> _Answer:
        headers = {"accept": "application/json", "user-agent": "hummingbird"}
        if token is not None:
            headers["private-token"] = _sendable(token)
        with self._translated():
            async with self._client.stream("GET", f"{self._url}/api/v4{path}", headers=headers) as answer:
                body = b""
                async for piece in answer.aiter_bytes():
                    body += piece
                    if len(body) > DOCTOR_ANSWER_BYTES:
                        raise ForgeRefused(f"{self._host} answers with more than any GitLab does: {_WRONG}.")
                return _Answer(answer.status_code, answer.headers, _json(body))

    def _wanted(self, answer: _Answer) -> Any:
        """What was asked for. Raises CredentialRefused, ForgeMissing, ForgeRefused, ForgeDown."""
        if answer.status == 200:
            return answer.body
        raise self._refusal(answer)

    def _refusal(self, answer: _Answer) -> HummingbirdError:
        status = answer.status
        if status == 401:
            return CredentialRefused(
                f"{self._host} says that the token is invalid, expired or revoked: make a new one."
            )
        if status == 403:
            return CredentialRefused(f"{self._host} does not let this token ask: give it the scope api.")
        if status == 404:
            return ForgeMissing("the project does not exist, or the token may not see it")
        if 300 <= status < 400:
            place = shortened(urlsplit(answer.headers.get("location", "")).netloc, 100)
            return ForgeRefused(
                f"{self._host} sends on to {place or 'another place'}: write the last address there is."
            )
        if status >= 500 or status == 429:
            return ForgeDown(f"{self._host} fails with status {status}: try again later.")
        return ForgeRefused(f"{self._host} answers with status {status}: {_WRONG}.")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Foreign errors become ours; none of their texts is passed on, for they may quote a header."""
        try:
            yield
        except httpx2.TimeoutException as error:
            raise ForgeDown(f"{self._host} does not answer in time: {_WRONG} and the network.") from error
        except httpx2.HTTPError as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise ForgeDown(
                    f"The certificate of {self._host} is not trusted: set settings.ca_bundle to your authority's."
                ) from error
            raise ForgeDown(f"{self._host} cannot be reached: {_WRONG}, the network and the proxy.") from error
        except (httpx2.InvalidURL, UnicodeError) as error:
            raise ForgeRefused(f"settings.gitlab_url is no address that can be asked: {_WRONG}.") from error


def _client(ca_bundle: str) -> httpx2.AsyncClient:
    """Proxies are the environment's."""
    patience = httpx2.Timeout(DOCTOR_ANSWER_S, connect=SOURCE_CONNECT_S)
    try:
        return httpx2.AsyncClient(verify=_trusted(ca_bundle), follow_redirects=False, timeout=patience)
    except (ImportError, ValueError, httpx2.InvalidURL):
        raise MissingSetting(
            "HTTP_PROXY, HTTPS_PROXY or ALL_PROXY is no proxy that can be used: write it like "
            "http://proxy.example:3128, or unset it."
        ) from None


def _trusted(ca_bundle: str) -> ssl.SSLContext | bool:
    try:
        return ssl.create_default_context(cafile=ca_bundle) if ca_bundle else True
    except OSError as error:
        raise MissingSetting(f"settings.ca_bundle, {ca_bundle!r}, cannot be read: set it to a PEM file.") from error


def _sendable(token: OrchestratorToken) -> str:
    value = token.reveal()
    if value.isascii() and value.isprintable() and " " not in value:
        return value
    raise MissingSetting("The token holds characters that no token has: copy it again.")


def _json(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _clock(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None


def _hook(raw: Mapping[str, Any]) -> HookSeen:
    events = frozenset(key for key, value in raw.items() if key.endswith("_events") and value is True)
    return HookSeen(str(raw.get("url", "")), events, raw.get("alert_status", "executable") != "executable")
