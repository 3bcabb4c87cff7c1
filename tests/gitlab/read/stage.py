"""A loopback server that answers as a test says, for what the lab's GitLab never does."""

import json
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from hummingbird.agent.tools.results import clean_stream
from hummingbird.clients.url_fetch import Deadline
from hummingbird.core.masking import Secrets
from hummingbird.core.protocols.tools import ByteStream, ToolContext, ToolOutput, ToolToken
from hummingbird.gitlab.http_client import GitLabHttpClient
from hummingbird.gitlab.read import GitLabSettings
from hummingbird.gitlab.read.client import GitLabReader, create_client
from hummingbird.gitlab.read.source import GitLabSource

TOKEN = "glpat-stage-token"  # a word, no credential


@dataclass(frozen=True)
class Answer:
    """`body`: bytes, or pieces that are sent one after the other in chunks."""

    status: int = 200
    body: bytes | Callable[[], Iterator[bytes]] = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict)
    kind: str = "application/json"
    promised: int | None = None  # a Content-Length that is not kept
    framing: str = "chunked"  # of pieces: chunked, length (one that is never reached) or close


@dataclass
class Asked:
    method: str
    path: str
    headers: Mapping[str, str]


class Stage:
    """`answers` are given in order; the last one again and again."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.asked: list[Asked] = []
        self.left = threading.Event()  # the client hung up in the middle of a body
        self.url = ""

    def answer(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are what some tests are about."""


@contextmanager
def staged(secured: ssl.SSLContext | None = None) -> Iterator[Stage]:
    stage = Stage()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *_: object) -> None:
            return

        def do_GET(self) -> None:
            answer = stage.answer(Asked(self.command, self.path, dict(self.headers)))
            self.send_response(answer.status)
            for name, value in {"Content-Type": answer.kind, **answer.headers}.items():
                self.send_header(name, value)
            try:
                self._send(answer)
            except OSError:
                stage.left.set()
                self.close_connection = True

        do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815 - http.server's own names

        def _send(self, answer: Answer) -> None:
            if isinstance(answer.body, bytes):
                size = len(answer.body) if answer.promised is None else answer.promised
                self.send_header("Content-Length", str(size))
                self.end_headers()
                self.wfile.write(answer.body)
                self.close_connection = answer.promised is not None
                return
            chunked = answer.framing == "chunked"
            framing = {"chunked": ("Transfer-Encoding", "chunked"), "length": ("Content-Length", "1000000000")}
            self.send_header(*framing.get(answer.framing, ("Connection", "close")))
            self.end_headers()
            for piece in answer.body():
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
            self.wfile.write(b"0\r\n\r\n" if chunked else b"")
            self.close_connection = not chunked

    server = _Quiet(("127.0.0.1", 0), Handler)
    if secured is not None:
        server.socket = secured.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    stage.url = f"{'https' if secured else 'http'}://127.0.0.1:{server.server_address[1]}"
    try:
        yield stage
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class Session:
    """A reader before the stage. `pauses` are noted and not waited for."""

    reader: GitLabReader
    client: GitLabHttpClient
    deadline: Deadline
    pauses: list[float]


@asynccontextmanager
async def session_at(url: str, token: str | None = TOKEN, total_s: float = 600, **more: Any) -> AsyncIterator[Session]:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    settings = GitLabSettings(url, ToolToken(token) if token else None, "a/b", **more)
    client = create_client(settings, sleep)
    try:
        deadline = Deadline.start(total_s)
        yield Session(GitLabReader(client, "It", deadline), client, deadline, pauses)
    finally:
        await client.connection.http.aclose()


@contextmanager
def source_at(url: str, token: str | None = TOKEN, **more: Any) -> Iterator["Asking"]:
    settings = {"project": "acme/widgets", **more}
    source = GitLabSource(GitLabSettings(url, ToolToken(token) if token else None, **settings))
    _opened.append(source)
    yield Asking(source)


_opened: list[GitLabSource] = []


async def close_sources() -> None:
    """Close what `source_at` opened; a fixture does it in the loop of the test."""
    while _opened:
        await _opened.pop().close()


class Asking:
    """Tools by their names without the prefix."""

    def __init__(self, source: GitLabSource) -> None:
        self.source = source
        self._tools = {tool.spec.name: tool for tool in source.tools}

    async def output(self, name: str, /, **arguments: Any) -> ToolOutput:
        return await self._tools[f"gitlab_{name}"](arguments, ToolContext("session", "call"))

    async def __call__(self, name: str, /, **arguments: Any) -> bytes:
        """All bytes of a stream, as the sandbox gets them."""
        output = await self.output(name, **arguments)
        assert isinstance(output, ByteStream), output
        return b"".join([chunk async for chunk in clean_stream(output, Secrets())])

    async def lines(self, name: str, /, **arguments: Any) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (await self(name, **arguments)).splitlines()]
