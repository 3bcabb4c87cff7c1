"""Reads test requests from Testing Farm's API, and artifacts from the allowed addresses.

The operator configured the API's address, but an artifact's address may come from an outsider, so artifacts are read
only below the allowed addresses. Any field of an answer may be missing. Variables and secrets of test environments are
never read.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urljoin

import httpx2
import msgspec

from hummingbird.clients.address_policy import UnusualUrlError, UrlAllowList, describe_site, parse_url, printable_url
from hummingbird.clients.network_guard import Resolve, create_guarded_client, create_operator_client
from hummingbird.clients.url_fetch import FetchedResponse, FetchRefused, UrlFetcher
from hummingbird.core.errors import (
    ArgumentsInvalid,
    CallDenied,
    CredentialRefused,
    SourceError,
    SourceNotFound,
    SourceRefused,
    SourceResponseInvalid,
    UsageError,
)
from hummingbird.core.json_codec import InvalidJson, decode_json, decode_json_as
from hummingbird.core.limits import (
    FARM_ENVIRONMENTS,
    FARM_ENVIRONMENTS_BYTES,
    FARM_FIELD_CHARS,
    FARM_PART_BYTES,
    FARM_REQUEST_BYTES,
    STATUS_CHARS,
    URL_CHARS,
)
from hummingbird.core.text import replace_surrogates, shorten_line
from hummingbird.testing_farm import TestingFarmSettings

_WORD = re.compile(r"[a-z]+(?:-[a-z]+)?")
_ENDED = frozenset({"complete", "error", "canceled"})
_KINDS = ("fmf", "script", "sti")
_DECODED_SEPARATELY = ("result", "environments_requested")
_NULL = msgspec.Raw(b"null")
_USER = re.compile(r"(?<=://)[^/@\s]*@")


class _FarmApiResponse(msgspec.Struct):
    state: msgspec.Raw = _NULL
    result: msgspec.Raw = _NULL
    run: msgspec.Raw = _NULL
    test: msgspec.Raw = _NULL
    environments_requested: msgspec.Raw = _NULL
    created: msgspec.Raw = _NULL
    updated: msgspec.Raw = _NULL
    queued_time: msgspec.Raw = _NULL
    run_time: msgspec.Raw = _NULL


class _FarmApiResult(msgspec.Struct):
    overall: msgspec.Raw = _NULL
    summary: msgspec.Raw = _NULL
    xunit: msgspec.Raw = _NULL
    xunit_url: msgspec.Raw = _NULL


@dataclass(frozen=True, slots=True)
class FarmRequest:
    """A test request.

    Attributes:
        artifacts: Address of the artifacts; empty before the run begins.
        xunit: The report itself, which old answers of the API contain.
        fields_for_model: What the model is told about the request.
    """

    id: str
    state: str
    overall: str
    summary: str
    artifacts: str
    xunit: str
    xunit_url: str
    fields_for_model: Mapping[str, Any]

    @property
    def has_ended(self) -> bool:
        return self.state in _ENDED

    @property
    def state_text(self) -> str:
        """The state for a message of ours, limited to words that Testing Farm uses."""
        overall = f", overall result {self.overall}" if _WORD.fullmatch(self.overall) else ""
        return f"its state is {self.state if _WORD.fullmatch(self.state) else 'unknown'}{overall}"


def parse_request(request_id: str, content: bytes) -> FarmRequest:
    """Parse an answer of the API. Raises SourceResponseInvalid if it is not a JSON object."""
    try:
        raw, result = _decode_parts(content)
    except InvalidJson as error:
        raise _not_a_request_error() from error
    run = _object_or_empty(raw, "run")
    return FarmRequest(
        id=request_id,
        state=_short_line(raw.get("state")),
        overall=_short_line(result.get("overall")),
        summary=_short_line(result.get("summary"), STATUS_CHARS),
        artifacts=_url_or_empty(run.get("artifacts")),
        xunit=_xml_or_empty(result.get("xunit")),
        xunit_url=_url_or_empty(result.get("xunit_url")),
        fields_for_model=dict(_iter_model_fields(request_id, raw, result, run)),
    )


def _decode_parts(content: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Decode the parts of an answer that we use, and of its result.

    The rest is skipped: decoding everything that somebody may have put into a request could block the event loop for
    seconds.
    """
    parts = decode_json_as(content, _FarmApiResponse)
    result = bytes(parts.result)
    within = decode_json_as(result, _FarmApiResult) if result.startswith(b"{") else _FarmApiResult()
    raw = {
        name: _decode_part(getattr(parts, name))
        for name in _FarmApiResponse.__struct_fields__
        if name not in _DECODED_SEPARATELY
    }
    raw["environments"] = _decode_objects(bytes(parts.environments_requested))
    return raw, {name: _decode_part(getattr(within, name)) for name in _FarmApiResult.__struct_fields__}


def _decode_objects(part: bytes) -> list[msgspec.Raw]:
    sound = part.startswith(b"[") and len(part) <= FARM_ENVIRONMENTS_BYTES
    listed = decode_json_as(part, list[msgspec.Raw]) if sound else []
    return [each for each in listed if bytes(each).startswith(b"{")]


