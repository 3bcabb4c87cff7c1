"""HTTP for model calls, against servers that misbehave."""

import asyncio
import itertools
import ssl
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import formatdate
from pathlib import Path
from typing import Any

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from hummingbird.core import limits
from hummingbird.core.errors import (
    HummingbirdError,
    MissingSetting,
    ProviderConnectionLost,
    ProviderReplyUnreadable,
    ProviderRequestRefused,
    ProviderTimeout,
    ProviderUnavailable,
    ProviderUnreachable,
)
from hummingbird.models import transport
from hummingbird.models import transport as sse
from hummingbird.models.transport import DONE, WHOLE, ModelTransport
from tests.models.served import answer, chunked, served

NOW = 1_800_000_000.0


def refused(status: int, said: Any) -> HummingbirdError:
    return ProviderUnavailable(f"{status}: {said}", retry_after_s=7.0)


@asynccontextmanager
async def carrier(**settings: Any) -> AsyncIterator[ModelTransport]:
    made = ModelTransport(lambda: NOW, **settings)
    try:
        yield made
    finally:
        await made.close()


async def post(url: str, **settings: Any) -> Any:
    async with carrier(**settings) as made:
        return await made.post(url, {}, b"{}", refused)


async def stream(made: ModelTransport, url: str) -> list[tuple[str, Any]]:
    async with aclosing(made.stream(url, {}, b"{}", refused)) as events:
        return [event async for event in events]


async def streamed(url: str, **settings: Any) -> list[tuple[str, Any]]:
    async with carrier(**settings) as made:
        return await stream(made, url)


@pytest.mark.parametrize(
    ("pieces", "events"),
    [
        ([b'data: {"a":1}\n\n', b"data: [DONE]\n\n"], [("", {"a": 1}), (DONE, None)]),
        ([b'event: e\r\ndata: {"a":', b'"\xc3', b'\xa9"}\r\n\r', b"\n"], [("e", {"a": "é"})]),
        ([b": hello\n\n", b"data:\n\n", b"data: [1,\n", b"data: 2]"], [("", [1, 2])]),
        ([b"data: [DONE]"], [(DONE, None)]),
        ([], []),
    ],
)
async def test_events_are_read_whole_from_any_stream(pieces: list[bytes], events: list[Any]) -> None:
    """Also the last one when no blank line follows it."""
    async with served(chunked(*pieces)) as server:
        assert await streamed(server.url) == events


@pytest.mark.parametrize("kind", ["text/plain", "application/octet-stream", "application/json"])
async def test_events_are_known_by_their_look_where_the_server_calls_them_something_else(kind: str) -> None:
    async with served(chunked(b"da", b'ta: {"a":1}\n', b"\ndata: [DONE]\n\n", kind=kind)) as server:
        assert await streamed(server.url) == [("", {"a": 1}), (DONE, None)]


async def test_a_whole_answer_to_a_streamed_call_is_handed_over_as_one() -> None:
    """Some servers do not stream, and some errors come with status 200."""
    async with served(chunked(b' {"er', b'ror": {"code": 429}}', kind="application/json")) as server:
        assert await streamed(server.url) == [(WHOLE, {"error": {"code": 429}})]


async def test_a_page_instead_of_a_stream_is_quoted() -> None:
    async with served(answer(b"<html>busy</html>", kind="text/html"), answer(b"upstream busy")) as server:
        with pytest.raises(ProviderReplyUnreadable, match="begins with: <html>busy</html>"):
            await streamed(server.url)
        with pytest.raises(ProviderReplyUnreadable, match="begins with: upstream busy"):
            await streamed(server.url)


async def test_five_streams_that_end_with_done_use_one_connection() -> None:
    """What comes after [DONE] is read, so that the connection can be used again."""
    pieces = chunked(b"data: 1\n\n", b"data: [DONE]\n\n", b": bye\n\n")
    async with served(pieces, pause_s=0.001) as server, carrier() as made:
        for _ in range(5):
            assert await stream(made, server.url) == [("", 1), (DONE, None)]
        assert (server.connections, len(server.requests)) == (1, 5)


