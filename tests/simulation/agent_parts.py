"""What an agent uses in the simulation: a scripted provider of models, a sandbox and one source.

The client of the provider is the real one, down to HTTP; sandbox and source are behind their protocols.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence, Set
from contextvars import ContextVar
from decimal import Decimal
from typing import Any

import httpx2

from hummingbird.core.errors import SandboxBroken, SourceUnavailable
from hummingbird.core.journal import FinishReason
from hummingbird.core.messages import AssistantMessage, ToolCall, UserMessage
from hummingbird.core.protocols.model import DeltaListener, ModelReply, ModelRequest
from hummingbird.core.protocols.sandbox import Chunks, ExecResult
from hummingbird.core.protocols.tools import ToolContext, ToolOutput
from hummingbird.core.tool_spec import ToolEffect, ToolSpec
from hummingbird.core.usage import TokenUsage
from hummingbird.models.http_model import HttpModel
from tests.simulation.event_loop import PROCESS
from tests.simulation.gitlab_service import ResponseBody, SimulatedGitLab, read_as_tool
from tests.simulation.network import HANG_S, AnswerLostError, BusyError, Fate, Network, NotDoneError

MODEL = "openai-chat:simulated"
MODEL_URL = "https://model.simulated/v1"
PRICES = {MODEL: {"input": 8.0, "output": 40.0}}
USD_PER_CALL = Decimal("0.01")  # 1000 tokens in and 50 out
DRIP_S = 110.0  # at most, between two pieces: a little less than what counts as a stall
_FILE = "common/src/states/basic_melee.rs"
FINDINGS: Sequence[dict[str, object]] = (
    {"file": _FILE, "line": 22, "severity": "major", "text": "Nobody sets this field."},
    {"file": _FILE, "line": 27, "severity": "minor", "text": "This name says too little."},
)


class SimulatedProvider:
    """The service's side of a model. `on_call` is told of each request before it is answered.

    A `tireless` one wants more tools than any budget allows. An answer takes up to `answer_s`.
    """

    def __init__(self, network: Network, *, tireless: bool = False, answer_s: float = 0.0) -> None:
        self.network, self._tireless, self._answer_s = network, tireless, answer_s
        self.calls = 0
        self.on_call: list[Callable[[ModelRequest, str], None]] = []

    async def answer(self, request: ModelRequest, process: str) -> ModelReply:
        """Run a command, read a log, report findings, then answer."""
        self.calls += 1
        for listen in self.on_call:
            listen(request, process)
        await asyncio.sleep(self.network.draw(0.0, self._answer_s))
        said = [message for message in request.messages if isinstance(message, UserMessage)]
        begin = max(at for at, message in enumerate(request.messages) if isinstance(message, UserMessage))
        turn = sum(isinstance(message, AssistantMessage) for message in request.messages[begin:])
        names = {tool.name for tool in request.tools}
        usage = TokenUsage(fresh=1000, output=50)
        calls = () if request.disable_tools else self._choose_calls(turn, names)
        if calls:
            made = tuple(ToolCall(f"{request.call_id[:10]}{at}", *call) for at, call in enumerate(calls))
            return ModelReply(AssistantMessage(calls=made), FinishReason.STOP, usage)
        text = f"This is answer {len(said)}: the compiler says no."
        return ModelReply(AssistantMessage(text), FinishReason.STOP, usage)

    def _choose_calls(self, turn: int, names: Set[str]) -> Sequence[tuple[str, str]]:
        if turn == 0 and "report_finding" in names:
            return [("report_finding", json.dumps(finding)) for finding in FINDINGS]
        wanted = ["sandbox_exec", "read_log"][turn] if turn < 2 else "sandbox_exec" if self._tireless else ""
        if wanted not in names:
            return ()
        return [(wanted, json.dumps({"command": f"make {turn}"}) if wanted == "sandbox_exec" else "{}")]


ASKED: ContextVar[ModelRequest] = ContextVar("the request that a process sends to a model")


def note_request(generate: Callable[..., Any]) -> Callable[..., Any]:
    """Return `HttpModel.generate` so that the provider knows which request it gets; its bytes do not say so."""

    async def observed(model: HttpModel, request: ModelRequest, listen: DeltaListener | None = None) -> ModelReply:
        ASKED.set(request)
        reply: ModelReply = await generate(model, request, listen)
        return reply

    return observed


class SimulatedModelTransport(httpx2.AsyncBaseTransport):
    """Carries requests of the real adapter for chat completions, and answers in pieces."""

    def __init__(self, provider: SimulatedProvider) -> None:
        self._provider = provider

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await request.aread()
        if request.method == "GET":
            return await self._list_models(request)
        network, process, asked = self._provider.network, PROCESS.get(), ASKED.get()
        fate = network.draw_stream_fate(process)
        patience_s = request.extensions["timeout"]["read"]
        try:
            async with asyncio.timeout(patience_s):
                reply = await network.exchange(
                    "model", "answer", lambda: self._provider.answer(asked, process), writes=True
                )
        except NotDoneError as error:
            raise httpx2.ConnectError(str(error), request=request) from error
        except AnswerLostError as error:
            if network.happens(0.5):
                return httpx2.Response(502, stream=ResponseBody(b""), request=request)
            raise httpx2.ReadError(str(error), request=request) from error
        except BusyError:
            return httpx2.Response(429, headers={"retry-after": "10"}, stream=ResponseBody(b"{}"), request=request)
        except TimeoutError as error:
            raise httpx2.ReadTimeout("The model did not answer.", request=request) from error
        return httpx2.Response(
            200,
            headers={"content-type": "application/json"},
            stream=_AnswerPieces(network, _to_pieces(reply), fate),
            request=request,
        )

    async def _list_models(self, request: httpx2.Request) -> httpx2.Response:
        """Answer what the server is asked before the first call: it has no list of models."""

        async def refuse() -> None:
            return None

        try:
            async with asyncio.timeout(request.extensions["timeout"]["read"]):
                await self._provider.network.exchange("model", "GET models", refuse)
        except (NotDoneError, AnswerLostError, BusyError, TimeoutError) as error:
            raise httpx2.ReadError("The connection broke.", request=request) from error
        return httpx2.Response(404, stream=ResponseBody(b"{}"), request=request)


def create_model_client(provider: SimulatedProvider) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=SimulatedModelTransport(provider), follow_redirects=False)


def _to_pieces(reply: ModelReply) -> list[bytes]:
    """Return the answer as it arrives; the service asks for no stream."""
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in reply.message.calls
    ]
    said, end = {"content": reply.message.text, "tool_calls": calls}, "tool_calls" if calls else "stop"
    usage = {"prompt_tokens": reply.usage.fresh, "completion_tokens": reply.usage.output}
    whole = {"choices": [{"index": 0, "message": said, "finish_reason": end}], "usage": usage}
    content = json.dumps(whole).encode()
    return [content[at : at + 200] for at in range(0, len(content), 200)]


class _AnswerPieces(httpx2.AsyncByteStream):
    """The body of an answer, which may come in drips, stop in the middle, or break off."""

    def __init__(self, network: Network, pieces: Sequence[bytes], fate: Fate) -> None:
        self._network, self._pieces, self._fate = network, pieces, fate

    async def __aiter__(self) -> AsyncIterator[bytes]:
        broken_at = 1 if self._fate in (Fate.STALLED, Fate.CUT_OFF) else len(self._pieces)
        for piece in self._pieces[:broken_at]:
            if self._fate is Fate.DRIPS:
                await asyncio.sleep(self._network.draw(20.0, DRIP_S))
            yield piece
        if self._fate is Fate.STALLED:
            await asyncio.sleep(HANG_S)
        if self._fate is Fate.CUT_OFF:
            raise httpx2.ReadError("The stream broke.")


class SimulatedSandbox:
    """A sandbox whose commands all succeed; its files are only counted."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._changes = 0

    @property
    def name(self) -> str:
        return "simulated"

    async def _call(self, what: str, answer: bytes = b"") -> bytes:
        async def serve() -> bytes:
            return answer

        try:
            return await self._network.exchange("sandbox", what, serve, writes=True)
        except (NotDoneError, AnswerLostError, BusyError) as error:
            raise SandboxBroken(f"The sandbox is gone: {error}") from error

    async def start(self) -> None:
        await self._call("start")

    async def exec(self, command: str, stdin: bytes | Chunks = b"", *, timeout_s: float = 0.0, **_: str) -> ExecResult:
        if not isinstance(stdin, bytes):
            async for _chunk in stdin:
                self._changes += 1
        if command.startswith("make"):
            self._changes += 1
            return ExecResult(2, await self._call("exec", b"error: no"), b"", stdout_bytes=9)
        found = f"{self._changes}".encode() if command.startswith("find") and self._changes else b""
        return ExecResult(0, await self._call("exec", found), b"", stdout_bytes=len(found))

    async def write_file(self, path: str, content: bytes) -> None:
        await self._call("write")

    async def stream_to_file(self, path: str, chunks: Chunks) -> int:
        size = sum([len(chunk) async for chunk in chunks])
        await self._call("write")
        return size

    async def stream_exec(
        self, command: str, stdin: Chunks | None = None, *, timeout_s: float = 0.0
    ) -> AsyncGenerator[bytes, None]:
        yield await self._call("pack", f"archive {self._changes}".encode())

    async def read_file_iter(self, path: str) -> AsyncGenerator[bytes, None]:
        yield await self._call("read", b"content")

    async def cleanup(self) -> None:
        """Do nothing: nothing is left."""

    async def linger(self, session_id: str) -> None:
        """Do nothing: nothing is left."""


