"""A server on loopback that says exactly the bytes it is told to, one answer a connection, and remembers requests."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

HUSH = b"\0hush"  # say nothing and keep the connection


@dataclass
class Speaking:
    answers: list[bytes]
    url: str = ""
    heard: list[bytes] = field(default_factory=list)
    hushed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def paths(self) -> list[str]:
        return [request.split(b" ")[1].decode() for request in self.heard]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.heard.append(await reader.readuntil(b"\r\n\r\n"))
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            said, hush, _ = answer.partition(HUSH)
            writer.write(said)
            await writer.drain()
            if hush:
                self.hushed.set()
                await reader.read()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def speaking(*answers: bytes, secured: ssl.SSLContext | None = None) -> AsyncIterator[Speaking]:
    """The last answer is repeated for ever."""
    made = Speaking(list(answers))
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0, ssl=secured)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        server.close()
        await server.wait_closed()


def told(status: int, body: bytes = b"", headers: Sequence[str] = ()) -> bytes:
    lines = [f"HTTP/1.1 {status} Told", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
