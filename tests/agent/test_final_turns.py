"""The final call, and the one attempt after it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hummingbird.agent.budget import RunLimits
from hummingbird.agent.loop import FINAL_SKIP
from hummingbird.core.errors import CreditExhausted, ProviderUnavailable
from hummingbird.core.journal import EndReason, FinishReason, ModelCalled, ToolFinished, ToolOutcome, ToolStarted
from hummingbird.core.limits import CONTINUATIONS
from hummingbird.core.messages import NoticeKind
from tests.agent.stage import CountingTool, answered_calls, notices_in, paused, prefix_bytes, results_in, stage
from tests.standins.scripted_model import ScriptedModel, ScriptLine, text_reply, tool_call_reply
from tests.thoroughly import tries

ONE = RunLimits(iterations=1)


async def test_calls_that_come_on_the_final_turn_are_not_executed() -> None:
    counting = CountingTool()
    model = ScriptedModel(
        [tool_call_reply(("count", "{}"), ("count", '{"a":1}'), text="let me see"), text_reply("done")]
    )
    on = stage(model, tools=[counting], limits=ONE)
    outcome = await on.run()
    assert counting.runs == []
    assert on.written(ToolStarted) == []
    assert {entry.outcome for entry in on.written(ToolFinished)} == {ToolOutcome.SKIPPED}
    assert [m.text for m in results_in(model.requests[1])] == [FINAL_SKIP, FINAL_SKIP]
    assert (outcome.text, outcome.answered) == ("done", True)


async def test_the_first_final_call_keeps_the_tools_and_only_the_second_disables_them() -> None:
    """Where disabling would throw the prompt cache away."""
    model = ScriptedModel([tool_call_reply(("count", "{}")), text_reply("done")])
    on = stage(model, tools=[CountingTool()], limits=ONE)
    await on.run()
    assert [request.disable_tools for request in model.requests] == [False, True]
    assert [entry.tools_disabled for entry in on.written(ModelCalled)] == [False, True]
    assert len({prefix_bytes(request) for request in model.requests}) == 1
    assert len(model.requests[0].tools) == 1


async def test_where_disabling_tools_is_free_they_are_disabled_at_once() -> None:
    model = ScriptedModel([tool_call_reply(("count", "{}")), text_reply("done")], disabling_tools_is_free=True)
    on = stage(model, tools=[CountingTool()], limits=RunLimits(iterations=2))
    await on.run()
    assert [request.disable_tools for request in model.requests] == [False, True]
    assert len({prefix_bytes(request) for request in model.requests}) == 1


async def test_a_model_that_asks_for_tools_to_the_last_leaves_its_last_text() -> None:
    model = ScriptedModel([tool_call_reply(("count", "{}"), text="so far"), tool_call_reply(("count", "{}"))])
    on = stage(model, tools=[CountingTool()], limits=ONE)
    outcome = await on.run()
    on.consumed()
    assert (outcome.reason, outcome.text, outcome.answered) == (EndReason.MAX_ITERATIONS, "so far", False)
    assert outcome.exit_code == 1


@pytest.mark.parametrize(
    "first",
    [text_reply(""), text_reply("half", finish=FinishReason.LENGTH), paused("half"), text_reply(" ", reasoning="hm")],
)
async def test_a_second_final_attempt_disables_nothing_when_the_first_asked_for_no_tools(first: ScriptLine) -> None:
    """The cache is thrown away only for a model that asked for tools again."""
    model = ScriptedModel([first, text_reply("done")])
    outcome = await stage(model, tools=[CountingTool()], limits=ONE).run()
    assert [request.disable_tools for request in model.requests] == [False, False]
    assert outcome.answered


@pytest.mark.parametrize(
    "first",
    [tool_call_reply(("count", '{"a'), finish=FinishReason.LENGTH), text_reply("", finish=FinishReason.MALFORMED)],
)
async def test_a_call_that_was_cut_off_or_malformed_asked_for_tools_too(first: ScriptLine) -> None:
    model = ScriptedModel([first, text_reply("done")])
    await stage(model, tools=[CountingTool()], limits=ONE).run()
    assert [request.disable_tools for request in model.requests] == [False, True]


async def test_a_retry_of_a_final_call_is_the_same_final_call() -> None:
    model = ScriptedModel(
        [ProviderUnavailable("busy"), tool_call_reply(("count", "{}")), ProviderUnavailable("busy"), text_reply("done")]
    )
    on = stage(model, tools=[CountingTool()], limits=ONE)
    await on.run()
    assert [request.disable_tools for request in model.requests] == [False, False, True, True]
    assert {entry.final for entry in on.written(ModelCalled)} == {True}
    assert len(on.notices(NoticeKind.FINAL)) == 1


async def test_the_next_model_of_the_chain_is_on_its_final_turn_too() -> None:
    counting = CountingTool()
    first = ScriptedModel([CreditExhausted("no money")], name="a:one")
    second = ScriptedModel([tool_call_reply(("count", "{}")), text_reply("done")], name="b:two")
    outcome = await stage(first, second, tools=[counting], limits=ONE).run()
    assert counting.runs == []
    assert outcome.reason is EndReason.MAX_ITERATIONS
    assert all(notices_in(request, NoticeKind.FINAL) for request in second.requests)


async def test_a_refusal_on_the_final_turn_is_a_refusal() -> None:
    """A refusal ends with that reason."""
    model = ScriptedModel([text_reply("I won't.", finish=FinishReason.REFUSAL)])
    outcome = await stage(model, limits=ONE).run()
    assert (outcome.reason, outcome.answered) == (EndReason.REFUSED, False)


async def test_the_next_run_is_not_final_any_more() -> None:
    counting = CountingTool()
    model = ScriptedModel([text_reply("1"), tool_call_reply(("count", "{}")), text_reply("2")])
    on = stage(model, tools=[counting], limits=RunLimits(iterations=1))
    await on.run()
    later = stage(model, tools=[counting], journal=on.journal, limits=RunLimits(iterations=3))
    assert (await later.run()).reason is EndReason.COMPLETED
    assert len(counting.runs) == 1


ANSWERS: list[ScriptLine] = [
    text_reply("text"),
    text_reply(""),
    text_reply("half", finish=FinishReason.LENGTH),
    text_reply("", finish=FinishReason.MALFORMED),
    paused("half"),
    tool_call_reply(("count", "{}")),
    tool_call_reply(("nope", "{}")),
    tool_call_reply(("count", "{"), finish=FinishReason.LENGTH),
]


@settings(max_examples=tries(150), deadline=None)
@given(answers=st.lists(st.sampled_from(ANSWERS[1:]), max_size=14), iterations=st.integers(1, 8))
async def test_answered_calls_never_exceed_the_iterations_by_more_than_one_and_continuations(
    answers: list[ScriptLine], iterations: int
) -> None:
    """Whatever the model answers."""
    model = ScriptedModel([*answers, *[text_reply("text")] * 20])
    on = stage(model, tools=[CountingTool()], limits=RunLimits(iterations=iterations))
    outcome = await on.run()
    assert outcome.iterations == answered_calls(on.journal.entries()) <= iterations + 1 + CONTINUATIONS
    assert len(model.requests) == outcome.iterations
