"""The port that webhooks come to."""

import asyncio
import socket

import pytest

from hummingbird.app.http_server import open_listener


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_answers_are_sent_without_delay(host: str) -> None:
    """Otherwise each of them waits 40 ms for the other side's acknowledgement."""
    seen: list[int] = []

    async def heard(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    server = await asyncio.start_server(heard, sock=open_listener(host, 0))
    async with server:
        reader, writer = await asyncio.open_connection(host, server.sockets[0].getsockname()[1])
        await reader.read()
        writer.close()
        await writer.wait_closed()
    assert seen == [1]
