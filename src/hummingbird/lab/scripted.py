"""A model and a clock that do what a script says: for tests of everything above the wire.

A script must be used up: `assert_consumed` names what is left.
"""

import asyncio
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TypeAlias

from hummingbird.domain.events import CallDelta, ReasoningDelta, TextDelta
from hummingbird.domain.journal import Finish
from hummingbird.domain.messages import AssistantMessage, ToolCall
from hummingbird.domain.usage import Usage
from hummingbird.ports.model import Listen, ModelReply, ModelRequest

Answer: TypeAlias = ModelReply | Exception
Line: TypeAlias = Answer | Callable[[ModelRequest], Answer]


def says(text: str, *, finish: Finish = Finish.STOP, reasoning: str = "", usage: Usage | None = None) -> ModelReply:
    return ModelReply(AssistantMessage(text, reasoning), finish, usage or Usage(fresh=100, output=10))


def calls(*wanted: tuple[str, str] | tuple[str, str, str], text: str = "", finish: Finish = Finish.STOP) -> ModelReply:
    """Tool calls as (name, JSON arguments[, id]); ids are made up where none is given."""
    made = tuple(ToolCall(w[2] if len(w) == 3 else "", w[0], w[1]) for w in wanted)
    return ModelReply(AssistantMessage(text, calls=made), finish, Usage(fresh=100, output=10))


class ScriptedModel:
    """Plays its lines in order. `requests` keeps what it was asked; `usd` None makes its price unknown."""

    def __init__(
        self,
        lines: Sequence[Line],
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
    def disabling_tools_is_free(self) -> bool:
        return self._free

    async def generate(self, request: ModelRequest, listen: Listen | None = None) -> ModelReply:
        self.requests.append(request)
        if not self._lines:
            raise AssertionError(f"{self._name} has no line left for request {len(self.requests)}")
        line = self._lines.pop(0)
        answer = line(request) if callable(line) else line
        if isinstance(answer, Exception):
            raise answer
        if listen is not None:
            _tell(answer.message, listen)
        await asyncio.sleep(0)
        return answer

    async def refresh_credentials(self) -> bool:
        self.refreshes += 1
        return self._refreshable

    def price(self, usage: Usage) -> Decimal | None:
        return self._usd

    async def close(self) -> None:
        return

    def assert_consumed(self) -> None:
        assert not self._lines, f"{len(self._lines)} lines of {self._name} were never used: {self._lines}"


def _tell(message: AssistantMessage, listen: Listen) -> None:
    if message.reasoning:
        listen(ReasoningDelta(message.reasoning))
    for word in message.text.split(" ") if message.text else ():
        listen(TextDelta(word))
    for index, call in enumerate(message.calls):
        listen(CallDelta(index, call.name, call.arguments))


class ScriptedClock:
    """Time that passes only when somebody sleeps. `naps` is how long they slept."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self._now = now
        self.naps: list[float] = []

    def now(self) -> float:
        return self._now

    def pass_by(self, seconds: float) -> None:
        self._now += seconds

    async def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self._now += seconds
        await asyncio.sleep(0)
