"""A model and a clock that follow a script, for tests of everything above the model clients.

A script must be used up: `assert_consumed` names what is left.
"""

import asyncio
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TypeAlias

from hummingbird.core.events import CallDelta, ReasoningDelta, TextDelta
from hummingbird.core.journal import FinishReason
from hummingbird.core.messages import AssistantMessage, ToolCall
from hummingbird.core.protocols.model import DeltaListener, ModelReply, ModelRequest
from hummingbird.core.usage import TokenUsage

ScriptedAnswer: TypeAlias = ModelReply | Exception
ScriptLine: TypeAlias = ScriptedAnswer | Callable[[ModelRequest], ScriptedAnswer]


def text_reply(
    text: str, *, finish: FinishReason = FinishReason.STOP, reasoning: str = "", usage: TokenUsage | None = None
) -> ModelReply:
    """Return a reply with text."""
    return ModelReply(AssistantMessage(text, reasoning), finish, usage or TokenUsage(fresh=100, output=10))


def tool_call_reply(
    *wanted: tuple[str, str] | tuple[str, str, str], text: str = "", finish: FinishReason = FinishReason.STOP
) -> ModelReply:
    """Return a reply with tool calls, given as (name, JSON arguments[, id])."""
    made = tuple(ToolCall(w[2] if len(w) == 3 else "", w[0], w[1]) for w in wanted)
    return ModelReply(AssistantMessage(text, calls=made), finish, TokenUsage(fresh=100, output=10))


class ScriptedModel:
    """A model that answers line by line. `requests` keeps what it was asked; `usd` None makes its price unknown."""

    def __init__(
        self,
        lines: Sequence[ScriptLine],
        *,
        name: str = "scripted:one",
        context_tokens: int = 200_000,
        disabling_tools_is_free: bool = False,
        usd: Decimal | None = Decimal("0.01"),
        refreshable: bool = False,
    ) -> None:
        self._lines = list(lines)
        self._name = name
        self._context_tokens = context_tokens
        self._free = disabling_tools_is_free
        self._usd = usd
        self._refreshable = refreshable
        self.requests: list[ModelRequest] = []
        self.refreshes = 0

    @property
    def name(self) -> str:
        return self._name

    @property
    def context_tokens(self) -> int:
        return self._context_tokens

    @property
    def takes_images(self) -> bool:
        return False

    @property
    def disabling_tools_is_free(self) -> bool:
        return self._free

    async def generate(self, request: ModelRequest, listen: DeltaListener | None = None) -> ModelReply:
        self.requests.append(request)
        if not self._lines:
            raise AssertionError(f"{self._name} has no line left for request {len(self.requests)}")
        line = self._lines.pop(0)
        answer = line(request) if callable(line) else line
        if isinstance(answer, Exception):
            raise answer
        if listen is not None:
            _stream_deltas(answer.message, listen)
        await asyncio.sleep(0)
        return answer

    async def refresh_credentials(self) -> bool:
        self.refreshes += 1
        return self._refreshable

    def price(self, usage: TokenUsage) -> Decimal | None:
        return self._usd

    async def close(self) -> None:
        return

    def assert_consumed(self) -> None:
        """Fail if lines of the script were not used."""
        assert not self._lines, f"{len(self._lines)} lines of {self._name} were never used: {self._lines}"


def _stream_deltas(message: AssistantMessage, listen: DeltaListener) -> None:
    if message.reasoning:
        listen(ReasoningDelta(message.reasoning))
    for word in message.text.split(" ") if message.text else ():
        listen(TextDelta(word))
    for index, call in enumerate(message.calls):
        listen(CallDelta(index, call.name, call.arguments))


class ScriptedClock:
    """A clock on which time passes only when somebody sleeps. `naps` records how long they slept."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self._now = now
        self.naps: list[float] = []

    def now(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += seconds

    async def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self._now += seconds
        await asyncio.sleep(0)