class SimulatedSandboxes:
    """Stands in for `SandboxRegistry`."""

    def __init__(self, network: Network) -> None:
        self._network = network

    async def open(self) -> None:
        """Do nothing: there is no pool."""

    def make(self, session_id: str = "") -> SimulatedSandbox:
        return SimulatedSandbox(self._network)

    async def reap_forever(self) -> None:
        """Return: there is no pool."""

    async def close(self) -> None:
        """Do nothing: there is no pool."""


class _LogTool:
    """Reads a log with the read token."""

    spec = ToolSpec(
        name="read_log",
        description="Reads the log of the failed job.",
        schema={"type": "object", "properties": {}, "additionalProperties": False},
        effects=frozenset({ToolEffect.READ}),
        source="simulated",
    )

    def __init__(self, gitlab: SimulatedGitLab) -> None:
        self._gitlab = gitlab

    def is_available(self) -> bool:
        return True

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        try:
            return (await read_as_tool(self._gitlab, "/api/v4/user")).decode()
        except (NotDoneError, AnswerLostError, BusyError, TimeoutError) as error:
            raise SourceUnavailable("GitLab did not answer; try again later.") from error


class SimulatedSource:
    """A data source with one tool."""

    name = "simulated"
    secrets: Sequence[str] = ()

    def __init__(self, gitlab: SimulatedGitLab) -> None:
        self.tools = (_LogTool(gitlab),)

    async def close(self) -> None:
        """Do nothing: there is no connection."""
