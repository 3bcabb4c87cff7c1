"""Running the calls of one response."""

import asyncio
import threading
from typing import Any

import pytest

from hummingbird.agent.interrupts import is_outside_interrupt
from hummingbird.core.errors import MissingSetting
from hummingbird.core.journal import ToolFinished, ToolOutcome, ToolStarted
from hummingbird.core.limits import CONCURRENT_TOOLS
from tests.agent.stage import CountingTool, Stage, results_in, stage, tool
from tests.standins.scripted_model import ScriptedModel, text_reply, tool_call_reply
from tests.thoroughly import also


class Room:
    """Counts who is inside at the same time; nobody leaves before `full` of them are there."""

    def __init__(self, full: int) -> None:
        self.inside = self.most = 0
        self.order: list[str] = []
        self._full, self._open = full, asyncio.Event()

    async def visit(self, who: str = "") -> str:
        self.inside += 1
        self.most = max(self.most, self.inside)
        self.order.append(f"{who} in")
        if self.inside >= self._full:
            self._open.set()
        await self._open.wait()
        for _ in range(5):  # whoever could come in beside us gets the chance to
            await asyncio.sleep(0)
        self.inside -= 1
        self.order.append(f"{who} out")
        return f"{who} was there"


def crowd(size: int, *names: str) -> ScriptedModel:
    names = names or ("visit",)
    return ScriptedModel(
        [tool_call_reply(*((names[n % len(names)], f'{{"who":"{n}"}}') for n in range(size))), text_reply("done")]
    )


async def finished(*tools: Any, wanted: tuple[tuple[str, str], ...]) -> list[ToolFinished]:
    on = stage(ScriptedModel([tool_call_reply(*wanted), text_reply("done")]), tools=list(tools))
    assert (await on.run()).answered
    return on.written(ToolFinished)


async def one_result(does: Any, **spec: Any) -> ToolFinished:
    [entry] = await finished(tool("it", does, **spec), wanted=(("it", "{}"),))
    return entry


async def test_eight_calls_run_at_once_and_never_more() -> None:
    room = Room(full=CONCURRENT_TOOLS)
    await stage(crowd(20), tools=[tool("visit", room.visit)]).run()
    assert CONCURRENT_TOOLS == 8
    assert room.most == 8
    assert len(room.order) == 40


async def test_eight_blocking_functions_run_at_once_too() -> None:
    """On a machine with two cores asyncio's own pool has six threads."""
    meeting = threading.Barrier(8, timeout=30)

    def meet(who: str) -> str:
        meeting.wait()
        return who

    on = stage(crowd(8), tools=[tool("visit", meet)])
    await on.run()
    assert {entry.outcome for entry in on.written(ToolFinished)} == {ToolOutcome.OK}


@pytest.mark.parametrize("mark", ["exclusive", "interactive"])
async def test_one_tool_that_wants_to_be_alone_makes_the_batch_sequential(mark: str) -> None:
    """In call order."""
    room = Room(full=1)
    alone: dict[str, Any] = {mark: True}
    tools = [tool("visit", room.visit), tool("alone", room.visit, **alone)]
    await stage(crowd(5, "visit", "visit", "alone"), tools=tools).run()
    assert room.most == 1
    assert room.order == [f"{n} {way}" for n in range(5) for way in ("in", "out")]


async def test_a_tool_that_wants_to_be_alone_but_does_not_run_changes_nothing() -> None:
    """Its call was a mistake."""
    room = Room(full=2)
    tools = [tool("visit", room.visit), tool("alone", room.visit, exclusive=True)]
    model = ScriptedModel(
        [tool_call_reply(("visit", '{"who":"a"}'), ("visit", '{"who":"b"}'), ("alone", "[]")), text_reply("done")]
    )
    await stage(model, tools=tools).run()
    assert room.most == 2