async def test_a_server_that_goes_on_after_done_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is there; the rest may neither take long nor be much."""
    monkeypatch.setattr(transport, "DRAIN_TIMEOUT_S", 0.01)
    silent = [*chunked(b"data: [DONE]\n\n")[:-1], None]
    endless = [*chunked(b"data: [DONE]\n\n", *[b": more\n\n" * 1000] * 20)[:-1], None]
    cut = chunked(b"data: [DONE]\n\n")[:-1]
    async with served(silent, endless, [*cut, b"nonsense\r\n", None]) as server, carrier() as made:
        for _ in range(3):
            assert await stream(made, server.url) == [(DONE, None)]
        assert server.connections == 3


@pytest.mark.parametrize("most", [40, 100])
async def test_answers_streams_and_single_events_are_bounded(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(transport, "REPLY_BYTES", most)
    monkeypatch.setattr(sse.EventStreamReader.__init__, "__defaults__", (most,))
    bodies = [chunked(*[b"data: 1\n\n"] * 20), chunked(*[b"data: 1\n"] * 20), chunked(*[b": ping\n"] * 20)]
    async with served(*bodies, chunked(b"[" * most, b"[", kind="application/json")) as server, carrier() as made:
        for _ in range(4):
            with pytest.raises(ProviderReplyUnreadable, match=f"larger than {most} bytes"):
                await stream(made, server.url)
        with pytest.raises(ProviderReplyUnreadable, match=f"larger than {most} bytes"):
            await made.post(server.url, {}, b"{}", refused)


def dribble(kind: str) -> Any:
    """As many pieces as anybody wants."""

    class Endless(list[bytes]):
        def __iter__(self) -> Any:
            yield from chunked(kind=kind)[:1]
            yield from itertools.repeat(b"2\r\n\n\n\r\n")

    return Endless()


async def test_an_answer_that_dribbles_ends_when_its_time_is_up() -> None:
    """It is never silent for long, and would never end."""
    async with served(dribble("application/json"), pause_s=0.001) as server:
        with pytest.raises(ProviderTimeout):
            await post(server.url, whole_timeout_s=0.05)
        with pytest.raises(ProviderTimeout):
            await streamed(server.url, stream_timeout_s=0.05)


async def test_an_answer_that_falls_silent_ends_before_its_time_is_up() -> None:
    half = chunked(b"[1,")[:-1]
    async with served([*half, None]) as server:
        with pytest.raises(ProviderTimeout):
            await post(server.url, stall_timeout_s=0.05)
        with pytest.raises(ProviderTimeout):
            await streamed(server.url, stall_timeout_s=0.05)


async def test_a_refusal_that_dribbles_ends_too() -> None:
    head = b"HTTP/1.1 500 Oh\r\ncontent-length: 100\r\n\r\n{"
    async with served([head, None]) as server:
        with pytest.raises(ProviderTimeout):
            await streamed(server.url, whole_timeout_s=0.05)


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"])
@pytest.mark.parametrize(
    ("location", "where"),
    [
        ("https://user:hidden@login.example/sso?token=hidden", "to login.example"),
        ("/v2/hidden", "to another path"),
        ("http://[hidden", "to another path"),
    ],
)
async def test_a_redirect_is_not_followed_and_says_where_it_points(status: str, location: str, where: str) -> None:
    """The key would go along."""
    async with served(answer(b"", f"location: {location}", status=status)) as server, carrier() as made:
        for call in (made.post(server.url, {}, b"{}", refused), stream(made, server.url)):
            with pytest.raises(ProviderRequestRefused, match=f"points {where} .*set the base URL") as caught:
                await call
            assert "hidden" not in str(caught.value)
        assert len(server.requests) == 2


NOWHERE = ["ftp://host/v1", "http://127.0.0.1:99999/", "http://", "nothing", "http://h:port/", "http://a\uff0f/"]


@pytest.mark.parametrize("url", NOWHERE)
async def test_an_address_that_is_none_is_not_tried_again(url: str) -> None:
    with pytest.raises(ProviderRequestRefused, match="set its base URL"):
        await post(url)


async def test_a_header_that_cannot_be_sent_is_a_sentence_without_its_value() -> None:
    """The HTTP library would quote it."""
    for value in ("s3cret\nkey", "s3cret\x00key", "s3cretkéy"):
        async with carrier() as made:
            with pytest.raises(MissingSetting, match="the header x-api-key holds") as caught:
                await made.post("http://127.0.0.1:9/", {"x-api-key": value}, b"{}", refused)
        assert "s3cret" not in f"{caught.value} {caught.value.__cause__} {caught.value.__context__}"


@pytest.mark.parametrize(
    "reply",
    [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{", b"HTTP/1.1 200 OK\r\nno\r\n\r\n"],
)
async def test_a_connection_that_breaks_is_our_error(reply: bytes) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"{}")
        writer.write(reply)
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    for call in (post, streamed):
        with pytest.raises(ProviderConnectionLost, match="The connection to the model broke"):
            await call(url)
    server.close()


async def test_address_where_nothing_listens_is_named_and_soon_given_up() -> None:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()
    for call in (post, streamed):
        with pytest.raises(ProviderUnreachable, match=f"Nothing answers at {url}: check the address") as refused:
            await call(f"{url}/v1/chat/completions")
        assert refused.value.retry_after_s == 1


async def test_a_body_that_is_not_compressed_as_it_says_is_our_error() -> None:
    async with served(answer(b"{}", "content-encoding: gzip")) as server:
        with pytest.raises(ProviderConnectionLost):
            await post(server.url)


def certificate(folder: Path) -> ssl.SSLContext:
    """A server's side of TLS that nobody vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    day = datetime(2026, 1, 1, tzinfo=UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, day, day + timedelta(days=36500))
    signed = made.sign(key, hashes.SHA256())
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path = folder / "server.pem"
    path.write_bytes(secret + signed.public_bytes(Encoding.PEM))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(path)
    return context


