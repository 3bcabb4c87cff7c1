"""Connections that keep the HTTP port waiting are dropped; all others are not."""

import asyncio
import contextlib
import logging
import resource
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from hummingbird.app.http_server import BoundedHttpServer, ConnectionLimits, max_connections

SOON_S = 0.1  # a deadline that passes within a test
LATE_S = 600.0  # one that does not
PATIENCE_S = 60  # only tells what hangs from what does not
TRICKLE_S = 0.01  # between two bytes of a slow sender
MANY = 100  # requests on one connection
BIG_CHARS = 16 * 1024 * 1024  # more than the kernel buffers for a connection
NEWS = b"GET /news HTTP/1.1\r\nHost: x\r\n\r\n"
ALIVE = b"GET /alive HTTP/1.1\r\nHost: x\r\n\r\n"


class AttackedPort:
    """An application behind an `HttpDoor`, and what its handlers saw."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.news: asyncio.Queue[bytes] = asyncio.Queue()
        self.cut_off = asyncio.Event()
        routes = [
            Route("/alive", self._alive),
            Route("/big", self._big),
            Route("/news", self._news),
            Route("/body", self._body, methods=["POST"]),
        ]
        self.door = BoundedHttpServer(Starlette(routes=routes), "127.0.0.1", 0, limits)
        self._opened: list[asyncio.StreamWriter] = []

    async def _alive(self, _: Request) -> Response:
        return PlainTextResponse("alive")

    async def _big(self, _: Request) -> Response:
        return PlainTextResponse("x" * BIG_CHARS)

    async def _news(self, _: Request) -> Response:
        async def pieces() -> AsyncIterator[bytes]:
            while True:
                yield await self.news.get()

        return StreamingResponse(pieces())

    async def _body(self, request: Request) -> Response:
        try:
            return PlainTextResponse(f"{len(await request.body())} bytes")
        except ClientDisconnect:
            self.cut_off.set()
            return PlainTextResponse("for nobody")

    async def connect(self, sent: bytes = b"") -> "Client":
        reader, writer = await asyncio.open_connection("127.0.0.1", self.door.port)
        self._opened.append(writer)
        writer.write(sent)
        return Client(reader, writer)

    async def connect_and_read(self, sent: bytes, until: bytes) -> "Client":
        """Connect again if a short deadline has passed before a busy machine came to send the request."""
        while True:
            client = await self.connect(sent)
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                await client.read_until(until)
                return client

    async def close(self) -> None:
        for writer in self._opened:
            writer.transport.abort()


class Client:
    """One connection to the port."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def read_until(self, text: bytes) -> bytes:
        return await self.reader.readuntil(text)

    async def read_until_dropped(self) -> bytes:
        received = b""
        with contextlib.suppress(ConnectionError):
            while piece := await self.reader.read(65_536):
                received += piece
        return received

    async def trickle_until_dropped(self) -> None:
        with contextlib.suppress(ConnectionError):
            while not self.reader.at_eof():
                self.writer.write(b"a")
                await self.writer.drain()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.reader.read(65_536), TRICKLE_S)


@asynccontextmanager
async def open_port(
    connections: int = 100, request_s: float = LATE_S, body_s: float = LATE_S, reading_s: float = LATE_S
) -> AsyncIterator[AttackedPort]:
    port = AttackedPort(ConnectionLimits(connections, request_s, body_s, reading_s))
    running = asyncio.create_task(port.door.run())
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield port
    finally:
        await port.close()
        port.door.stop()
        await running


async def test_connection_that_sends_nothing_is_dropped() -> None:
    async with open_port(request_s=SOON_S) as port:
        silent = await port.connect()
        assert await silent.read_until_dropped() == b""


async def test_connection_that_sends_headers_slowly_is_dropped() -> None:
    """Each byte comes in time; all of them do not."""
    async with open_port(request_s=SOON_S) as port:
        slow = await port.connect(b"GET /alive HTTP/1.1\r\nX-Slow: ")
        await slow.trickle_until_dropped()


async def test_connection_that_is_idle_after_an_answer_is_dropped() -> None:
    async with open_port(request_s=SOON_S) as port:
        idle = await port.connect_and_read(ALIVE, b"alive")
        assert await idle.read_until_dropped() == b""