async def test_results_stand_in_call_order_whatever_order_they_came_in() -> None:
    turns = [asyncio.Event() for _ in range(4)]
    turns[3].set()

    async def wait(n: int) -> str:
        await turns[n].wait()
        if n:
            turns[n - 1].set()
        return f"result {n}"

    model = ScriptedModel([tool_call_reply(*(("wait", f'{{"n":{n}}}') for n in range(4))), text_reply("done")])
    on = stage(model, tools=[tool("wait", wait)])
    await on.run()
    assert [entry.text for entry in on.written(ToolFinished)] == [f"result {n}" for n in (3, 2, 1, 0)]
    assert [m.text for m in results_in(model.requests[1])] == [f"result {n}" for n in range(4)]


async def test_every_call_is_announced_before_it_runs() -> None:
    seen: list[int] = []

    async def look() -> str:
        seen.append(len(on.written(ToolStarted)))
        return "x"

    on: Stage = stage(ScriptedModel([tool_call_reply(("look", "{}")), text_reply("done")]), tools=[tool("look", look)])
    await on.run()
    assert seen == [1]


async def test_identical_calls_of_one_batch_run_once_and_all_get_the_result() -> None:
    """However their arguments are laid out."""
    counting = CountingTool()
    wanted = (
        ("count", '{"a":1,"b":[2]}'),
        ("count", '{"b": [2], "a": 1}'),
        ("Count", '{"a":1,"b":[2]}'),
        ("count", "{}"),
    )
    entries = await finished(counting, wanted=wanted)
    assert counting.runs == [{"a": 1, "b": [2]}, {}]
    assert sorted(entry.text for entry in entries) == ["count number 1"] * 3 + ["count number 2"]
    assert len({entry.call_id for entry in entries}) == 4


async def test_calls_that_differ_in_type_alone_are_not_identical() -> None:
    """True is not 1, and 1 is not "1"."""
    counting = CountingTool()
    await finished(counting, wanted=(("count", '{"a":1}'), ("count", '{"a":true}'), ("count", '{"a":"1"}')))
    assert len(counting.runs) == 3


async def test_identical_calls_of_two_batches_run_twice() -> None:
    counting = CountingTool()
    model = ScriptedModel([tool_call_reply(("count", "{}")), tool_call_reply(("count", "{}")), text_reply("done")])
    await stage(model, tools=[counting]).run()
    assert len(counting.runs) == 2


async def test_a_call_that_takes_too_long_is_stopped_and_gets_an_error_result() -> None:
    """Each call has its own timeout."""
    stopped = asyncio.Event()

    async def forever() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return "never"

    entry = await one_result(forever, timeout_s=0.02)
    assert stopped.is_set()
    assert entry.outcome is ToolOutcome.ERROR
    assert "stopped after 0.02 s" in entry.text


async def test_one_call_that_takes_too_long_does_not_touch_the_others() -> None:
    async def forever() -> str:
        await asyncio.Event().wait()
        return "never"

    entries = await finished(
        tool("forever", forever, timeout_s=0.02), CountingTool(), wanted=(("forever", "{}"), ("count", "{}"))
    )
    assert {entry.name: entry.outcome for entry in entries} == {"forever": ToolOutcome.ERROR, "count": ToolOutcome.OK}


async def test_a_call_that_does_not_let_itself_be_stopped_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """The timeout holds for every tool."""
    monkeypatch.setattr("hummingbird.agent.interrupts.INTERRUPT_GRACE_S", 0.01)
    free = asyncio.Event()

    async def deaf() -> str:
        while not free.is_set():
            try:
                await free.wait()
            except asyncio.CancelledError:
                continue
        return "late"

    entry = await one_result(deaf, timeout_s=0.01)
    free.set()
    assert (entry.outcome, "stopped after" in entry.text) == (ToolOutcome.ERROR, True)
    await asyncio.sleep(0)


async def test_a_blocking_call_that_takes_too_long_is_left_behind() -> None:
    """A thread cannot be stopped, but nobody waits for it."""
    free = threading.Event()
    entry = await one_result(lambda: str(free.wait(30)), timeout_s=0.02)
    free.set()
    assert entry.outcome is ToolOutcome.ERROR