def _decode_part(part: msgspec.Raw) -> Any:
    """Decode a part; return None if it is longer than it should be. Strings may be long, because a report is one."""
    text = bytes(part)
    return decode_json(text) if len(text) <= FARM_PART_BYTES or text.startswith(b'"') else None


def _iter_model_fields(request_id: str, raw: Any, result: Any, run: Any) -> Iterator[tuple[str, Any]]:
    yield "request_id", request_id
    yield "state", _short_line(raw.get("state")) or None
    yield "overall", _short_line(result.get("overall")) or None
    yield "summary", _short_line(result.get("summary"), STATUS_CHARS) or None
    for name in ("queued_time", "run_time"):
        if isinstance(raw.get(name), int | float) and not isinstance(raw[name], bool):
            yield f"{name}_s", raw[name]
    for name in ("created", "updated"):
        if when := _short_line(raw.get(name)):
            yield name, when
    yield "artifacts", _url_or_empty(run.get("artifacts")) or None
    if test := _describe_test(_object_or_empty(raw, "test")):
        yield "test", test
    yield from _iter_environment_fields(raw["environments"])


def _describe_test(test: Any) -> dict[str, str]:
    for kind in _KINDS:
        if found := _object_or_empty(test, kind):
            fields = {name: _short_line(found.get(name)) for name in ("url", "ref", "path", "name")}
            return {"kind": kind, **{name: _USER.sub("", value) for name, value in fields.items() if value}}
    return {}


def _iter_environment_fields(given: list[msgspec.Raw]) -> Iterator[tuple[str, Any]]:
    if given:
        yield "environments", [_describe_environment(_decode_part(each) or {}) for each in given[:FARM_ENVIRONMENTS]]
    if len(given) > FARM_ENVIRONMENTS:
        yield "environments_left_out", len(given) - FARM_ENVIRONMENTS


def _describe_environment(given: Any) -> dict[str, str | None]:
    return {
        "arch": _short_line(given.get("arch")) or None,
        "compose": _short_line(_object_or_empty(given, "os").get("compose")) or None,
    }


def _object_or_empty(given: Any, name: str) -> dict[str, Any]:
    found = given.get(name)
    return found if isinstance(found, dict) else {}


def _short_line(value: Any, chars: int = FARM_FIELD_CHARS) -> str:
    if not isinstance(value, str):
        return ""
    line = shorten_line(replace_surrogates(value), chars)
    return line if line.isprintable() else "".join(letter if letter.isprintable() else "�" for letter in line)


def _url_or_empty(value: Any) -> str:
    """Return the address as it is, since the allow-list checks it; an address that is too long counts as none."""
    return value.strip() if isinstance(value, str) and len(value) <= URL_CHARS else ""


def _xml_or_empty(value: Any) -> str:
    return value if isinstance(value, str) and value.lstrip().startswith("<") else ""


def _not_a_request_error() -> SourceResponseInvalid:
    return SourceResponseInvalid(
        "Testing Farm's answer is not a request: is api_url the address of its API, and nothing in between?"
    )


Sleep = Callable[[float], Awaitable[object]]
_MISSING = frozenset({401, 403, 404, 410})  # object stores answer 403 for what does not exist


