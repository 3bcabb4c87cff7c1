"""Connect only to network addresses that may be reached, or to those that the operator configured.

A name is looked up once, here, and the connection goes to the very address that was checked, so that a name that
resolves differently the second time gains nothing. TLS still verifies the name. Guarded clients use no proxy: a proxy
would look up names itself, behind the guard.
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

from hummingbird.clients.address_policy import IpAddress, is_reachable, unwrap_address
from hummingbird.clients.http_clients import explain_client_errors, load_ssl_context
from hummingbird.core.errors import CallDenied
from hummingbird.core.limits import HTTP_ADDRESSES, SOURCE_CONNECT_S
from hummingbird.core.text import shorten_line

Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
_HTTPCORE_ERRORS = (
    httpcore2.TimeoutException,
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.ProxyError,
    httpcore2.UnsupportedProtocol,
)
_KEEPALIVE_S = 15.0


def create_guarded_client(
    *,
    private: bool = False,
    private_hosts: frozenset[str] = frozenset(),
    ca_bundle: str = "",
    resolve: Resolve | None = None,
) -> httpx2.AsyncClient:
    """Create a client for addresses that a model supplies.

    `private` allows private networks and this machine; `private_hosts` may be in private networks in any case. Raises
    MissingSetting for certificates that cannot be read.
    """
    network = GuardedNetwork(private=private, private_hosts=private_hosts, resolve=resolve or resolve_host)
    transport = _GuardedTransport(load_ssl_context(ca_bundle), network)
    return httpx2.AsyncClient(
        transport=transport, trust_env=False, follow_redirects=False, cookies=_create_empty_cookie_jar()
    )


def create_operator_client(ca_bundle: str = "", **more: Any) -> httpx2.AsyncClient:
    """Create a client for addresses that the operator configured.

    Proxies come from the environment, and any address is allowed. `more` is passed to httpx2. Raises MissingSetting.
    """
    with explain_client_errors():
        return httpx2.AsyncClient(
            **{
                "verify": load_ssl_context(ca_bundle),
                "follow_redirects": False,
                "cookies": _create_empty_cookie_jar(),
                **more,
            }
        )


async def resolve_host(host: str, port: int) -> Sequence[str]:
    """Look up a host with the system's resolver.

    Raises OSError.
    """
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(place[0]) for *_, place in found]


class GuardedNetwork(httpcore2.AsyncNetworkBackend):
    """Open the connections of httpcore2, only to allowed addresses."""

    def __init__(self, *, private: bool, resolve: Resolve, private_hosts: frozenset[str] = frozenset()) -> None:
        self._private = private
        self._private_hosts = private_hosts
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
        """Connect to the first reachable allowed address of the host.

        Raises CallDenied for a name that leads only to addresses that may not be reached.
        """
        try:
            async with asyncio.timeout(SOURCE_CONNECT_S if timeout is None else timeout):
                addresses = await self._resolve_allowed(host, port)
                return await self._connect_first(addresses, port, local_address, socket_options)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(f"no connection to {host} in time") from error

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 — httpcore2's own name
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Refuse: raises CallDenied."""
        raise CallDenied("Sockets of this machine may not be read: ask for a web address.")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _resolve_allowed(self, host: str, port: int) -> list[IpAddress]:
        try:
            found = [ip_address(text) for text in await self._resolve(host, port)]
        except (OSError, ValueError, UnicodeError) as error:
            raise httpcore2.ConnectError(f"the name {host} cannot be looked up ({error})") from error
        good = [address for address in dict.fromkeys(found) if self._is_allowed(host, address)]
        if found and not good:
            could_be_allowed = any(is_reachable(address, private=True) for address in found)
            raise CallDenied(
                f"The host {shorten_line(host, 100)} leads to an address of a private or special "
                "network, so it was not "
                "read: ask for a public one."
                + (" The operator may allow private addresses for this source." if could_be_allowed else "")
            )
        return good[:HTTP_ADDRESSES]

    def _is_allowed(self, host: str, address: IpAddress) -> bool:
        """Tell whether the host may be at this address; no name may lead to this machine because of its host."""
        if is_reachable(address, private=self._private):
            return True
        named = host.lower().rstrip(".") in self._private_hosts
        real = unwrap_address(address)
        return named and is_reachable(address, private=True) and real is not None and not real.is_loopback

    async def _connect_first(
        self,
        addresses: list[IpAddress],
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
    """A transport over `GuardedNetwork`; httpx2's own transport takes no network backend."""

    def __init__(self, context: ssl.SSLContext, network: GuardedNetwork) -> None:
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=context,
            max_connections=32,
            max_keepalive_connections=8,
            keepalive_expiry=_KEEPALIVE_S,
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
        except _HTTPCORE_ERRORS as error:
            raise _to_httpx_error(error) from error
        return httpx2.Response(
            status_code=answered.status,
            headers=answered.headers,
            stream=_GuardedBody(answered),
            extensions=answered.extensions,
        )

    async def aclose(self) -> None:
        await self._pool.aclose()


class _GuardedBody(httpx2.AsyncByteStream):
    def __init__(self, answered: httpcore2.Response) -> None:
        self._answered = answered

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async with aclosing(self._answered.aiter_stream()) as chunks:
                async for chunk in chunks:
                    yield chunk
        except _HTTPCORE_ERRORS as error:
            raise _to_httpx_error(error) from error

    async def aclose(self) -> None:
        try:
            await self._answered.aclose()
        except _HTTPCORE_ERRORS as error:
            raise _to_httpx_error(error) from error


def _to_httpx_error(error: Exception) -> httpx2.TransportError:
    """Translate an error; httpx2 and httpcore2 use the same class names."""
    kind = getattr(httpx2, type(error).__name__, httpx2.NetworkError)
    made: httpx2.TransportError = kind(str(error))
    return made


def _create_empty_cookie_jar() -> CookieJar:
    return CookieJar(policy=DefaultCookiePolicy(allowed_domains=[]))
