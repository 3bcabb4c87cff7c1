"""L19: one call stops everything, history stays valid, and the next run works."""

import asyncio
import threading
from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest

from hummingbird.agent.budget import Limits
from hummingbird.domain.errors import CredentialRefused, CreditExhausted, Unavailable
from hummingbird.domain.events import Event, Recorded
from hummingbird.domain.history import NOT_RUN, UNKNOWN_OUTCOME, problems
from hummingbird.domain.journal import EndReason, Entry, ModelAnswered, ToolFinished, ToolOutcome, ToolStarted
from hummingbird.domain.messages import Notice, NoticeKind, ToolMessage
from hummingbird.domain.runs import Outcome
from hummingbird.domain.tools import ToolSpec
from hummingbird.lab.scripted import Line, ScriptedClock, ScriptedModel, calls, says
from hummingbird.ports.model import Listen, ModelReply, ModelRequest
from hummingbird.ports.tool import Tool
from tests.agent.stage import CountingTool, DaySpending, Stage, stage, tool

GRACE = "hummingbird.agent.interruptible.INTERRUPT_GRACE_S"


class Waiting:
    """A tool that runs until it is stopped. `deaf`: not even then."""

    def __init__(self, name: str = "wait", deaf: bool = False, **spec: Any) -> None:
        self.spec = ToolSpec(name, "Waits.", {"type": "object"}, trusted=True, **spec)
        self.began, self.free, self.ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.runs = 0
        self._deaf = deaf

    def available(self) -> bool:
        return True

    async def __call__(self, arguments: Mapping[str, Any], context: object) -> str:
        self.runs += 1
        self.began.set()
        try:
            while not self.free.is_set():
                try:
                    await self.free.wait()
                except asyncio.CancelledError:
                    if not self._deaf:
                        raise
        finally:
            self.ended.set()
        return "late"


class WaitingModel(ScriptedModel):
    """Has one call that never comes back, and then its lines."""

    def __init__(self, lines: list[Line]) -> None:
        super().__init__(lines)
        self.began, self.stopped = asyncio.Event(), asyncio.Event()

    async def generate(self, request: ModelRequest, listen: Listen | None = None) -> ModelReply:
        if self.began.is_set():
            return await super().generate(request, listen)
        self.requests.append(request)
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped.set()
        raise AssertionError("nobody sets this event")


class WaitingClock(ScriptedClock):
    def __init__(self) -> None:
        super().__init__()
        self.asleep = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.asleep.set()
        await asyncio.Event().wait()


async def interrupted(on: Stage, when: asyncio.Event) -> Outcome:
    running = asyncio.create_task(on.run())
    await when.wait()
    on.loop.interrupt()
    outcome = await running
    assert (outcome.reason, outcome.answered, outcome.exit_code) == (EndReason.INTERRUPTED, False, 130)
    assert [m.kind for m in outcome.messages if isinstance(m, Notice)] == [NoticeKind.INTERRUPTED]
    return outcome


async def next_run_works(on: Stage) -> None:
    outcome = await on.run("again")
    assert (outcome.reason, outcome.text) == (EndReason.COMPLETED, "again done")


def results(outcome: Outcome) -> list[str]:
    return [m.text for m in outcome.messages if isinstance(m, ToolMessage)]


async def test_during_a_model_call_the_request_is_stopped() -> None:
    """L19"""
    model = WaitingModel([says("again done")])
    on = stage(model)
    outcome = await interrupted(on, model.began)
    assert model.stopped.is_set()
    assert (outcome.bill.attempts, outcome.bill.answered) == (1, 0)
    await next_run_works(on)


async def test_during_a_batch_every_running_tool_is_stopped() -> None:
    """L19: finished results stay, started ones are of unknown outcome, the others did not run."""
    first, second = Waiting("first"), Waiting("second")
    model = ScriptedModel([calls(("count", "{}"), ("first", "{}"), ("second", "{}"), text="on it"), says("again done")])
    on = stage(model, tools=[CountingTool(), first, second])
    outcome = await interrupted(on, second.began)
    assert first.ended.is_set()
    assert second.ended.is_set()
    assert results(outcome) == ["count number 1", UNKNOWN_OUTCOME, UNKNOWN_OUTCOME]
    assert outcome.text == "on it"
    await next_run_works(on)
    assert (first.runs, second.runs) == (1, 1)