async def test_connection_that_begins_a_second_request_slowly_is_dropped() -> None:
    async with open_port(request_s=SOON_S) as port:
        slow = await port.connect_and_read(ALIVE, b"alive")
        await slow.trickle_until_dropped()


async def test_connection_that_sends_a_body_slowly_is_dropped() -> None:
    async with open_port(body_s=SOON_S) as port:
        slow = await port.connect(b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
        await slow.trickle_until_dropped()
        await port.cut_off.wait()


async def test_connection_that_sends_a_body_after_its_answer_is_dropped() -> None:
    """uvicorn ends idle connections, and to it this one is not idle."""
    async with open_port(request_s=SOON_S) as port:
        unfinished = b"GET /alive HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"
        slow = await port.connect_and_read(unfinished, b"alive")
        await slow.trickle_until_dropped()


@pytest.mark.parametrize("more", [b"\r\n" + ALIVE * MANY, b"Connection: close\r\n\r\n"])
async def test_connection_that_does_not_read_answers_is_dropped(more: bytes) -> None:
    async with open_port(request_s=SOON_S, reading_s=SOON_S) as port:
        deaf = await port.connect_and_read(b"GET /big HTTP/1.1\r\nHost: x\r\n" + more, b"xxx")
        silent = await port.connect()
        await silent.read_until_dropped()  # its deadline began later
        assert len(await deaf.read_until_dropped()) < BIG_CHARS


async def test_websocket_is_answered_like_any_request() -> None:
    """Or an upgrade would be a way out of all bounds."""
    async with open_port(request_s=SOON_S) as port:
        upgrade = (
            b"GET /alive HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"
        )
        upgraded = await port.connect_and_read(upgrade, b"alive")
        await upgraded.trickle_until_dropped()


async def test_long_answer_outlives_all_deadlines() -> None:
    async with open_port(request_s=SOON_S, body_s=SOON_S, reading_s=SOON_S) as port:
        viewer = await port.connect_and_read(NEWS, b"\r\n\r\n")
        for number in range(3):
            silent = await port.connect()
            await silent.read_until_dropped()  # its deadline began after the viewer's request
            port.news.put_nowait(f"news {number};".encode())
            await viewer.read_until(f"news {number};".encode())


async def test_pipelined_requests_are_all_answered() -> None:
    async with open_port() as port:
        client = await port.connect(ALIVE * MANY)
        for _ in range(MANY):
            await client.read_until(b"\r\n\r\nalive")


async def test_newcomer_replaces_the_connection_that_waits_longest() -> None:
    async with open_port(connections=3) as port:
        viewer = await port.connect_and_read(NEWS, b"\r\n\r\n")
        first = await port.connect(b"GET /al")
        second = await port.connect(ALIVE)
        await second.read_until(b"alive")
        newcomer = await port.connect(ALIVE)
        await newcomer.read_until(b"alive")
        assert await first.read_until_dropped() == b""
        second.writer.write(ALIVE)
        await second.read_until(b"alive")
        port.news.put_nowait(b"news;")
        await viewer.read_until(b"news;")


async def test_newcomer_gets_in_when_all_others_are_being_answered() -> None:
    async with open_port(connections=2) as port:
        viewers = [await port.connect_and_read(NEWS, b"\r\n\r\n") for _ in range(2)]
        newcomer = await port.connect(ALIVE)
        await newcomer.read_until(b"alive")
        await viewers[0].read_until_dropped()


async def test_requests_get_through_while_hundreds_of_connections_are_held(caplog: pytest.LogCaptureFixture) -> None:
    """The log says so, and not once for each of them."""
    half_sent = (b"", b"POST /bo", b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n")
    async with open_port(connections=10) as port:
        for _ in range(50):
            for sent in half_sent:
                await port.connect(sent)
        client = await port.connect(b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n123456789")
        await client.read_until(b"9 bytes")
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert [record.name for record in warnings] == ["hummingbird.http"]
    assert "All 10 connections are taken" in caplog.text


@pytest.mark.parametrize(
    ("open_files", "expected"), [(160, 80), (1024, 512), (1_000_000, 1000), (resource.RLIM_INFINITY, 1000), (1, 1)]
)
def test_half_of_the_open_files_are_for_connections(
    monkeypatch: pytest.MonkeyPatch, open_files: int, expected: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (open_files, resource.RLIM_INFINITY))
    assert max_connections() == expected
    assert ConnectionLimits().connections == expected
