"""Stands before an S3 server on 127.0.0.1 and lets things go wrong on the way, as often as it is told to.

    proxy.plan(Answer(503), method="PUT", path="*/journal/tail.jsonl", times=2)

A fault is for requests of one method, to paths of one pattern. Everything else passes as it is: one request a
connection, read whole before it goes on, so that every fault happens at a known point.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TypeAlias
from urllib.parse import urlsplit

_WORDS = {500: ("Internal Server Error", "InternalError"), 503: ("Slow Down", "SlowDown")}
_HEAD_BYTES = 64 * 1024
ALWAYS = 1 << 30


@dataclass(frozen=True)
class Answer:
    """An error as S3 words it. `written`: it happened all the same."""

    status: int
    written: bool = False


@dataclass(frozen=True)
class Slow:
    """The answer comes after that time. `written`: what was asked for is done at once."""

    delay_s: float
    written: bool = False


@dataclass(frozen=True)
class Cut:
    """The connection ends without an answer. `written`: after what was asked for had been done."""

    written: bool


@dataclass(frozen=True)
class Truncate:
    """So many bytes of the answer's body arrive, of all that its head promised."""

    after: int


Fault: TypeAlias = Answer | Slow | Cut | Truncate


@dataclass
class Planned:
    """`after`: requests of the kind that pass before it begins; `times`: how many it then hits."""

    fault: Fault
    method: str
    path: str
    after: int
    times: int
    hits: int = 0

    def meets(self, method: str, path: str) -> bool:
        if method != self.method or not fnmatchcase(path, self.path) or self.times <= 0:
            return False
        if self.after > 0:
            self.after -= 1
            return False
        self.times -= 1
        self.hits += 1
        return True


@dataclass
class Proxy:
    """`seen`: method and path of each request, in order."""

    target: str
    endpoint: str = ""
    seen: list[tuple[str, str]] = field(default_factory=list)
    planned: list[Planned] = field(default_factory=list)
    down: bool = False
    _busy: set["asyncio.Task[None]"] = field(default_factory=set)

    def plan(self, fault: Fault, *, method: str, path: str = "*", after: int = 0, times: int = 1) -> Planned:
        self.planned.append(Planned(fault, method, path, after, times))
        return self.planned[-1]

    def heal(self) -> None:
        """From now on nothing goes wrong."""
        self.planned.clear()
        self.down = False

    def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._connection(reader, writer))
        self._busy.add(task)
        task.add_done_callback(self._busy.discard)

    async def end(self) -> None:
        """Also of answers that are still to come."""
        for task in self._busy:
            task.cancel()
        await asyncio.gather(*self._busy, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                await self._exchange(reader, writer)
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        body = await reader.readexactly(_length(head))
        method, address, _ = head.decode("latin-1").split(" ", 2)
        path = urlsplit(address).path
        self.seen.append((method, path))
        if self.down:
            return
        fault = next((one.fault for one in self.planned if one.meets(method, path)), None)
        if answer := await self._answered(fault, _closing(head) + body):
            writer.write(answer)
            await writer.drain()

    async def _answered(self, fault: Fault | None, request: bytes) -> bytes:
        match fault:
            case Answer(status, written):
                if written:
                    await self._forwarded(request)
                return _refusal(status)
            case Cut(written):
                if written:
                    await self._forwarded(request)
                return b""
            case Slow(delay_s, written):
                early = await self._forwarded(request) if written else b""
                await asyncio.sleep(delay_s)
                return early or await self._forwarded(request)
            case Truncate(after):
                head, _, body = (await self._forwarded(request)).partition(b"\r\n\r\n")
                assert len(body) > after, "there is not so much to cut off"
                return head + b"\r\n\r\n" + body[:after]
        return await self._forwarded(request)

    async def _forwarded(self, request: bytes) -> bytes:
        place = urlsplit(self.target)
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        try:
            writer.write(request)
            await writer.drain()
            return await reader.read()
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()


def _length(head: bytes) -> int:
    for line in head.decode("latin-1").split("\r\n"):
        name, _, value = line.partition(":")
        assert name.lower() != "transfer-encoding", "obstore gives the length of what it sends"
        if name.lower() == "content-length":
            return int(value)
    return 0


def _closing(head: bytes) -> bytes:
    """So that the end of the connection is the end of the answer, here and there."""
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    kept = [line for line in lines if not line.lower().startswith(b"connection:")]
    return b"\r\n".join((first, *kept, b"Connection: close", b"", b""))


def _refusal(status: int) -> bytes:
    words, code = _WORDS[status]
    body = f"<Error><Code>{code}</Code><Message>Please try again.</Message></Error>".encode()
    lines = (f"HTTP/1.1 {status} {words}", "Content-Type: application/xml", f"Content-Length: {len(body)}")
    return "\r\n".join((*lines, "Connection: close", "", "")).encode() + body


@asynccontextmanager
async def proxied(target: str) -> AsyncIterator[Proxy]:
    proxy = Proxy(target)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, limit=_HEAD_BYTES)
    proxy.endpoint = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        try:
            yield proxy
        finally:
            await proxy.end()