async def test_calls_of_a_sequential_batch_that_had_not_started_do_not_start() -> None:
    """L19"""
    waiting, counting = Waiting(exclusive=True), CountingTool()
    model = ScriptedModel([calls(("wait", "{}"), ("count", "{}")), says("again done")])
    on = stage(model, tools=[waiting, counting])
    outcome = await interrupted(on, waiting.began)
    assert results(outcome) == [UNKNOWN_OUTCOME, NOT_RUN]
    assert counting.runs == []
    assert [entry.outcome for entry in on.written(ToolFinished)] == [ToolOutcome.UNKNOWN, ToolOutcome.SKIPPED]
    await next_run_works(on)


async def test_during_the_wait_for_a_retry() -> None:
    """L13, L19: waiting can be interrupted."""
    clock = WaitingClock()
    on = stage(ScriptedModel([Unavailable("busy", 600.0), says("again done")]), clock=clock)
    await interrupted(on, clock.asleep)
    await next_run_works(on)


async def test_during_a_refresh_of_credentials() -> None:
    """L19"""

    class Refreshing(ScriptedModel):
        asking = asyncio.Event()

        async def refresh_credentials(self) -> bool:
            self.asking.set()
            await asyncio.Event().wait()
            return True

    model = Refreshing([CredentialRefused("old key"), says("again done")])
    on = stage(model)
    await interrupted(on, model.asking)
    await next_run_works(on)


async def test_during_a_look_at_the_money_of_the_day() -> None:
    """L19, L6: the record is shared, another process may hold it."""
    asking = asyncio.Event()

    class Locked(DaySpending):
        async def spent_today(self, project: str) -> Decimal:
            asking.set()
            await asyncio.Event().wait()
            return self.today

    on = stage(ScriptedModel([]), limits=Limits(usd_per_day=Decimal(1)), spending=Locked(), project="p")
    await interrupted(on, asking)


