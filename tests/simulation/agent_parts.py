"""What an agent uses in the simulation: a scripted model, a sandbox and one source, each behind its protocol."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from hummingbird.core.errors import (
    ProviderConnectionLost,
    ProviderTimeout,
    ProviderUnavailable,
    SandboxBroken,
    SourceUnavailable,
)
from hummingbird.core.journal import FinishReason
from hummingbird.core.messages import AssistantMessage, ToolCall, UserMessage
from hummingbird.core.protocols.model import DeltaListener, Model, ModelReply, ModelRequest
from hummingbird.core.protocols.sandbox import Chunks, ExecResult
from hummingbird.core.protocols.tools import ToolContext, ToolOutput
from hummingbird.core.tool_spec import ToolEffect, ToolSpec
from hummingbird.core.usage import TokenUsage
from hummingbird.models.local_models import LocalModel
from hummingbird.models.rules_report.rules_model import RulesModel
from tests.simulation.event_loop import PROCESS
from tests.simulation.gitlab_service import SimulatedGitLab, read_as_tool
from tests.simulation.network import AnswerLostError, BusyError, Network, NotDoneError

MODEL = "anthropic:claude-sonnet-5-5"
USD_PER_CALL = Decimal("0.01")
ANSWER_S = 300.0


class SimulatedProvider:
    """The service's side of a model. `on_call` is told of each request before it is answered."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.calls = 0
        self.on_call: list[Callable[[ModelRequest, str], None]] = []

    async def answer(self, request: ModelRequest, process: str) -> ModelReply:
        """Run a command, read a log, then answer."""
        self.calls += 1
        for listen in self.on_call:
            listen(request, process)
        said = [message for message in request.messages if isinstance(message, UserMessage)]
        begin = max(at for at, message in enumerate(request.messages) if isinstance(message, UserMessage))
        turn = sum(isinstance(message, AssistantMessage) for message in request.messages[begin:])
        names = {tool.name for tool in request.tools}
        usage = TokenUsage(fresh=1000, output=50)
        call: ToolCall | None = None
        if turn == 0 and "sandbox_exec" in names:
            call = ToolCall(request.call_id[:12], "sandbox_exec", json.dumps({"command": "make"}))
        elif turn == 1 and "read_log" in names:
            call = ToolCall(request.call_id[:12], "read_log", "{}")
        if call is not None and not request.disable_tools:
            return ModelReply(AssistantMessage(calls=(call,)), FinishReason.STOP, usage)
        text = f"This is answer {len(said)}: the compiler says no."
        return ModelReply(AssistantMessage(text), FinishReason.STOP, usage)


class SimulatedModel(LocalModel):
    """A process's client of the provider: the `Model` protocol."""

    def __init__(self, provider: SimulatedProvider) -> None:
        super().__init__(MODEL)
        self._provider = provider

    async def generate(self, request: ModelRequest, listen: DeltaListener | None = None) -> ModelReply:
        process = PROCESS.get()
        try:
            async with asyncio.timeout(ANSWER_S):
                return await self._provider.network.exchange(
                    "model", "answer", lambda: self._provider.answer(request, process), writes=True
                )
        except NotDoneError as error:
            raise ProviderUnavailable("The model cannot be reached.") from error
        except AnswerLostError as error:
            raise ProviderConnectionLost("The connection to the model broke.") from error
        except BusyError as error:
            raise ProviderUnavailable("The model is overloaded.", 10.0) from error
        except TimeoutError as error:
            raise ProviderTimeout("The model did not answer in time.") from error

    def price(self, usage: TokenUsage) -> Decimal | None:
        return USD_PER_CALL


class SimulatedModels:
    """Stands in for `ModelRegistry`."""

    def __init__(self, provider: SimulatedProvider) -> None:
        self._provider = provider

    def resolve(self, name: str, **_: object) -> Model:
        return RulesModel() if name == "digest" else SimulatedModel(self._provider)

    async def close(self) -> None:
        """Do nothing: there is no connection."""


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
        if command == "make":
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
