"""A stage for the loop: scripted models, a scripted clock, tools, and the checks that every run must pass."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from random import Random
from typing import Any, TypeVar

import msgspec

from hummingbird.agent.budget import RunLimits
from hummingbird.agent.loop import AgentLoop
from hummingbird.agent.loop_config import LoopConfig
from hummingbird.agent.tools.registry import Toolbox
from hummingbird.core.conversation import Conversation
from hummingbird.core.events import RunEvent, RunOutcome
from hummingbird.core.journal import (
    FinishReason,
    JournalEntry,
    ModelAnswered,
    NoticeShown,
    ResultsWithheld,
    RunEnded,
    RunStarted,
)
from hummingbird.core.messages import (
    AssistantMessage,
    Notice,
    NoticeKind,
    ToolMessage,
    find_problems,
    find_request_problems,
)
from hummingbird.core.projections import UsageLedger, compute_status, render_transcript
from hummingbird.core.protocols.model import ModelReply, ModelRequest
from hummingbird.core.protocols.sessions import Journal
from hummingbird.core.protocols.tools import Tool
from hummingbird.core.tool_spec import ToolSpec
from hummingbird.core.usage import TokenUsage
from hummingbird.storage.journals import MemoryJournal
from tests.standins.function_tool import FunctionTool
from tests.standins.scripted_model import ScriptedClock, ScriptedModel

Kind = TypeVar("Kind", bound=JournalEntry)

SYSTEM = "You are under test."
ANYTHING: Mapping[str, Any] = {"type": "object"}


def tool(
    name: str = "look",
    does: Callable[..., Any] | str = "seen",
    *,
    schema: Mapping[str, Any] = ANYTHING,
    check: Callable[[], bool] | None = None,
    **spec: Any,
) -> FunctionTool:
    """A tool that always says the same, or calls `does(**arguments)`. Its words are our own unless told otherwise, so
    that results read as they were said."""

    async def say(**_: Any) -> Any:
        return does

    function = say if isinstance(does, str) else does
    spec.setdefault("trusted", True)
    return FunctionTool(ToolSpec(name, f"Does {name}.", schema, **spec), function, check)


def paused(text: str) -> ModelReply:
    """An answer that the provider stopped in the middle and wants sent again as it is."""
    return ModelReply(AssistantMessage(text, paused=True), FinishReason.PAUSE, TokenUsage(fresh=100, output=10))


class CountingTool:
    """Says how often it was called, so that no two results are alike; `runs` has the arguments of every call."""

    def __init__(self, name: str = "count", **spec: Any) -> None:
        self.spec = ToolSpec(name, f"Does {name}.", ANYTHING, **{"trusted": True, **spec})
        self.runs: list[dict[str, Any]] = []

    def is_available(self) -> bool:
        return True

    async def __call__(self, arguments: Mapping[str, Any], context: object) -> str:
        self.runs.append(dict(arguments))
        return f"{self.spec.name} number {len(self.runs)}"


@dataclass
class Stage:
    """One session: everything a test wants to look at afterwards."""

    loop: AgentLoop
    journal: Journal
    clock: ScriptedClock
    models: Sequence[ScriptedModel]
    seen: list[RunEvent] = field(default_factory=list)

    async def run(self, text: str = "go", **given: Any) -> RunOutcome:
        outcome = await self.loop.run(text, **given)
        self.check(outcome)
        return outcome

    async def go_on(self) -> RunOutcome:
        outcome = await self.loop.resume()
        self.check(outcome)
        return outcome

    def written(self, kind: type[Kind]) -> list[Kind]:
        return [entry for entry in self.journal.entries() if isinstance(entry, kind)]

    def notices(self, kind: NoticeKind) -> list[NoticeShown]:
        return [entry for entry in self.written(NoticeShown) if entry.notice is kind]

    @property
    def requests(self) -> list[ModelRequest]:
        return [request for model in self.models for request in model.requests]

    def check(self, outcome: RunOutcome) -> None:
        """Check what holds for every run."""
        check_outcome(outcome, self.journal.entries())
        check_requests(self.requests, self.journal.entries())

    def consumed(self) -> None:
        for model in self.models:
            model.assert_consumed()


def stage(
    *models: ScriptedModel,
    tools: Sequence[Tool] = (),
    journal: Journal | None = None,
    clock: ScriptedClock | None = None,
    limits: RunLimits | None = None,
    system: str = SYSTEM,
    **setup: Any,
) -> Stage:
    """A loop on a stage. `models` are the primary and its fallback chain."""
    clock = clock or ScriptedClock()
    journal = MemoryJournal() if journal is None else journal
    seen: list[RunEvent] = []
    setup.setdefault("random", Random(7))
    setup.setdefault("observers", (seen.append,))
    made = LoopConfig(
        models=models, toolbox=Toolbox(tools), system=system, clock=clock, limits=limits or RunLimits(), **setup
    )
    return Stage(AgentLoop(journal, made, "session-1"), journal, clock, models, seen)


def check_outcome(outcome: RunOutcome, entries: Sequence[JournalEntry]) -> None:
    assert list(find_problems(outcome.messages)) == []
    assert outcome.text.strip()
    assert Conversation.from_entries(entries).full_view() == list(outcome.messages)
    assert UsageLedger.from_entries(entries).bill() == outcome.bill
    ended = entries[-1]
    assert isinstance(ended, RunEnded)
    assert (ended.reason, ended.text, ended.answered) == (outcome.reason, outcome.text, outcome.answered)
    runs = [entry.run_id for entry in entries if isinstance(entry, RunEnded)]
    assert len(runs) == len(set(runs))  # a run ends once
    now = compute_status(entries)
    assert (now.ended, now.iterations, now.running_tools) == (outcome.reason, outcome.iterations, ())
    assert render_transcript(entries).endswith(f"{outcome.bill}\n")


def check_requests(requests: Sequence[ModelRequest], entries: Sequence[JournalEntry]) -> None:
    for request in requests:
        assert list(find_request_problems(request.messages)) == []
        assert request.cached_messages <= len(request.messages)
    if any(isinstance(entry, ResultsWithheld) for entry in entries):
        return
    for earlier, later in pairwise(requests):
        if earlier.encoded is later.encoded:  # the same wire epoch: nothing is taken back
            assert list(later.messages[: len(earlier.messages)]) == list(earlier.messages)
            assert prefix_bytes(later) == prefix_bytes(earlier)


def prefix_bytes(request: ModelRequest) -> bytes:
    """System prompt and tools as bytes, in the order in which they stand."""
    return msgspec.json.encode((request.system, request.tools))


def notices_in(request: ModelRequest, kind: NoticeKind) -> list[str]:
    return [m.text for m in request.messages if isinstance(m, Notice) and m.kind is kind]


def results_in(request: ModelRequest) -> list[ToolMessage]:
    return [message for message in request.messages if isinstance(message, ToolMessage)]


def answered_calls(entries: Sequence[JournalEntry]) -> int:
    """How many answers the last run has."""
    count = 0
    for entry in entries:
        count = 0 if isinstance(entry, RunStarted) else count + isinstance(entry, ModelAnswered)
    return count


class DaySpending:
    """What a project has spent today, in memory."""

    def __init__(self, today: Decimal = Decimal(0)) -> None:
        self.today = today
        self.asked_for: list[str] = []

    async def usd_today(self, project: str) -> Decimal:
        self.asked_for.append(project)
        return self.today

    async def add(self, project: str, usd: Decimal) -> None:
        self.today += usd
