"""A parent and its sub-agents on a stage, for tests of what they do together."""

import asyncio
import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from hummingbird.agent.budget import CHAT_LIMITS
from hummingbird.agent.tools.delegate import DelegateTool, RecordEntry
from hummingbird.app.sub_agents import create_sub_agent
from hummingbird.core.journal import ToolFinished, ToolOutcome
from hummingbird.core.protocols.model import DeltaListener, ModelReply, ModelRequest
from hummingbird.core.protocols.observer import RunObserver
from hummingbird.core.protocols.tools import Tool
from tests.agent.stage import Stage, stage
from tests.standins.scripted_model import ScriptedModel, ScriptLine, text_reply, tool_call_reply

CENT = Decimal("0.01")


class Cast(ScriptedModel):
    """One script for each task; the first message says whose turn it is. What is awaited is awaited."""

    def __init__(self, **scripts: Sequence[Any]) -> None:
        super().__init__([], usd=CENT)
        self.scripts = {task: list(lines) for task, lines in scripts.items()}
        self.at_once = self.most_at_once = 0

    async def generate(self, request: ModelRequest, listen: DeltaListener | None = None) -> ModelReply:
        self.requests.append(request)
        line = self.scripts[request.messages[0].text].pop(0)
        self.at_once += 1
        self.most_at_once = max(self.at_once, self.most_at_once)
        try:
            answer = await line(request) if asyncio.iscoroutinefunction(line) else line
            await asyncio.sleep(0)
        finally:
            self.at_once -= 1
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, ModelReply)
        return answer

    def of(self, task: str) -> list[ModelRequest]:
        return [request for request in self.requests if request.messages[0].text == task]

    def assert_consumed(self) -> None:
        left = {task: lines for task, lines in self.scripts.items() if lines}
        assert not left


class Family:
    """A parent on a stage, whose sub-agents are made as the library makes them."""

    def __init__(
        self, model: Cast, tools: Sequence[Tool] = (), *, iterations: int = 10, at_once: int = 3, **setup: Any
    ) -> None:
        self.model, self.there = model, list[str]()
        self.delegate = DelegateTool(self._begin, at_once=at_once, exist=self._exist)
        self.tools, self.iterations = [self.delegate, *tools], iterations
        setup.setdefault("limits", CHAT_LIMITS)
        self.play: Stage = stage(model, tools=self.tools, **setup)

    def _begin(self, observer: RunObserver, usd: Decimal | None, record: RecordEntry) -> Any:
        return create_sub_agent(self.play.loop, self.tools, observer, usd, self.iterations, record=record)

    async def _exist(self, paths: Sequence[str]) -> Sequence[str]:
        return [path for path in paths if path in self.there]

    async def told(self, text: str = "go") -> list[dict[str, Any]]:
        """What the parent's model reads of the last delegation."""
        await self.play.run(text)
        result = self.play.written(ToolFinished)[-1]
        assert result.outcome is ToolOutcome.OK, result.text
        text = result.text[result.text.index("[{") : result.text.rindex("}]") + 2]
        found: list[dict[str, Any]] = json.loads(text)
        return found


def delegates(*tasks: str, **more: Any) -> ModelReply:
    return tool_call_reply(("delegate", json.dumps({"tasks": tasks, **more})))


def waits(seconds: float = 60.0, *, then: ScriptLine | None = None) -> Callable[[ModelRequest], Any]:
    async def wait(_: ModelRequest) -> Any:
        await asyncio.sleep(seconds)
        return then or text_reply("late")

    return wait


async def until(met: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not met():  # noqa: ASYNC110 - of somebody else's state, which tells nobody
            await asyncio.sleep(0.005)