async def test_a_host_whose_certificate_nobody_vouches_for_is_not_tried_again(tmp_path: Path) -> None:
    """The operator must act; asking again does not help."""
    async with served(answer(b"{}"), tls=certificate(tmp_path)) as server:
        with pytest.raises(ProviderRequestRefused, match="is not trusted: set ca_bundle"):
            await post(server.url)


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("ALL_PROXY", "socks5://me:hidden@proxy.example:1080", "SOCKS proxy, which needs the package `socksio`"),
        ("HTTPS_PROXY", "foo://me:hidden@proxy.example", "is not a proxy's address"),
        ("HTTP_PROXY", "http://proxy.example:hidden", "is not a proxy's address"),
        ("SSL_CERT_FILE", "/nowhere/ca.pem", "SSL_CERT_FILE or SSL_CERT_DIR cannot be read"),
    ],
)
async def test_proxies_and_certificates_that_cannot_be_used_are_missing_settings(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, words: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(MissingSetting, match=words) as caught:
        await post("http://127.0.0.1:9/")
    assert "hidden" not in f"{caught.value} {caught.value.__cause__}"


async def test_a_ca_bundle_that_cannot_be_read_is_a_missing_setting(tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("no certificate")
    for path in (tmp_path / "none.pem", empty, tmp_path):
        with pytest.raises(MissingSetting, match=r"ca_bundle .* cannot be read"):
            ModelTransport(lambda: NOW, ca_bundle=str(path)).check_settings()


async def test_certificates_are_read_once_for_all_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Or each run would stop all others for as long as that takes."""
    read: list[ssl.SSLContext] = []
    made = httpx2.create_ssl_context

    def counted() -> ssl.SSLContext:
        read.append(made())
        return read[-1]

    monkeypatch.setattr(httpx2, "create_ssl_context", counted)
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))  # nobody was asked for these before
    for _ in range(3):
        transport = ModelTransport(lambda: NOW)
        transport.check_settings()
        await transport.close()
    assert len(read) == 1


async def test_a_ca_bundle_that_changes_is_read_again(tmp_path: Path) -> None:
    certificate(tmp_path)
    bundle = tmp_path / "server.pem"
    first = ModelTransport(lambda: NOW, ca_bundle=str(bundle))
    first.check_settings()
    await first.close()
    bundle.write_text("no certificate")
    with pytest.raises(MissingSetting, match=r"ca_bundle .* cannot be read"):
        ModelTransport(lambda: NOW, ca_bundle=str(bundle)).check_settings()


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("retry-after: 30", 30.0),
        ("retry-after: 0.5", 0.5),
        ("retry-after: 0", 0.0),
        (f"retry-after: {formatdate(NOW + 90, usegmt=True)}", 90.0),
        (f"retry-after: {formatdate(NOW - 90, usegmt=True)}", 0.0),
        ("retry-after: -5", 7.0),
        ("retry-after: soon", 7.0),
        ("retry-after: nan", 7.0),
        ("retry-after:", 7.0),
        ("x: y", 7.0),
    ],
)
async def test_a_retry_after_header_wins_over_what_the_body_says(header: str, seconds: float) -> None:
    """What is no delay leaves the body's."""
    async with served(answer(b"{}", header, status="429 Slow")) as server, carrier() as made:
        for call in (made.post(server.url, {}, b"{}", refused), stream(made, server.url)):
            with pytest.raises(ProviderUnavailable) as caught:
                await call
            assert caught.value.retry_after_s == seconds


def test_silence_ends_before_an_answer_and_an_answer_before_a_stream() -> None:
    """And what is read after the end is little of each."""
    assert limits.CONNECT_TIMEOUT_S < limits.STALL_TIMEOUT_S < limits.ANSWER_TIMEOUT_S < limits.STREAM_TIMEOUT_S
    assert limits.RETRY_DELAYS_S[0] > limits.DRAIN_TIMEOUT_S
    assert limits.DRAIN_BYTES * 100 < limits.REPLY_BYTES