class FarmClient:
    """Reads requests and artifacts; connects when first asked. Raises UsageError for invalid addresses.

    The arguments besides `settings` are for tests.
    """

    def __init__(
        self,
        settings: TestingFarmSettings,
        *,
        sleep: Sleep = asyncio.sleep,
        now: Callable[[], float] = time.time,
        resolve: Resolve | None = None,
    ) -> None:
        self._settings = settings
        self._api = _parse_api_url(settings.api_url)
        self._sleep, self._now, self._resolve = sleep, now, resolve
        self._clients: list[httpx2.AsyncClient] = []
        self._api_fetcher: UrlFetcher | None = None
        self._artifacts_fetcher: UrlFetcher | None = None
        self.allow_list = UrlAllowList(settings.artifacts, settings.private_addresses)

    async def get_request(self, request_id: str) -> FarmRequest:
        """Return a request. Raises SourceNotFound, CredentialRefused and what UrlFetcher raises."""
        id_ = request_id.lower()
        url = f"{self._api}/v0.1/requests/{quote(id_, safe='')}"
        try:
            async with self._get_api_fetcher().open(
                url, headers=self._headers(), most_bytes=FARM_REQUEST_BYTES
            ) as answer:
                return parse_request(id_, await answer.read_all())
        except FetchRefused as refused:
            raise self._error_from_refusal(id_, refused) from refused

    def artifacts_folder(self, request: FarmRequest) -> str:
        """Return the address of a request's artifacts, with a slash at its end.

        Raises SourceRefused if it is not on the allow-list, SourceNotFound if the request has not begun.
        """
        if not request.artifacts:
            when = "names no artifacts" if request.has_ended else "has no artifacts yet"
            then = "Look at its summary." if request.has_ended else "Ask again once it runs."
            raise SourceNotFound(f"Request {request.id} {when}: {request.state_text}. {then}")
        try:
            admitted = self.allow_list.admit(request.artifacts)
        except CallDenied as denied:
            raise SourceRefused(
                f"Request {request.id} keeps its artifacts at {describe_site(request.artifacts)}, in "
                "a place that is not below "
                f"{' or '.join(self.allow_list.bases) or 'any allowed address'}: the operator can add "
                "it to `artifacts` "
                "in the settings of testing_farm."
            ) from denied
        return admitted if admitted.endswith("/") else admitted + "/"

    @property
    def artifacts_base(self) -> str:
        """The address that links to artifacts begin with, as in `{artifacts_base}/{request_id}/`."""
        return next((base.rstrip("/") for base in self.allow_list.bases), "")

    def other_base(self, request: FarmRequest) -> str:
        """Return the base of a request whose artifacts are not below `artifacts_base`; empty for all others."""
        try:
            base, found, rest = self.artifacts_folder(request).rpartition(f"/{request.id}/")
        except SourceError:
            return ""
        return base if found and not rest and base != self.artifacts_base else ""

    async def artifact_url(self, url: str, request_id: str) -> str:
        """Return the address of what the model wants to read.

        Raises ArgumentsInvalid, CallDenied, and the same errors as `get_request` and `artifacts_folder`.
        """
        if "://" in url:
            return self.allow_list.admit(url)
        if not request_id:
            raise ArgumentsInvalid(
                f"{printable_url(url)} is not a whole address: give the whole one, or the request_id "
                "whose results.xml names it."
            )
        try:
            whole = urljoin(self.artifacts_folder(await self.get_request(request_id)), url)
        except ValueError as error:
            raise ArgumentsInvalid(
                f"{printable_url(url)} is not an address: copy it from results.xml as it is."
            ) from error
        return self.allow_list.admit(whole)

    async def open_artifact(self, stack: AsyncExitStack, url: str, most_bytes: int) -> FetchedResponse:
        """Open an artifact until `stack` closes. Raises SourceNotFound, CallDenied and what UrlFetcher raises."""
        try:
            return await stack.enter_async_context(self._get_artifacts_fetcher().open(url, most_bytes=most_bytes))
        except FetchRefused as refused:
            if refused.status not in _MISSING:
                raise
            raise SourceNotFound(
                f"There is nothing at {printable_url(url)} that may be read ({refused.status}): take an address from "
                "results.xml, or ask for the folder above it."
            ) from refused

    async def close(self) -> None:
        """Close all connections. May be called twice."""
        clients, self._clients = self._clients, []
        self._api_fetcher = self._artifacts_fetcher = None
        for client in clients:
            await client.aclose()

    def _get_api_fetcher(self) -> UrlFetcher:
        if self._api_fetcher is None:
            client = create_operator_client(self._settings.ca_bundle)
            self._clients.append(client)
            self._api_fetcher = UrlFetcher(client, sleep=self._sleep, now=self._now)
        return self._api_fetcher

    def _get_artifacts_fetcher(self) -> UrlFetcher:
        if self._artifacts_fetcher is None:
            client = create_guarded_client(
                private=self._settings.private_addresses,
                private_hosts=self._settings.private_hosts,
                ca_bundle=self._settings.ca_bundle,
                resolve=self._resolve,
            )
            self._clients.append(client)
            self._artifacts_fetcher = UrlFetcher(client, admits=self.allow_list.admit, sleep=self._sleep, now=self._now)
        return self._artifacts_fetcher

    def _headers(self) -> dict[str, str]:
        token = self._settings.token
        return {"Accept": "application/json"} | ({"Authorization": f"Bearer {token.reveal()}"} if token else {})

    def _error_from_refusal(self, request_id: str, refused: FetchRefused) -> Exception:
        if refused.status in {404, 410}:
            return SourceNotFound(
                f"Testing Farm knows no request {request_id}: take its id from the link in a commit status or job log."
            )
        if refused.status in {401, 403}:
            what = "refuses the token" if self._settings.token else "wants a token"
            return CredentialRefused(
                f"Testing Farm {what} ({refused.status}): set the token of testing_farm to one that may read requests."
            )
        return refused


def _parse_api_url(url: str) -> str:
    try:
        return str(parse_url(url)).removesuffix("/").removesuffix("/v0.1")
    except UnusualUrlError as odd:
        raise UsageError(f"The api_url {printable_url(url)} {odd}: write it like https://api.testing-farm.io.") from odd


_UNKNOWN_REQUEST_ID = "00000000-0000-4000-8000-000000000000"


async def check_api(settings: TestingFarmSettings) -> None:
    """Check for `hummingbird doctor` that the API answers, by asking for a request that does not exist.

    Raises UsageError, CredentialRefused, SourceError.
    """
    farm = FarmClient(settings)
    try:
        await farm.get_request(_UNKNOWN_REQUEST_ID)
    except SourceNotFound:
        pass  # the expected answer
    finally:
        await farm.close()
