"""The two doors to Testing Farm: its API, which the operator configured, and artifacts, which somebody else's words may
lead to and which are read only below the allowed addresses (D6, D7).

Opens nothing before it is asked. Knows requests and addresses, not what stands in a report or a log.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from urllib.parse import quote, urljoin

import httpx2

from hummingbird.adapters.sources.http.allowed import Allowed, shown, site
from hummingbird.adapters.sources.http.answer import Answer, Refused
from hummingbird.adapters.sources.http.network import Resolve, guarded_client, operator_client
from hummingbird.adapters.sources.http.reader import Reader
from hummingbird.adapters.sources.http.urls import Odd, taken_apart
from hummingbird.adapters.sources.testing_farm.request import FarmRequest, read_request
from hummingbird.adapters.sources.testing_farm.settings import TestingFarmSettings
from hummingbird.domain.errors import (
    ArgumentsInvalid,
    CallDenied,
    CredentialRefused,
    NothingThere,
    SourceRefused,
    UsageFault,
)
from hummingbird.domain.limits import FARM_REQUEST_BYTES

Sleep = Callable[[float], Awaitable[object]]
_MISSING = frozenset({401, 403, 404, 410})  # object stores say 403 for what is not there


class Farm:
    """Raises UsageFault for addresses that are none. The other arguments are there for tests."""

    def __init__(
        self,
        settings: TestingFarmSettings,
        *,
        sleep: Sleep = asyncio.sleep,
        now: Callable[[], float] = time.time,
        resolve: Resolve | None = None,
    ) -> None:
        self._settings = settings
        self._api = _api(settings.api_url)
        self._sleep, self._now, self._resolve = sleep, now, resolve
        self._clients: list[httpx2.AsyncClient] = []
        self._api_reader: Reader | None = None
        self._artifacts_reader: Reader | None = None
        self.allowed = Allowed(settings.artifacts, settings.private_addresses)

    async def request(self, request_id: str) -> FarmRequest:
        """Raises NothingThere, CredentialRefused and what a Reader raises."""
        id_ = request_id.lower()
        url = f"{self._api}/v0.1/requests/{quote(id_, safe='')}"
        try:
            async with self._asking().open(url, headers=self._headers(), most_bytes=FARM_REQUEST_BYTES) as answer:
                return read_request(id_, await answer.content())
        except Refused as refused:
            raise self._refusal(id_, refused) from refused

    def folder(self, request: FarmRequest) -> str:
        """Where the artifacts of a request are, with a slash at its end. Raises SourceRefused for one that is not on
        the allow-list, NothingThere for one that has not begun."""
        if not request.artifacts:
            when = "names no artifacts" if request.ended else "has no artifacts yet"
            then = "Look at its summary." if request.ended else "Ask again once it runs."
            raise NothingThere(f"Request {request.id} {when}: {request.standing}. {then}")
        try:
            admitted = self.allowed.admits(request.artifacts)
        except CallDenied as denied:
            raise SourceRefused(
                f"Request {request.id} keeps its artifacts at {site(request.artifacts)}, in a place that is not below "
                f"{' or '.join(self.allowed.bases) or 'any allowed address'}: the operator can add it to `artifacts` "
                "in the settings of testing_farm."
            ) from denied
        return admitted if admitted.endswith("/") else admitted + "/"

    async def address(self, url: str, request_id: str) -> str:
        """Of what the model wants to read. Raises ArgumentsInvalid, CallDenied, and like `request` and `folder`."""
        if "://" in url:
            return self.allowed.admits(url)
        if not request_id:
            raise ArgumentsInvalid(
                f"{shown(url)} is no whole address: give the whole one, or the request_id whose results.xml names it."
            )
        try:
            whole = urljoin(self.folder(await self.request(request_id)), url)
        except ValueError as error:
            raise ArgumentsInvalid(f"{shown(url)} is no address: copy it from results.xml as it is.") from error
        return self.allowed.admits(whole)

    async def opened(self, stack: AsyncExitStack, url: str, most_bytes: int) -> Answer:
        """An artifact, open as long as `stack` is. Raises NothingThere, CallDenied and what a Reader raises."""
        try:
            return await stack.enter_async_context(self._reading().open(url, most_bytes=most_bytes))
        except Refused as refused:
            if refused.status not in _MISSING:
                raise
            raise NothingThere(
                f"There is nothing at {shown(url)} that may be read ({refused.status}): take an address from "
                "results.xml, or ask for the folder above it."
            ) from refused

    async def close(self) -> None:
        """May be called twice."""
        clients, self._clients = self._clients, []
        self._api_reader = self._artifacts_reader = None
        for client in clients:
            await client.aclose()

    def _asking(self) -> Reader:
        if self._api_reader is None:
            client = operator_client(self._settings.ca_bundle)
            self._clients.append(client)
            self._api_reader = Reader(client, sleep=self._sleep, now=self._now)
        return self._api_reader

    def _reading(self) -> Reader:
        if self._artifacts_reader is None:
            private, ca_bundle = self._settings.private_addresses, self._settings.ca_bundle
            client = guarded_client(private=private, ca_bundle=ca_bundle, resolve=self._resolve)
            self._clients.append(client)
            self._artifacts_reader = Reader(client, admits=self.allowed.admits, sleep=self._sleep, now=self._now)
        return self._artifacts_reader

    def _headers(self) -> dict[str, str]:
        token = self._settings.token
        return {"Accept": "application/json"} | ({"Authorization": f"Bearer {token.reveal()}"} if token else {})

    def _refusal(self, request_id: str, refused: Refused) -> Exception:
        if refused.status in {404, 410}:
            return NothingThere(
                f"Testing Farm knows no request {request_id}: take its id from the link in a commit status or job log."
            )
        if refused.status in {401, 403}:
            what = "refuses the token" if self._settings.token else "wants a token"
            return CredentialRefused(
                f"Testing Farm {what} ({refused.status}): set the token of testing_farm to one that may read requests."
            )
        return refused


def _api(url: str) -> str:
    try:
        return str(taken_apart(url)).removesuffix("/").removesuffix("/v0.1")
    except Odd as odd:
        raise UsageFault(f"The api_url {shown(url)} {odd}: write it like https://api.testing-farm.io.") from odd
