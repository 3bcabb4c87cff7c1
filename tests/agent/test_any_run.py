"""Whatever models answer and tools do, a run ends, and its history is valid everywhere."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hummingbird.agent.budget import RunLimits
from hummingbird.core.errors import (
    ContextOverflow,
    CredentialRefused,
    CreditExhausted,
    InvalidRequest,
    ProviderConnectionLost,
    ProviderRequestRefused,
    ProviderTimeout,
    ProviderUnavailable,
    ThinkingRefused,
)
from hummingbird.core.events import EntryRecorded, RunEvent
from hummingbird.core.journal import EndReason, FinishReason, ModelAnswered, ToolStarted
from hummingbird.core.limits import CONTINUATIONS
from hummingbird.core.messages import AssistantMessage, ProviderEcho, ToolCall
from hummingbird.core.protocols.model import ModelReply
from hummingbird.core.protocols.tools import DenyCall, Tool
from hummingbird.core.tool_spec import ToolSpec
from hummingbird.core.usage import TokenUsage
from hummingbird.storage.journals import MemoryJournal
from tests.agent.stage import CountingTool, Stage, answered_calls, stage, tool
from tests.standins.scripted_model import ScriptedClock, ScriptedModel, text_reply
from tests.thoroughly import tries

TEXTS = st.sampled_from(["", " ", "text", "more text", "caf\u00e9"])
NAMES = st.sampled_from(["count", "look", "Look", "alone", "broken", "garbage", "exits", "cancels", "nope", ""])
ARGUMENTS = st.sampled_from(["{}", '{"a":1}', '{ "a": 1 }', "", "[]", "{", '{"a":"\\u00e9"}'])
IDS = st.sampled_from(["", "1", "2", "call_0"])
ECHOES = st.sampled_from([None, ProviderEcho("wire", "m", {"signed": "yes"})])


@st.composite
def replies(draw: st.DrawFn) -> ModelReply:
    finish = draw(st.sampled_from([*[FinishReason.STOP] * 6, *FinishReason]))
    calls = tuple(
        ToolCall(draw(IDS), draw(NAMES), draw(ARGUMENTS)) for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2, 4])))
    )
    message = AssistantMessage(draw(TEXTS), draw(TEXTS), calls, draw(ECHOES), paused=finish is FinishReason.PAUSE)
    usage = TokenUsage(fresh=draw(st.sampled_from([0, 10, 400])), output=draw(st.sampled_from([0, 5])))
    return ModelReply(message, finish, usage)


ERRORS = st.sampled_from(
    [
        ProviderUnavailable("busy"),
        ProviderUnavailable("busy", 3.0),
        ProviderTimeout("slow"),
        ProviderConnectionLost("reset"),
        ContextOverflow("too long"),
        ThinkingRefused("signature"),
        ProviderRequestRefused("400"),
        CredentialRefused("401"),
        CreditExhausted("402"),
        InvalidRequest("ours"),
        ZeroDivisionError("oops"),
    ]
)
LINES = st.lists(st.one_of(replies(), replies(), replies(), ERRORS), max_size=12)
LIMITS = st.builds(
    RunLimits,
    iterations=st.integers(1, 12),
    context_tokens=st.sampled_from([None, 500, 60_000]),
    usd=st.sampled_from([None, Decimal("0.03")]),
    seconds=st.sampled_from([None, 30.0]),
    warns=st.booleans(),
)


@st.composite
def chains(draw: st.DrawFn) -> list[ScriptedModel]:
    return [
        ScriptedModel(
            [*draw(LINES), *[text_reply("enough")] * 40],
            name=f"m:{number}",
            disabling_tools_is_free=draw(st.booleans()),
            usd=draw(st.sampled_from([None, Decimal("0.01"), Decimal(0)])),
            refreshable=draw(st.booleans()),
            context_tokens=draw(st.sampled_from([600, 200_000])),
        )
        for number in range(draw(st.integers(1, 3)))
    ]


class Moody:
    name = "moody"

    async def before_tool(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> DenyCall | None:
        if spec.name == "alone":
            raise ValueError("not today")
        return DenyCall("no") if arguments else None

    async def after_tool(self, spec: ToolSpec, arguments: Mapping[str, Any], result: str) -> str | None:
        return "" if spec.name == "look" else None


def tools() -> list[Tool]:
    async def broken(**_: Any) -> str:
        raise ValueError("broken")

    async def garbage(**_: Any) -> Any:
        return object()

    async def exits(**_: Any) -> str:
        raise SystemExit(1)

    async def cancels(**_: Any) -> str:
        raise asyncio.CancelledError

    made: list[Tool] = [CountingTool(), tool("look"), tool("alone", exclusive=True)]
    return [*made, tool("broken", broken), tool("garbage", garbage), tool("exits", exits), tool("cancels", cancels)]


class Meddling:
    """Interrupts or steers at given entries."""

    def __init__(self, interrupt_at: int, steer_at: int) -> None:
        self.on: Stage | None = None
        self._interrupt_at, self._steer_at, self._count = interrupt_at, steer_at, 0

    def __call__(self, event: RunEvent) -> None:
        if isinstance(event, EntryRecorded) and self.on is not None:
            self._count += 1
            if self._count == self._interrupt_at:
                self.on.loop.interrupt()
            if self._count == self._steer_at:
                self.on.loop.steer("by the way")


def again(model: ScriptedModel) -> ScriptedModel:
    return ScriptedModel([text_reply("enough")] * 40, name=model.name, context_tokens=model.context_tokens)


@settings(max_examples=tries(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(models=chains(), limits=LIMITS, hooked=st.booleans(), meddled=st.tuples(st.integers(0, 60), st.integers(0, 40)))
async def test_every_run_ends_with_a_valid_history(
    models: list[ScriptedModel], limits: RunLimits, hooked: bool, meddled: tuple[int, int]
) -> None:
    """And so does the one after it; the stage checks requests and projections of both."""
    meddling = Meddling(*meddled)
    hooks = [Moody()] if hooked else []
    meddling.on = on = stage(*models, tools=tools(), limits=limits, hooks=hooks, observers=[meddling], streaming=hooked)
    outcome = await on.run()
    assert outcome.reason in set(EndReason)
    # a final answer that was cut off may be continued
    assert answered_calls(on.journal.entries()) == outcome.iterations <= limits.iterations + 1 + CONTINUATIONS
    second = await on.run("and now?")
    assert second.reason in set(EndReason)
    assert second.bill.attempts >= outcome.bill.attempts


@pytest.mark.thorough
@settings(max_examples=tries(200), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(models=chains(), limits=LIMITS, cut=st.integers(0, 60))
async def test_every_prefix_of_every_run_can_go_on(models: list[ScriptedModel], limits: RunLimits, cut: int) -> None:
    """Nothing answered is asked again, nothing started is started again."""
    limits = replace(limits, seconds=None)
    on = stage(*models, tools=tools(), limits=limits)
    await on.run()
    prefix = list(on.journal.entries()[: max(3, cut)])
    clock = ScriptedClock(prefix[-1].at)
    later = stage(*map(again, models), tools=tools(), limits=limits, journal=MemoryJournal(prefix), clock=clock)
    outcome = await later.go_on() if later.loop.state.active else await later.run("again")
    assert outcome.reason in set(EndReason)
    assert answered_calls(later.journal.entries()) <= limits.iterations + 1
    started = [entry.call_id for entry in later.written(ToolStarted)]
    assert len(started) == len(set(started))
    answered = [entry.call_id for entry in later.written(ModelAnswered)]
    assert len(answered) == len(set(answered))
