"""One call stops everything, history stays valid, and the next run works."""

import asyncio
import threading
from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest

from hummingbird.agent.budget import RunLimits
from hummingbird.core.errors import CredentialRefused, CreditExhausted, ProviderUnavailable
from hummingbird.core.events import EntryRecorded, RunEvent, RunOutcome
from hummingbird.core.journal import EndReason, JournalEntry, ModelAnswered, ToolFinished, ToolOutcome, ToolStarted
from hummingbird.core.messages import NOT_RUN, UNKNOWN_OUTCOME, Notice, NoticeKind, ToolMessage, find_problems
from hummingbird.core.protocols.model import DeltaListener, ModelReply, ModelRequest
from hummingbird.core.protocols.tools import Tool
from hummingbird.core.tool_spec import ToolSpec
from tests.agent.stage import CountingTool, DaySpending, Stage, stage, tool
from tests.standins.scripted_model import ScriptedClock, ScriptedModel, ScriptLine, text_reply, tool_call_reply

GRACE = "hummingbird.agent.interrupts.INTERRUPT_GRACE_S"


class Waiting:
    """A tool that runs until it is stopped. `deaf`: not even then."""

    def __init__(self, name: str = "wait", deaf: bool = False, **spec: Any) -> None:
        self.spec = ToolSpec(name, "Waits.", {"type": "object"}, trusted=True, **spec)
        self.began, self.free, self.ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.runs = 0
        self._deaf = deaf

    def is_available(self) -> bool:
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

    def __init__(self, lines: list[ScriptLine]) -> None:
        super().__init__(lines)
        self.began, self.stopped = asyncio.Event(), asyncio.Event()

    async def generate(self, request: ModelRequest, listen: DeltaListener | None = None) -> ModelReply:
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


async def interrupted(on: Stage, when: asyncio.Event) -> RunOutcome:
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


def results(outcome: RunOutcome) -> list[str]:
    return [m.text for m in outcome.messages if isinstance(m, ToolMessage)]


async def test_during_a_model_call_the_request_is_stopped() -> None:
    model = WaitingModel([text_reply("again done")])
    on = stage(model)
    outcome = await interrupted(on, model.began)
    assert model.stopped.is_set()
    assert (outcome.bill.attempts, outcome.bill.answered) == (1, 0)
    await next_run_works(on)


async def test_during_a_batch_every_running_tool_is_stopped() -> None:
    """Finished results stay, started ones are of unknown outcome, the others did not run."""
    first, second = Waiting("first"), Waiting("second")
    model = ScriptedModel(
        [tool_call_reply(("count", "{}"), ("first", "{}"), ("second", "{}"), text="on it"), text_reply("again done")]
    )
    on = stage(model, tools=[CountingTool(), first, second])
    outcome = await interrupted(on, second.began)
    assert first.ended.is_set()
    assert second.ended.is_set()
    assert results(outcome) == ["count number 1", UNKNOWN_OUTCOME, UNKNOWN_OUTCOME]
    assert outcome.text == "on it"
    await next_run_works(on)
    assert (first.runs, second.runs) == (1, 1)


async def test_calls_of_a_sequential_batch_that_had_not_started_do_not_start() -> None:
    waiting, counting = Waiting(exclusive=True), CountingTool()
    model = ScriptedModel([tool_call_reply(("wait", "{}"), ("count", "{}")), text_reply("again done")])
    on = stage(model, tools=[waiting, counting])
    outcome = await interrupted(on, waiting.began)
    assert results(outcome) == [UNKNOWN_OUTCOME, NOT_RUN]
    assert counting.runs == []
    assert [entry.outcome for entry in on.written(ToolFinished)] == [ToolOutcome.UNKNOWN, ToolOutcome.SKIPPED]
    await next_run_works(on)


async def test_during_the_wait_for_a_retry() -> None:
    """Waiting can be interrupted."""
    clock = WaitingClock()
    on = stage(ScriptedModel([ProviderUnavailable("busy", 600.0), text_reply("again done")]), clock=clock)
    await interrupted(on, clock.asleep)
    await next_run_works(on)


async def test_during_a_refresh_of_credentials() -> None:
    class Refreshing(ScriptedModel):
        asking = asyncio.Event()

        async def refresh_credentials(self) -> bool:
            self.asking.set()
            await asyncio.Event().wait()
            return True

    model = Refreshing([CredentialRefused("old key"), text_reply("again done")])
    on = stage(model)
    await interrupted(on, model.asking)
    await next_run_works(on)


async def test_during_a_look_at_the_money_of_the_day() -> None:
    """The record is shared, another process may hold it."""
    asking = asyncio.Event()

    class Locked(DaySpending):
        async def usd_today(self, project: str) -> Decimal:
            asking.set()
            await asyncio.Event().wait()
            return self.today

    on = stage(ScriptedModel([]), limits=RunLimits(usd_per_day=Decimal(1)), spending=Locked(), project="p")
    await interrupted(on, asking)


async def test_a_hook_that_swallows_the_interrupt_starts_no_tool() -> None:
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
    on = stage(ScriptedModel([tool_call_reply(("count", "{}"))]), tools=[counting], hooks=[Swallowing()])
    outcome = await interrupted(on, asking)
    assert (counting.runs, results(outcome)) == ([], [NOT_RUN])