async def test_a_hook_that_swallows_the_interrupt_starts_no_tool() -> None:
    """L19"""
    asking = asyncio.Event()

    class Swallowing:
        name = "swallowing"

        async def before_tool(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> None:
            asking.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return

        async def after_tool(self, spec: ToolSpec, arguments: Mapping[str, Any], result: str) -> None:
            return

    counting = CountingTool()
    on = stage(ScriptedModel([calls(("count", "{}"))]), tools=[counting], hooks=[Swallowing()])
    outcome = await interrupted(on, asking)
    assert (counting.runs, results(outcome)) == ([], [NOT_RUN])


async def test_a_tool_that_ignores_it_is_left_behind_and_not_heard_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """L19: an interrupt always returns; what comes too late is not written into another run."""
    monkeypatch.setattr(GRACE, 0.01)
    deaf = Waiting(deaf=True)
    on = stage(ScriptedModel([calls(("wait", "{}")), says("again done")]), tools=[deaf])
    outcome = await interrupted(on, deaf.began)
    assert results(outcome) == [UNKNOWN_OUTCOME]
    await next_run_works(on)
    before = list(on.journal.entries())
    deaf.free.set()
    await deaf.ended.wait()
    for _ in range(5):
        await asyncio.sleep(0)
    assert list(on.journal.entries()) == before


async def test_a_hook_that_ignores_it_is_not_heard_any_more_either(monkeypatch: pytest.MonkeyPatch) -> None:
    """L19, L18"""
    monkeypatch.setattr(GRACE, 0.01)
    asking, free, left = asyncio.Event(), asyncio.Event(), asyncio.Event()

    class Deaf:
        name = "deaf"

        async def before_tool(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> None:
            return

        async def after_tool(self, spec: ToolSpec, arguments: Mapping[str, Any], result: str) -> str:
            asking.set()
            while not free.is_set():
                with suppress(asyncio.CancelledError):
                    await free.wait()
            left.set()
            return "late"

    on = stage(ScriptedModel([calls(("count", "{}")), says("again done")]), tools=[CountingTool()], hooks=[Deaf()])
    outcome = await interrupted(on, asking)
    assert results(outcome) == [UNKNOWN_OUTCOME]
    await next_run_works(on)
    before = list(on.journal.entries())
    free.set()
    await left.wait()
    for _ in range(5):
        await asyncio.sleep(0)
    assert list(on.journal.entries()) == before


async def test_a_blocking_function_is_left_behind_at_once() -> None:
    """L19: a thread cannot be stopped, and nobody waits for it."""
    free, loop, began = threading.Event(), asyncio.get_running_loop(), asyncio.Event()

    def block() -> str:
        loop.call_soon_threadsafe(began.set)
        return str(free.wait(30))

    on = stage(ScriptedModel([calls(("block", "{}")), says("again done")]), tools=[tool("block", block)])
    outcome = await interrupted(on, began)
    free.set()
    assert results(outcome) == [UNKNOWN_OUTCOME]
    await next_run_works(on)


async def test_what_a_tool_still_brings_when_it_is_interrupted_is_written_down() -> None:
    """L19, L15: a sub-agent that was stopped still says what it spent."""
    began = asyncio.Event()

    async def partial() -> str:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "half of it"
        return "never"

    on = stage(ScriptedModel([calls(("partial", "{}")), says("again done")]), tools=[tool("partial", partial)])
    outcome = await interrupted(on, began)
    assert results(outcome) == ["half of it"]
    await next_run_works(on)


async def test_before_the_run_has_begun() -> None:
    """L19: the call was made, the event loop had not come to it."""
    on = stage(ScriptedModel([says("again done")]))
    running = asyncio.create_task(on.loop.run("go"))
    on.loop.interrupt()
    outcome = await running
    assert (outcome.reason, on.requests) == (EndReason.INTERRUPTED, [])
    on.check(outcome)
    await next_run_works(on)


async def test_with_no_run_at_all_it_does_nothing() -> None:
    """L19: Ctrl-C at an idle prompt is not held against the next message."""
    on = stage(ScriptedModel([says("done")]))
    on.loop.interrupt()
    assert (await on.run()).reason is EndReason.COMPLETED


async def test_twice_is_once() -> None:
    """L19"""
    model = WaitingModel([says("again done")])
    on = stage(model)
    running = asyncio.create_task(on.run())
    await model.began.wait()
    on.loop.interrupt()
    on.loop.interrupt()
    assert (await running).reason is EndReason.INTERRUPTED
    await next_run_works(on)


async def test_an_interrupted_run_does_not_go_on() -> None:
    """L19, L2: it has ended; going on is for runs that lost their process."""
    model = WaitingModel([])
    on = stage(model)
    await interrupted(on, model.began)
    assert not on.loop.state.active


class Interrupting:
    """Interrupts when so many entries have been written, right between two of them."""

    def __init__(self, at: int) -> None:
        self.left = at
        self.on: Stage | None = None

    def __call__(self, event: Event) -> None:
        if isinstance(event, Recorded):
            self.left -= 1
            if self.left == 0 and self.on is not None:
                self.on.loop.interrupt()


RICH: list[Line] = [
    Unavailable("busy"),
    says(""),
    calls(("count", "{}"), ("look", "{}"), ("nope", "{}"), text="working"),
    CreditExhausted("no credit"),
]
RICH_TOO: list[Line] = [calls(("count", "{}")), calls(("count", "{}")), calls(("count", "{}")), says("done")]


def rich(watcher: Interrupting | None = None) -> Stage:
    models = ScriptedModel(RICH, name="a:one"), ScriptedModel(RICH_TOO, name="b:two")
    tools: list[Tool] = [CountingTool(), tool()]
    observers = [watcher] if watcher else []
    return stage(*models, tools=tools, limits=Limits(iterations=5), observers=observers)


async def test_between_any_two_entries_of_a_rich_run() -> None:
    """L19, L4: history is valid wherever it comes, and the next run works."""
    whole = rich()
    await whole.run()
    total = len(whole.journal.entries())
    assert total > 25
    reasons = []
    for at in range(1, total + 1):
        watcher = Interrupting(at)
        watcher.on = on = rich(watcher)
        outcome = await on.loop.run("go")
        on.check(outcome)
        reasons.append(outcome.reason)
        assert outcome.reason in {EndReason.INTERRUPTED, EndReason.MAX_ITERATIONS}
        later = stage(ScriptedModel([says("again done")]), tools=[CountingTool(), tool()], journal=on.journal)
        await next_run_works(later)
    assert reasons.count(EndReason.INTERRUPTED) > total - 5


async def test_cancelling_the_task_of_a_run_leaves_a_journal_that_can_go_on() -> None:
    """L2: the caller's own cancellation is not swallowed; it is like the death of the process."""
    model = WaitingModel([])
    on = stage(model)
    running = asyncio.create_task(on.loop.run("go"))
    await model.began.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert model.stopped.is_set()
    later = stage(ScriptedModel([says("done")]), journal=on.journal)
    assert (await later.go_on()).text == "done"


async def test_cancelling_the_task_stops_the_tools() -> None:
    """L19"""
    waiting = Waiting()
    on = stage(ScriptedModel([calls(("wait", "{}"))]), tools=[waiting])
    running = asyncio.create_task(on.loop.run("go"))
    await waiting.began.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert waiting.ended.is_set()
    counts: dict[type[Entry], int] = {
        kind: len(on.written(kind)) for kind in (ModelAnswered, ToolStarted, ToolFinished)
    }
    assert counts == {ModelAnswered: 1, ToolStarted: 1, ToolFinished: 0}
    assert list(problems(on.loop.state.conversation.view())) == []
