"""Connections that go only to addresses which may be reached (D7), and those that an operator configured himself.

A name is looked up once, here, and the connection goes to the very address that was checked: a name that leads
elsewhere at its second look-up finds nobody who looks again. TLS verifies the name all the same. Guarded clients know
no proxy: it would look names up itself, behind the guard.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from http.cookiejar import CookieJar, DefaultCookiePolicy
from ipaddress import ip_address
from typing import Any, TypeAlias

import httpcore2
import httpx2

from hummingbird.adapters.clients.making import trusting, understood
from hummingbird.adapters.sources.http.addresses import Address, reachable
from hummingbird.domain.errors import CallDenied
from hummingbird.domain.limits import HTTP_ADDRESSES, SOURCE_CONNECT_S
from hummingbird.domain.text import shortened

Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
_FOREIGN = (
    httpcore2.TimeoutException,
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.ProxyError,
    httpcore2.UnsupportedProtocol,
)
_KEPT_ALIVE_S = 15.0


def guarded_client(*, private: bool = False, ca_bundle: str = "", resolve: Resolve | None = None) -> httpx2.AsyncClient:
    """For addresses that a model supplies. `private` lets it into one's own networks. Raises MissingSetting for
    certificates that cannot be read."""
    transport = _GuardedTransport(trusting(ca_bundle), GuardedNetwork(private=private, resolve=resolve or looked_up))
    return httpx2.AsyncClient(transport=transport, trust_env=False, follow_redirects=False, cookies=_no_cookies())


def operator_client(ca_bundle: str = "", **more: Any) -> httpx2.AsyncClient:
    """For addresses that the operator configured: proxies are the environment's, and any address will do. `more` goes
    to httpx2 as it is. Raises MissingSetting."""
    with understood():
        return httpx2.AsyncClient(
            **{"verify": trusting(ca_bundle), "follow_redirects": False, "cookies": _no_cookies(), **more}
        )


async def looked_up(host: str, port: int) -> Sequence[str]:
    """As the system resolves it. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(place[0]) for *_, place in found]


class GuardedNetwork(httpcore2.AsyncNetworkBackend):
    """Where httpcore2 gets its connections."""

    def __init__(self, *, private: bool, resolve: Resolve) -> None:
        self._private = private
        self._resolve = resolve
        self._inner = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 — httpcore2's own name
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Raises CallDenied for a name that leads only to addresses which may not be reached."""
        try:
            async with asyncio.timeout(SOURCE_CONNECT_S if timeout is None else timeout):
                addresses = await self._checked(host, port)
                return await self._first_that_answers(addresses, port, local_address, socket_options)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(f"no connection to {host} in time") from error

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 — httpcore2's own name
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        raise CallDenied("Sockets of this machine may not be read: ask for a web address.")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _checked(self, host: str, port: int) -> list[Address]:
        try:
            found = [ip_address(text) for text in await self._resolve(host, port)]
        except (OSError, ValueError, UnicodeError) as error:
            raise httpcore2.ConnectError(f"the name {host} cannot be looked up ({error})") from error
        good = [address for address in dict.fromkeys(found) if reachable(address, private=self._private)]
        if found and not good:
            could_be_allowed = any(reachable(address, private=True) for address in found)
            raise CallDenied(
                f"The host {shortened(host, 100)} leads to an address of a private or special network, so it was not "
                "read: ask for a public one."
                + (" The operator may allow private addresses for this source." if could_be_allowed else "")
            )
        return good[:HTTP_ADDRESSES]

    async def _first_that_answers(
        self,
        addresses: list[Address],
        port: int,
        local_address: str | None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None,
    ) -> httpcore2.AsyncNetworkStream:
        trouble: Exception = httpcore2.ConnectError("the name has no address")
        for place, address in enumerate(addresses):
            share = SOURCE_CONNECT_S / 2 if place + 1 < len(addresses) else None
            try:
                return await self._inner.connect_tcp(str(address), port, share, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                trouble = error
        raise trouble


class _GuardedTransport(httpx2.AsyncBaseTransport):
    """httpx2's own transport takes no network of ours, so this one stands in its place."""

    def __init__(self, context: ssl.SSLContext, network: GuardedNetwork) -> None:
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=context,
            max_connections=32,
            max_keepalive_connections=8,
            keepalive_expiry=_KEPT_ALIVE_S,
            network_backend=network,
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = httpcore2.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        )
        asked = httpcore2.Request(
            method=request.method, url=url, headers=request.headers.raw, extensions=request.extensions
        )
        try:
            answered = await self._pool.handle_async_request(asked)
        except _FOREIGN as error:
            raise _ours(error) from error
        return httpx2.Response(
            status_code=answered.status,
            headers=answered.headers,
            stream=_Body(answered),
            extensions=answered.extensions,
        )

    async def aclose(self) -> None:
        await self._pool.aclose()


class _Body(httpx2.AsyncByteStream):
    def __init__(self, answered: httpcore2.Response) -> None:
        self._answered = answered

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async with aclosing(self._answered.aiter_stream()) as chunks:
                async for chunk in chunks:
                    yield chunk
        except _FOREIGN as error:
            raise _ours(error) from error

    async def aclose(self) -> None:
        try:
            await self._answered.aclose()
        except _FOREIGN as error:
            raise _ours(error) from error


def _ours(error: Exception) -> httpx2.TransportError:
    """httpx2 calls its errors as httpcore2 does."""
    kind = getattr(httpx2, type(error).__name__, httpx2.NetworkError)
    made: httpx2.TransportError = kind(str(error))
    return made


def _no_cookies() -> CookieJar:
    return CookieJar(policy=DefaultCookiePolicy(allowed_domains=[]))
