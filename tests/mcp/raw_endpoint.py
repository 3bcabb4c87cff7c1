"""An MCP server at an address without any library: it notes what it is sent and answers as a test wants it."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

JSON = {"Content-Type": "application/json"}
EVENTS = {"Content-Type": "text/event-stream"}


@dataclass(frozen=True, slots=True)
class Reply:
    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=lambda: JSON)


@dataclass(slots=True)
class Request:
    method: str
    headers: dict[str, str]
    message: dict[str, Any]


Answering = Callable[[Request], Reply | None]  # None: none at all


@dataclass(slots=True)
class RawEndpoint:
    answering: Answering
    url: str = ""
    requests: list[Request] = field(default_factory=list)
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    @property
    def methods(self) -> list[str]:
        return [each.message.get("method", each.method) for each in self.requests]

    def hang_up(self) -> None:
        for writer in self.writers:
            writer.close()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *rest = head.decode("latin-1").strip().split("\r\n")
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                request = Request(first.split()[0], headers, json.loads(body) if body else {})
                self.requests.append(request)
                reply = self.answering(request)
                if reply is None:
                    await reader.read()
                    return
                told = {"Content-Length": str(len(reply.body)), **reply.headers}
                lines = "".join(f"{name}: {value}\r\n" for name, value in told.items())
                writer.write(f"HTTP/1.1 {reply.status} X\r\n{lines}\r\n".encode() + reply.body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def answering(how: Answering) -> AsyncIterator[RawEndpoint]:
    endpoint = RawEndpoint(how)
    server = await asyncio.start_server(endpoint.serve, "127.0.0.1", 0)
    endpoint.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp?key=canary"
    try:
        yield endpoint
    finally:
        server.close()
        await server.wait_closed()


def well_behaved(request: Request, **calls: Callable[[Request], Reply | None]) -> Reply | None:
    """Knows the tools that it is given, and what they answer."""
    method, number = request.message.get("method"), request.message.get("id")
    if request.method == "GET":
        return Reply(405)
    if request.method == "DELETE" or number is None:
        return Reply(202)
    if method == "initialize":
        known = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
        return result(request, {**known, "serverInfo": {"name": "raw", "version": "1"}}, session="s-1")
    if method == "tools/list":
        return result(request, {"tools": [{"name": each, "inputSchema": {"type": "object"}} for each in calls]})
    return calls[request.message["params"]["name"]](request)


def result(request: Request, value: Mapping[str, Any], *, session: str = "") -> Reply:
    body = json.dumps({"jsonrpc": "2.0", "id": request.message["id"], "result": value}).encode()
    return Reply(body=body, headers={**JSON, "Mcp-Session-Id": session} if session else JSON)


def text(request: Request, words: str) -> Reply:
    return result(request, {"content": [{"type": "text", "text": words}]})