async def test_what_a_tool_still_brings_when_it_is_stopped_counts() -> None:
    """Half an output is better than none, and money spent is spent."""

    async def partial() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "half of it"
        return "never"

    entry = await one_result(partial, timeout_s=0.02)
    assert (entry.outcome, entry.text) == (ToolOutcome.OK, "half of it")


async def test_a_tool_that_fails_while_it_is_stopped_timed_out() -> None:
    async def clumsy() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("could not clean up")

    entry = await one_result(clumsy, timeout_s=0.02)
    assert (entry.outcome, "stopped after" in entry.text) == (ToolOutcome.ERROR, True)


class Odd(BaseException):
    pass


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("nothing to say")


ERRORS: list[BaseException] = [
    ValueError("bad value"),
    TimeoutError("its own"),
    StopAsyncIteration("x"),
    RecursionError("deep"),
    MemoryError("much"),
    SystemExit(3),
    GeneratorExit("x"),
    Odd("odd"),
    BaseExceptionGroup("several", [Odd("one")]),
    asyncio.CancelledError("its own"),
    Mute(),
    OSError("caf\udce9"),
    Exception("x" * 10_000_000),
]


@pytest.mark.parametrize("beside", [also(False), True])
@pytest.mark.parametrize("blocking", [False, also(True)])
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
async def test_whatever_a_tool_raises_is_an_error_result(error: BaseException, blocking: bool, beside: bool) -> None:
    """Never an exception; and it does not run again."""
    ran: list[int] = []

    async def raises() -> str:
        ran.append(1)
        raise error

    def raises_too() -> str:
        ran.append(1)
        raise error

    counting = CountingTool()
    wanted = (("it", "{}"), ("count", "{}")) if beside else (("it", "{}"),)
    entries = await finished(tool("it", raises_too if blocking else raises), counting, wanted=wanted)
    [entry] = [entry for entry in entries if entry.name == "it"]
    assert entry.outcome is ToolOutcome.ERROR
    assert type(error).__name__ in entry.text
    assert len(entry.text.encode()) < 100_000
    assert (len(ran), len(counting.runs)) == (1, int(beside))


@pytest.mark.parametrize("error", [StopIteration("x")])
async def test_a_blocking_function_that_stops_iterating_fails_at_once(error: Exception) -> None:
    """A future cannot hold a StopIteration."""

    def stops() -> str:
        raise error

    entry = await one_result(stops)
    assert (entry.outcome, "StopIteration" in entry.text) == (ToolOutcome.ERROR, True)


async def test_our_own_errors_are_told_as_the_sentences_they_are() -> None:
    async def unset() -> str:
        raise MissingSetting("GITLAB_TOKEN is not set.")

    assert (await one_result(unset)).text == "it failed: GITLAB_TOKEN is not set."


GARBAGE: list[tuple[Any, ToolOutcome]] = [
    (object(), ToolOutcome.ERROR),
    ([{1, 2}, object()], ToolOutcome.ERROR),
    ({"a": "\ud800"}, ToolOutcome.OK),
    (b"raw bytes", ToolOutcome.OK),
    ("half \ud800 a character", ToolOutcome.OK),
    ("x" * 10_000_000, ToolOutcome.OK),
    ({"a": ["x" * 1_000_000] * 10}, ToolOutcome.OK),
    (None, ToolOutcome.OK),
    (float("nan"), ToolOutcome.OK),
    ("", ToolOutcome.OK),
]


@pytest.mark.parametrize(("output", "outcome"), GARBAGE, ids=lambda given: type(given).__name__)
async def test_whatever_a_tool_returns_becomes_a_bounded_result(output: Any, outcome: ToolOutcome) -> None:
    async def gives() -> Any:
        return output

    entry = await one_result(gives)
    assert entry.outcome is outcome
    assert len(entry.text.encode()) < 70_000


async def test_keyboard_interrupt_is_not_the_tools_to_raise_into_a_result() -> None:
    """Ctrl-C in a terminal belongs to whoever runs the loop."""
    assert is_outside_interrupt(KeyboardInterrupt())
    assert not is_outside_interrupt(SystemExit())
    assert not is_outside_interrupt(asyncio.CancelledError())
