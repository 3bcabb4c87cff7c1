"""A connection goes only to an address that was looked at, and only if it may be reached."""

import asyncio
import ssl
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path

import httpcore2
import httpx2
import pytest

from hummingbird.clients import url_fetch as reader_module
from hummingbird.clients.address_policy import UrlAllowList, is_reachable
from hummingbird.clients.network_guard import create_guarded_client, create_operator_client
from hummingbird.clients.url_fetch import UrlFetcher
from hummingbird.core.errors import CallDenied, MissingSetting, SourceUnavailable
from hummingbird.core.limits import HTTP_ADDRESSES, SOURCE_ATTEMPTS, SOURCE_CONNECT_S
from tests.clients.speaking import speaking, told

pytestmark = pytest.mark.every_case

PUBLIC = ["8.8.8.8", "93.184.215.14", "2606:2800:21f:cb07::1", "::ffff:8.8.8.8", "2002:808:808::1", "64:ff9b::808:808"]
OWN = ["10.0.0.1", "172.16.3.4", "192.168.1.1", "127.0.0.1", "127.9.9.9", "100.64.0.1", "fd00::1", "::1"]
OWN += ["::ffff:10.0.0.1", "::ffff:127.0.0.1", "2002:7f00:1::", "2002:a00:1::1", "64:ff9b::7f00:1", "64:ff9b::10.0.0.1"]
NOBODYS = ["169.254.169.254", "0.0.0.0", "::", "224.0.0.1", "255.255.255.255", "240.0.0.1", "ff02::1", "fe80::1"]
NOBODYS += ["fe80::1%eth0", "fec0::1", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1"]
NOBODYS += ["64:ff9b:1::1", "::8.8.8.8", "2001:0:808:808::1", "::ffff:0:7f00:1", "0.1.2.3", "4000::1", "5f00::1"]
METADATA = ["169.254.169.254", "169.254.170.2", "169.254.170.23", "169.254.0.23", "fd00:ec2::254", "fd00:ec2::23"]
METADATA += ["100.100.100.200", "168.63.129.16", "192.0.0.192", "fd20:ce::254", "fd00:c1::a9fe:a9fe", "fd00:42::42"]
METADATA += [
    "fe80::a9fe:a9fe",
    "::ffff:100.100.100.200",
    "64:ff9b::6464:64c8",
    "2002:6464:64c8::1",
    "::ffff:168.63.129.16",
]
METADATA += ["64:ff9b::a9fe:aa02", "2002:a9fe:aa17::", "fd00:64::a9fe:a9fe", "2001:db8:64::a9fe:a9fe"]


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_may_be_reached(address: str) -> None:
    assert is_reachable(ip_address(address), private=False)


@pytest.mark.parametrize("address", OWN)
def test_ones_own_networks_only_where_the_operator_says_so(address: str) -> None:
    assert not is_reachable(ip_address(address), private=False)
    assert is_reachable(ip_address(address), private=True)


@pytest.mark.parametrize("address", NOBODYS)
def test_link_local_and_special_addresses_never(address: str) -> None:
    assert not is_reachable(ip_address(address), private=False)
    assert not is_reachable(ip_address(address), private=True)


@pytest.mark.parametrize("address", METADATA)
async def test_private_addresses_open_no_metadata_service(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    connections = Connections(monkeypatch)
    assert not is_reachable(ip_address(address), private=False)
    async with create_guarded_client(private=True, resolve=Names([address])) as client:
        with pytest.raises(CallDenied, match="ask for a public one") as denied:
            await read(client, "http://innocent.example/")
    assert "operator may allow" not in str(denied.value)
    assert connections.addresses == []


async def test_a_redirect_to_a_metadata_service_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator has allowed private addresses and a host whose name leads to the service."""
    names = Names(["10.0.0.1"], ["fd00:ec2::254", "100.100.100.200"])
    allowed = UrlAllowList(("http://ranch.example/", "http://moved.example/"), private=True)
    async with speaking(told(302, headers=["Location: http://moved.example/latest/meta-data/"])) as server:
        connections = Connections(monkeypatch, int(server.url.rsplit(":", 1)[1]))
        async with create_guarded_client(private=True, resolve=names) as client:
            reader = UrlFetcher(client, admits=allowed.admit, sleep=no_pause)
            with pytest.raises(CallDenied, match=r"moved\.example leads to"):
                async with reader.open("http://ranch.example/log", most_bytes=1000):
                    pass
    assert connections.addresses == ["10.0.0.1"]


class Names:
    """A resolver that gives one answer after the other, the last one for ever."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


class Connections:
    """Stands where sockets are made, so that no test leaves this machine."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, port: int = 0) -> None:
        self.addresses: list[str] = []
        self.timeouts: list[object] = []
        real = httpcore2.AnyIOBackend.connect_tcp

        async def connect_tcp(inner: httpcore2.AnyIOBackend, host: str, *more: object) -> httpcore2.AsyncNetworkStream:
            self.addresses.append(host)
            self.timeouts.append(more[1])
            if not port:
                raise httpcore2.ConnectError("nobody is there")
            return await real(inner, "127.0.0.1", port)

        monkeypatch.setattr(httpcore2.AnyIOBackend, "connect_tcp", connect_tcp)


async def no_pause(seconds: float) -> None:
    pass


async def read(client: httpx2.AsyncClient, url: str) -> bytes:
    async with UrlFetcher(client, sleep=no_pause).open(url, most_bytes=1000) as answer:
        return await answer.read_all()


@pytest.mark.parametrize("address", [*OWN, *NOBODYS])
async def test_a_name_that_leads_home_is_denied_before_any_connection(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    connections = Connections(monkeypatch)
    async with create_guarded_client(resolve=Names([address])) as client:
        with pytest.raises(CallDenied, match=r"The host innocent\.example leads to an address of a private"):
            await read(client, "http://innocent.example/")
    assert connections.addresses == []


async def test_a_name_is_looked_up_once_and_the_connection_goes_to_that_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = Names(["93.184.215.14"], ["127.0.0.1"])
    async with speaking(told(200, b"here")) as server:
        connections = Connections(monkeypatch, int(server.url.rsplit(":", 1)[1]))
        async with create_guarded_client(resolve=names) as client:
            assert await read(client, "http://rebinding.example/") == b"here"
            with pytest.raises(CallDenied):
                await read(client, "http://rebinding.example/")
    assert connections.addresses == ["93.184.215.14"]
    assert b"Host: rebinding.example\r\n" in server.heard[0]


async def test_of_several_addresses_only_the_public_ones_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    connections = Connections(monkeypatch)
    async with create_guarded_client(resolve=Names(["10.0.0.1", "8.8.8.8", "::1", "2606:2800:21f:cb07::1"])) as client:
        with pytest.raises(SourceUnavailable, match="nobody is there"):
            await read(client, "http://mixed.example/")
    assert set(connections.addresses) == {"8.8.8.8", "2606:2800:21f:cb07::1"}


async def test_an_address_that_is_silent_leaves_time_for_the_next_and_few_are_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    many = [f"8.8.8.{number}" for number in range(1, 50)]
    connections = Connections(monkeypatch)
    async with create_guarded_client(resolve=Names(many)) as client:
        with pytest.raises(SourceUnavailable):
            await read(client, "http://many.example/")
    assert connections.addresses == many[:HTTP_ADDRESSES] * SOURCE_ATTEMPTS
    assert connections.timeouts[:HTTP_ADDRESSES] == [SOURCE_CONNECT_S / 2] * (HTTP_ADDRESSES - 1) + [None]


async def test_a_name_that_is_never_found_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(host: str, port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        return []

    monkeypatch.setattr(reader_module, "_TIMEOUT", httpx2.Timeout(5, connect=0.02))
    async with create_guarded_client(resolve=never) as client:
        with pytest.raises(SourceUnavailable, match=r"did not answer in time.*no connection to lost\.example in time"):
            await read(client, "http://lost.example/")


async def test_a_redirect_to_a_name_that_leads_home_is_denied(monkeypatch: pytest.MonkeyPatch) -> None:
    names = Names(["93.184.215.14"], ["169.254.169.254"])
    async with speaking(told(302, headers=["Location: http://metadata.example/"])) as server:
        Connections(monkeypatch, int(server.url.rsplit(":", 1)[1]))
        async with create_guarded_client(resolve=names) as client:
            reader = UrlFetcher(client, admits=lambda url: url, sleep=no_pause)
            with pytest.raises(CallDenied):
                async with reader.open("http://innocent.example/", most_bytes=10):
                    pass
    assert names.asked == ["innocent.example", "metadata.example"]
    assert len(server.heard) == 1


async def test_a_name_nobody_knows_is_trouble_not_a_denial() -> None:
    async def nobody(host: str, port: int) -> Sequence[str]:
        raise OSError("Name or service not known")

    async with create_guarded_client(resolve=nobody) as client:
        with pytest.raises(SourceUnavailable, match=r"the name gone\.example cannot be looked up"):
            await read(client, "http://gone.example/")


async def test_the_certificate_is_checked_against_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str | None] = []

    class Stream(httpcore2.AsyncNetworkStream):
        async def start_tls(
            self,
            ssl_context: ssl.SSLContext,
            server_hostname: str | None = None,
            timeout: float | None = None,  # noqa: ASYNC109 — httpcore2's own name
        ) -> httpcore2.AsyncNetworkStream:
            asked.append(server_hostname)
            assert ssl_context.check_hostname
            assert ssl_context.verify_mode == ssl.CERT_REQUIRED
            raise httpcore2.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] hostname mismatch")

    async def connect_tcp(inner: httpcore2.AnyIOBackend, host: str, *more: object) -> httpcore2.AsyncNetworkStream:
        return Stream()

    monkeypatch.setattr(httpcore2.AnyIOBackend, "connect_tcp", connect_tcp)
    async with create_guarded_client(resolve=Names(["8.8.8.8"])) as client:
        with pytest.raises(SourceUnavailable, match=r"certificate of named\.example is not trusted: set ca_bundle"):
            await read(client, "https://named.example/")
    assert asked == ["named.example"]


async def test_proxies_of_the_environment_are_for_operators_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    async with speaking(told(200, b"by proxy")) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        async with create_guarded_client(resolve=Names(["10.0.0.1"])) as client:
            with pytest.raises(CallDenied):
                await read(client, "http://inner.example/")
        assert proxy.heard == []
        async with create_operator_client() as client:
            assert await read(client, "http://inner.example/") == b"by proxy"


def test_certificates_that_cannot_be_read_are_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(MissingSetting, match="set it to a PEM file"):
        create_guarded_client(ca_bundle=str(tmp_path / "no.pem"))
    with pytest.raises(MissingSetting, match="set it to a PEM file"):
        create_operator_client(str(tmp_path))


@pytest.mark.parametrize(
    ("proxy", "words"), [("socks5://p.example:1", "socksio"), ("nonsense://p", "not a proxy's address")]
)
def test_a_proxy_that_cannot_be_used_is_a_sentence(monkeypatch: pytest.MonkeyPatch, proxy: str, words: str) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    with pytest.raises(MissingSetting, match=words):
        create_operator_client()


async def test_cookies_are_not_kept() -> None:
    async with (
        speaking(told(200, headers=["Set-Cookie: crumb=1"])) as server,
        create_guarded_client(private=True) as client,
    ):
        await read(client, server.url)
        await read(client, server.url)
    assert not any(b"crumb" in request for request in server.heard)