async def test_a_tool_that_ignores_it_is_left_behind_and_not_heard_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt always returns; what comes too late is not written into another run."""
    monkeypatch.setattr(GRACE, 0.01)
    deaf = Waiting(deaf=True)
    on = stage(ScriptedModel([tool_call_reply(("wait", "{}")), text_reply("again done")]), tools=[deaf])
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

    on = stage(
        ScriptedModel([tool_call_reply(("count", "{}")), text_reply("again done")]),
        tools=[CountingTool()],
        hooks=[Deaf()],
    )
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
    """A thread cannot be stopped, and nobody waits for it."""
    free, loop, began = threading.Event(), asyncio.get_running_loop(), asyncio.Event()

    def block() -> str:
        loop.call_soon_threadsafe(began.set)
        return str(free.wait(30))

    on = stage(
        ScriptedModel([tool_call_reply(("block", "{}")), text_reply("again done")]), tools=[tool("block", block)]
    )
    outcome = await interrupted(on, began)
    free.set()
    assert results(outcome) == [UNKNOWN_OUTCOME]
    await next_run_works(on)


async def test_what_a_tool_still_brings_when_it_is_interrupted_is_written_down() -> None:
    """A sub-agent that was stopped still says what it spent."""
    began = asyncio.Event()

    async def partial() -> str:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "half of it"
        return "never"

    on = stage(
        ScriptedModel([tool_call_reply(("partial", "{}")), text_reply("again done")]), tools=[tool("partial", partial)]
    )
    outcome = await interrupted(on, began)
    assert results(outcome) == ["half of it"]
    await next_run_works(on)


async def test_before_the_run_has_begun() -> None:
    """The call was made, the event loop had not come to it."""
    on = stage(ScriptedModel([text_reply("again done")]))
    running = asyncio.create_task(on.loop.run("go"))
    on.loop.interrupt()
    outcome = await running
    assert (outcome.reason, on.requests) == (EndReason.INTERRUPTED, [])
    on.check(outcome)
    await next_run_works(on)


async def test_with_no_run_at_all_it_does_nothing() -> None:
    """Ctrl-C at an idle prompt is not held against the next message."""
    on = stage(ScriptedModel([text_reply("done")]))
    on.loop.interrupt()
    assert (await on.run()).reason is EndReason.COMPLETED


async def test_twice_is_once() -> None:
    model = WaitingModel([text_reply("again done")])
    on = stage(model)
    running = asyncio.create_task(on.run())
    await model.began.wait()
    on.loop.interrupt()
    on.loop.interrupt()
    assert (await running).reason is EndReason.INTERRUPTED
    await next_run_works(on)


async def test_an_interrupted_run_does_not_go_on() -> None:
    """It has ended; going on is for runs that lost their process."""
    model = WaitingModel([])
    on = stage(model)
    await interrupted(on, model.began)
    assert not on.loop.state.active


class Interrupting:
    """Interrupts when so many entries have been written, right between two of them."""

    def __init__(self, at: int) -> None:
        self.left = at
        self.on: Stage | None = None

    def __call__(self, event: RunEvent) -> None:
        if isinstance(event, EntryRecorded):
            self.left -= 1
            if self.left == 0 and self.on is not None:
                self.on.loop.interrupt()


RICH: list[ScriptLine] = [
    ProviderUnavailable("busy"),
    text_reply(""),
    tool_call_reply(("count", "{}"), ("look", "{}"), ("nope", "{}"), text="working"),
    CreditExhausted("no credit"),
]
RICH_TOO: list[ScriptLine] = [
    tool_call_reply(("count", "{}")),
    tool_call_reply(("count", "{}")),
    tool_call_reply(("count", "{}")),
    text_reply("done"),
]


def rich(watcher: Interrupting | None = None) -> Stage:
    models = ScriptedModel(RICH, name="a:one"), ScriptedModel(RICH_TOO, name="b:two")
    tools: list[Tool] = [CountingTool(), tool()]
    observers = [watcher] if watcher else []
    return stage(*models, tools=tools, limits=RunLimits(iterations=5), observers=observers)


async def test_between_any_two_entries_of_a_rich_run() -> None:
    """History is valid wherever it comes, and the next run works."""
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
        later = stage(ScriptedModel([text_reply("again done")]), tools=[CountingTool(), tool()], journal=on.journal)
        await next_run_works(later)
    assert reasons.count(EndReason.INTERRUPTED) > total - 5


async def test_cancelling_the_task_of_a_run_leaves_a_journal_that_can_go_on() -> None:
    """The caller's own cancellation is not swallowed; it is like the death of the process."""
    model = WaitingModel([])
    on = stage(model)
    running = asyncio.create_task(on.loop.run("go"))
    await model.began.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert model.stopped.is_set()
    later = stage(ScriptedModel([text_reply("done")]), journal=on.journal)
    assert (await later.go_on()).text == "done"


async def test_cancelling_the_task_stops_the_tools() -> None:
    waiting = Waiting()
    on = stage(ScriptedModel([tool_call_reply(("wait", "{}"))]), tools=[waiting])
    running = asyncio.create_task(on.loop.run("go"))
    await waiting.began.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert waiting.ended.is_set()
    counts: dict[type[JournalEntry], int] = {
        kind: len(on.written(kind)) for kind in (ModelAnswered, ToolStarted, ToolFinished)
    }
    assert counts == {ModelAnswered: 1, ToolStarted: 1, ToolFinished: 0}
    assert list(find_problems(on.loop.state.conversation.view())) == []
