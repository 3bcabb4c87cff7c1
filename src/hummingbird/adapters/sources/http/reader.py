"""Reads over HTTP, for sources (D8): one GET that is patient, bounded, and goes only where it may.

Redirects are followed by hand: each target is checked, and nothing that the caller sends along goes to another origin.
Only reads are made here, so every attempt may be repeated. Knows nothing of what is read.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TypeAlias
from urllib.parse import urljoin

import httpx2

from hummingbird.adapters.sources.http.allowed import shown, site
from hummingbird.adapters.sources.http.answer import BELOW, Answer, Refused, why
from hummingbird.adapters.sources.http.patience import passing, pause_s
from hummingbird.adapters.sources.http.unpacking import ACCEPTED
from hummingbird.domain.errors import CallDenied, CredentialRefused, SourceDown, SourceRefused
from hummingbird.domain.limits import (
    HTTP_REDIRECTS,
    HTTP_REFUSAL_BYTES,
    SOURCE_CONNECT_S,
    SOURCE_HEADERS_S,
    SOURCE_STALL_S,
)
from hummingbird.domain.retry_after import retry_after
from hummingbird.domain.text import shortened

Params: TypeAlias = Mapping[str, str | int]
_TIMEOUT = httpx2.Timeout(SOURCE_STALL_S, connect=SOURCE_CONNECT_S, pool=SOURCE_HEADERS_S)
_MOVED = frozenset({301, 302, 303, 307, 308})
_SILENT = (httpx2.TimeoutException, TimeoutError)
_TROUBLE = (httpx2.TransportError, *BELOW)
_TOO_LONG_S = 86_400.0  # a day: nobody in this run will ask again then
# All that goes to an origin other than the first; whatever else a client has been given stays at home
_HARMLESS = frozenset({"host", "accept", "accept-encoding", "user-agent", "connection"})


class Reader:
    """`admits` says which address is asked for in place of the one given or redirected to, or raises CallDenied or
    SourceRefused; without it the first address is the caller's own affair and redirects stay at its origin.
    `sleep` and `now` (the wall clock, for Retry-After as a date) are there for tests."""

    def __init__(
        self,
        client: httpx2.AsyncClient,
        *,
        admits: Callable[[str], str] | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._admits = admits
        self._sleep = sleep
        self._now = now

    @asynccontextmanager
    async def open(
        self, url: str, *, params: Params | None = None, headers: Mapping[str, str] | None = None, most_bytes: int
    ) -> AsyncIterator[Answer]:
        """The answer to a GET, if it is one (2xx). Raises Refused for what the source will not give, SourceDown for
        trouble that outlasted all attempts, what `admits` raises, and while the body is read what `Answer` says."""
        response = await self._followed(_address(self._checked(url), params), headers or {})
        try:
            if not response.is_success:
                raise await _refusal(response)
            yield Answer(response, most_bytes)
        finally:
            await _closed(response)

    async def _followed(self, first: httpx2.URL, headers: Mapping[str, str]) -> httpx2.Response:
        target = first
        for _ in range(HTTP_REDIRECTS + 1):
            response = await self._answered(self._request(target, first, headers))
            location = response.headers.get("location", "")
            if response.status_code not in _MOVED or not location:
                return response
            await _closed(response)
            target = self._onward(target, first, location)
        raise SourceRefused(
            f"The source sent the request from one address to the next more than {HTTP_REDIRECTS} times, last to "
            f"{site(str(target))}; give the address of the thing itself."
        )

    def _checked(self, url: str) -> str:
        return self._admits(url) if self._admits is not None else url

    def _onward(self, target: httpx2.URL, first: httpx2.URL, location: str) -> httpx2.URL:
        try:
            onward = urljoin(str(target), location)
        except ValueError as error:
            raise SourceRefused("The source redirects to what is no address; ask for something else.") from error
        try:
            address = _address(self._checked(onward))
        except CallDenied as denied:
            raise CallDenied(
                f"The source redirects to {site(onward)} or to a path that is not on the allow-list, so it was not "
                "followed: ask for something else."
            ) from denied
        if self._admits is None and _origin(address) != _origin(first):
            raise SourceRefused(
                f"The source redirects to another host ({site(onward)}), which is not followed: set its address to "
                "where it answers itself."
            )
        return address

    def _request(self, target: httpx2.URL, first: httpx2.URL, headers: Mapping[str, str]) -> httpx2.Request:
        at_home = _origin(target) == _origin(first)
        sent = {**(headers if at_home else {}), "Accept-Encoding": ACCEPTED}
        try:
            request = self._client.build_request("GET", target, headers=sent, timeout=_TIMEOUT)
        except UnicodeError:
            raise _unsendable() from None
        if not at_home:
            for name in set(request.headers) - _HARMLESS:
                del request.headers[name]
            request.extensions["elsewhere"] = True
        return request

    async def _answered(self, request: httpx2.Request) -> httpx2.Response:
        """Whatever the source answers, once it is no passing trouble any more."""
        attempt, waited = 0, 0.0
        while True:
            attempt += 1
            response, trouble = await self._tried(request)
            if trouble is None and response is not None and not passing(response.status_code):
                return response
            asked = retry_after(response.headers.get("retry-after", ""), self._now()) if response else None
            silent = isinstance(trouble, _SILENT)
            pause = pause_s(attempt, waited, asked, random.random(), silent=silent)  # noqa: S311 — no secret
            if pause is None:
                raise await _given_up(request, response, trouble, asked)
            if response is not None:
                await _closed(response)
            waited += pause
            await self._sleep(pause)

    async def _tried(self, request: httpx2.Request) -> tuple[httpx2.Response | None, Exception | None]:
        # a client's own credentials are for the first origin alone
        auth = None if "elsewhere" in request.extensions else httpx2.USE_CLIENT_DEFAULT
        if self._client.is_closed:
            raise SourceDown("The source was closed while it was read: nothing more can be asked for in this run.")
        try:
            async with asyncio.timeout(SOURCE_HEADERS_S):
                return await self._client.send(request, stream=True, auth=auth, follow_redirects=False), None
        except httpx2.LocalProtocolError:
            raise _unsendable() from None  # its text quotes the header
        except httpx2.UnsupportedProtocol as error:
            raise SourceRefused(f"{shown(str(request.url))} is no http or https address; mend it.") from error
        except _TROUBLE as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise SourceDown(
                    f"The certificate of {_host(request)} is not trusted: set ca_bundle to your authority's "
                    f"certificates ({why(error)})."
                ) from error
            return None, error


def _address(url: str, params: Params | None = None) -> httpx2.URL:
    try:
        address = httpx2.URL(url)
        return address.copy_merge_params(params) if params else address
    except (httpx2.InvalidURL, UnicodeError) as error:  # a source's own words may be parameters: how to read on
        raise SourceRefused(f"{shown(url)} and what is asked there make no web address; mend it.") from error


def _origin(url: httpx2.URL) -> tuple[str, bytes, int | None]:
    return url.scheme, url.raw_host, url.port


def _host(request: httpx2.Request) -> str:
    return shortened(request.url.host, 100)


def _unsendable() -> CredentialRefused:
    return CredentialRefused(
        "The credential for this source holds a line break, a control character or a letter that is not ASCII, so no "
        "request can carry it: copy it again."
    )


async def _given_up(
    request: httpx2.Request, response: httpx2.Response | None, trouble: Exception | None, asked_s: float | None
) -> SourceDown:
    if response is None:
        what = "did not answer in time" if isinstance(trouble, _SILENT) else "cannot be reached"
        down = SourceDown(
            f"{_host(request)} {what}, however often it was tried ({why(trouble or OSError())}). Ask again later."
        )
        down.__cause__ = trouble
        return down
    refusal = await _refusal(response)
    await _closed(response)
    again = f"in {asked_s:.0f} s" if asked_s and asked_s < _TOO_LONG_S else "later"
    down = SourceDown(f"{refusal} It was in trouble at each attempt: ask again {again}.")
    down.__cause__ = refusal
    return down


async def _refusal(response: httpx2.Response) -> Refused:
    body = await Answer(response, HTTP_REFUSAL_BYTES).beginning()
    sentence = f"{shortened(response.url.host, 100)} answered {response.status_code} {_phrase(response.status_code)}"
    return Refused(sentence.rstrip() + ".", response.status_code, response.headers, body)


def _phrase(status: int) -> str:
    """As the standard calls it, whatever the source says."""
    return httpx2.codes.get_reason_phrase(status)


async def _closed(response: httpx2.Response) -> None:
    with suppress(httpx2.HTTPError, *BELOW):
        await response.aclose()
