"""L7: the final call, and the one attempt after it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hummingbird.agent.budget import Limits
from hummingbird.agent.loop import FINAL_SKIP
from hummingbird.domain.errors import CreditExhausted, Unavailable
from hummingbird.domain.journal import EndReason, Finish, ModelCalled, ToolFinished, ToolOutcome, ToolStarted
from hummingbird.domain.limits import CONTINUATIONS
from hummingbird.domain.messages import NoticeKind
from hummingbird.lab.scripted import Line, ScriptedModel, calls, says
from tests.agent.stage import CountingTool, answered_calls, notices_in, paused, prefix_bytes, results_in, stage
from tests.thoroughly import tries

ONE = Limits(iterations=1)


async def test_calls_that_come_on_the_final_turn_are_not_executed() -> None:
    """L7"""
    counting = CountingTool()
    model = ScriptedModel([calls(("count", "{}"), ("count", '{"a":1}'), text="let me see"), says("done")])
    on = stage(model, tools=[counting], limits=ONE)
    outcome = await on.run()
    assert counting.runs == []
    assert on.written(ToolStarted) == []
    assert {entry.outcome for entry in on.written(ToolFinished)} == {ToolOutcome.SKIPPED}
    assert [m.text for m in results_in(model.requests[1])] == [FINAL_SKIP, FINAL_SKIP]
    assert (outcome.text, outcome.answered) == ("done", True)


async def test_the_first_final_call_keeps_the_tools_and_only_the_second_disables_them() -> None:
    """L7: where disabling would throw the prompt cache away."""
    model = ScriptedModel([calls(("count", "{}")), says("done")])
    on = stage(model, tools=[CountingTool()], limits=ONE)
    await on.run()
    assert [request.disable_tools for request in model.requests] == [False, True]
    assert [entry.tools_disabled for entry in on.written(ModelCalled)] == [False, True]
    assert len({prefix_bytes(request) for request in model.requests}) == 1
    assert len(model.requests[0].tools) == 1


async def test_where_disabling_tools_is_free_they_are_disabled_at_once() -> None:
    """L7"""
    model = ScriptedModel([calls(("count", "{}")), says("done")], disabling_tools_is_free=True)
    on = stage(model, tools=[CountingTool()], limits=Limits(iterations=2))
    await on.run()
    assert [request.disable_tools for request in model.requests] == [False, True]
    assert len({prefix_bytes(request) for request in model.requests}) == 1


async def test_a_model_that_asks_for_tools_to_the_last_leaves_its_last_text() -> None:
    """L7, L12"""
    model = ScriptedModel([calls(("count", "{}"), text="so far"), calls(("count", "{}"))])
    on = stage(model, tools=[CountingTool()], limits=ONE)
    outcome = await on.run()
    on.consumed()
    assert (outcome.reason, outcome.text, outcome.answered) == (EndReason.MAX_ITERATIONS, "so far", False)
    assert outcome.exit_code == 1


@pytest.mark.parametrize(
    "first",
    [says(""), says("half", finish=Finish.LENGTH), paused("half"), says(" ", reasoning="hm")],
)
async def test_a_second_final_attempt_disables_nothing_when_the_first_asked_for_no_tools(first: Line) -> None:
    """L7: the cache is thrown away only for a model that asked for tools again."""
    model = ScriptedModel([first, says("done")])
    outcome = await stage(model, tools=[CountingTool()], limits=ONE).run()
    assert [request.disable_tools for request in model.requests] == [False, False]
    assert outcome.answered


@pytest.mark.parametrize(
    "first",
    [calls(("count", '{"a'), finish=Finish.LENGTH), says("", finish=Finish.MALFORMED)],
)
async def test_a_call_that_was_cut_off_or_malformed_asked_for_tools_too(first: Line) -> None:
    """L7"""
    model = ScriptedModel([first, says("done")])
    await stage(model, tools=[CountingTool()], limits=ONE).run()
    assert [request.disable_tools for request in model.requests] == [False, True]


async def test_a_retry_of_a_final_call_is_the_same_final_call() -> None:
    """L7, L13"""
    model = ScriptedModel([Unavailable("busy"), calls(("count", "{}")), Unavailable("busy"), says("done")])
    on = stage(model, tools=[CountingTool()], limits=ONE)
    await on.run()
    assert [request.disable_tools for request in model.requests] == [False, False, True, True]
    assert {entry.final for entry in on.written(ModelCalled)} == {True}
    assert len(on.notices(NoticeKind.FINAL)) == 1


async def test_the_next_model_of_the_chain_is_on_its_final_turn_too() -> None:
    """L7, L14"""
    counting = CountingTool()
    first = ScriptedModel([CreditExhausted("no money")], name="a:one")
    second = ScriptedModel([calls(("count", "{}")), says("done")], name="b:two")
    outcome = await stage(first, second, tools=[counting], limits=ONE).run()
    assert counting.runs == []
    assert outcome.reason is EndReason.MAX_ITERATIONS
    assert all(notices_in(request, NoticeKind.FINAL) for request in second.requests)


async def test_a_refusal_on_the_final_turn_is_a_refusal() -> None:
    """L9: a refusal ends with that reason."""
    model = ScriptedModel([says("I won't.", finish=Finish.REFUSAL)])
    outcome = await stage(model, limits=ONE).run()
    assert (outcome.reason, outcome.answered) == (EndReason.REFUSED, False)


async def test_the_next_run_is_not_final_any_more() -> None:
    """L6, L7"""
    counting = CountingTool()
    model = ScriptedModel([says("1"), calls(("count", "{}")), says("2")])
    on = stage(model, tools=[counting], limits=Limits(iterations=1))
    await on.run()
    later = stage(model, tools=[counting], journal=on.journal, limits=Limits(iterations=3))
    assert (await later.run()).reason is EndReason.COMPLETED
    assert len(counting.runs) == 1


ANSWERS: list[Line] = [
    says("text"),
    says(""),
    says("half", finish=Finish.LENGTH),
    says("", finish=Finish.MALFORMED),
    paused("half"),
    calls(("count", "{}")),
    calls(("nope", "{}")),
    calls(("count", "{"), finish=Finish.LENGTH),
]


@settings(max_examples=tries(150), deadline=None)
@given(answers=st.lists(st.sampled_from(ANSWERS[1:]), max_size=14), iterations=st.integers(1, 8))
async def test_answered_calls_never_exceed_the_iterations_by_more_than_one_and_continuations(
    answers: list[Line], iterations: int
) -> None:
    """L7, L9: whatever the model answers."""
    model = ScriptedModel([*answers, *[says("text")] * 20])
    on = stage(model, tools=[CountingTool()], limits=Limits(iterations=iterations))
    outcome = await on.run()
    assert outcome.iterations == answered_calls(on.journal.entries()) <= iterations + 1 + CONTINUATIONS
    assert len(model.requests) == outcome.iterations
