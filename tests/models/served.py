"""A server that answers with the bytes it is told to, over real sockets, and counts its connections."""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


def answer(body: bytes, *headers: str, status: str = "200 OK", kind: str = "application/json") -> bytes:
    """A whole answer of known length."""
    head = [f"HTTP/1.1 {status}", f"content-type: {kind}", f"content-length: {len(body)}", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def chunked(*pieces: bytes, kind: str = "text/event-stream") -> list[bytes]:
    """An answer that comes in pieces, the last of which says that it was the last."""
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    return [head, *(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces), b"0\r\n\r\n"]


@dataclass
class Served:
    """`answers` are sent one per request, the last one again and again; `pause` lies between the pieces of one. After
    a piece that is None the server says no more."""

    answers: Sequence[Sequence[bytes | None]]
    pause_s: float = 0.0
    connections: int = 0
    requests: list[bytes] = field(default_factory=list)
    url: str = ""
    open: dict[asyncio.Task[None], asyncio.StreamWriter] = field(default_factory=dict)

    async def settle(self) -> None:
        """Hangs up on whoever is still there."""
        for writer in self.open.values():
            writer.transport.abort()
        await asyncio.gather(*self.open)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self.open[task] = writer
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head.lower())
        self.requests.append(head + await reader.readexactly(int(length[1]) if length else 0))
        for piece in self.answers[min(len(self.requests), len(self.answers)) - 1]:
            if piece is None:
                await reader.read()
                return False
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(self.pause_s)
        return True


@asynccontextmanager
async def served(
    *answers: bytes | Sequence[bytes | None], pause_s: float = 0.0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Served]:
    made = Served([[each] if isinstance(each, bytes) else each for each in answers], pause_s)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    made.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    try:
        yield made
    finally:
        server.close()
        await made.settle()
