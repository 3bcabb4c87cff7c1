"""L9: what a response means, row by row."""

from dataclasses import replace

import pytest

from hummingbird.agent.budget import Limits
from hummingbird.agent.meaning import Meaning, meaning
from hummingbird.agent.prompts import NO_ANSWER, NUDGES
from hummingbird.domain.journal import EndReason, Finish, ModelAnswered, ToolStarted
from hummingbird.domain.limits import PAUSES
from hummingbird.domain.messages import AssistantMessage, Echo, NoticeKind, ToolCall, UserMessage
from hummingbird.domain.usage import Usage
from hummingbird.lab.scripted import Line, ScriptedModel, calls, says
from hummingbird.ports.model import ModelReply
from tests.agent.stage import CountingTool, notices_in, paused, stage

CALL = ToolCall("1", "count", "{}")

TABLE = [
    (AssistantMessage("text"), Finish.STOP, Meaning.TEXT, True),
    (AssistantMessage("text", "thinking"), Finish.STOP, Meaning.TEXT, True),
    (AssistantMessage("text", calls=(CALL,)), Finish.STOP, Meaning.CALLS, True),
    (AssistantMessage(calls=(CALL,)), Finish.STOP, Meaning.CALLS, True),
    (AssistantMessage(), Finish.STOP, Meaning.NOTHING, False),
    (AssistantMessage(" \n\t"), Finish.STOP, Meaning.NOTHING, False),
    (AssistantMessage("", "only thinking"), Finish.STOP, Meaning.NOTHING, False),
    (AssistantMessage("text", calls=(CALL,)), Finish.MALFORMED, Meaning.MALFORMED, False),
    (AssistantMessage(), Finish.MALFORMED, Meaning.MALFORMED, False),
    (AssistantMessage("half a sen"), Finish.LENGTH, Meaning.CUT_OFF, True),
    (AssistantMessage("half", calls=(CALL,)), Finish.LENGTH, Meaning.CUT_OFF_CALL, False),
    (AssistantMessage("", "endless thinking"), Finish.LENGTH, Meaning.CUT_OFF_CALL, False),
    (AssistantMessage(" \n"), Finish.LENGTH, Meaning.CUT_OFF_CALL, False),
    (AssistantMessage("no"), Finish.REFUSAL, Meaning.REFUSED, False),
    (AssistantMessage("text", calls=(CALL,)), Finish.REFUSAL, Meaning.REFUSED, False),
    (AssistantMessage("part", paused=True), Finish.PAUSE, Meaning.PAUSED, True),
    (AssistantMessage("part"), Finish.WINDOW_FULL, Meaning.WINDOW_FULL, False),
]


@pytest.mark.parametrize(("message", "finish", "means", "kept"), TABLE)
def test_every_response_has_one_meaning(message: AssistantMessage, finish: Finish, means: Meaning, kept: bool) -> None:
    """L9: also that what must not run or cannot be sent is not kept."""
    assert meaning(message, finish) is means
    assert means.kept is kept


async def test_text_only_is_done() -> None:
    """L9"""
    outcome = await stage(ScriptedModel([says("done")])).run()
    assert (outcome.reason, outcome.text, outcome.answered) == (EndReason.COMPLETED, "done", True)
    assert outcome.exit_code == 0
    assert list(outcome.messages) == [UserMessage("go"), AssistantMessage("done")]


async def test_text_beside_calls_is_a_fallback_and_the_run_goes_on() -> None:
    """L9"""
    counting = CountingTool()
    model = ScriptedModel([calls(("count", "{}"), text="I looked"), says(""), says(""), says("")])
    on = stage(model, tools=[counting])
    outcome = await on.run()
    on.consumed()
    assert len(counting.runs) == 1
    assert (outcome.reason, outcome.text, outcome.answered) == (EndReason.EMPTY_RESPONSES, "I looked", False)


async def test_calls_only_run_and_the_run_goes_on() -> None:
    """L9"""
    counting = CountingTool()
    outcome = await stage(ScriptedModel([calls(("count", "{}")), says("done")]), tools=[counting]).run()
    assert (outcome.text, outcome.answered, len(counting.runs)) == ("done", True, 1)


async def test_nothing_is_dropped_and_nudged_twice_then_the_run_ends() -> None:
    """L9: at most two in a row."""
    model = ScriptedModel([says(""), says(" "), says("")])
    on = stage(model)
    outcome = await on.run()
    on.consumed()
    assert (outcome.reason, outcome.text, outcome.answered) == (EndReason.EMPTY_RESPONSES, NO_ANSWER, False)
    assert [m.text for m in outcome.messages if isinstance(m, AssistantMessage)] == []
    assert [entry.kept for entry in on.written(ModelAnswered)] == [False] * 3
    assert len(notices_in(model.requests[-1], NoticeKind.EMPTY)) == 2
    assert "3 times" in outcome.sentence


async def test_the_counter_of_empty_answers_resets_after_a_turn_that_ran_tools() -> None:
    """L9"""
    empty, work = says(""), calls(("count", "{}"))
    model = ScriptedModel([empty, empty, work, empty, empty, work, empty, empty, says("done")])
    on = stage(model, tools=[CountingTool()])
    assert (await on.run()).reason is EndReason.COMPLETED
    on.consumed()


async def test_the_counter_of_empty_answers_does_not_reset_after_a_turn_that_ran_none() -> None:
    """L9: a call of a tool that does not exist ran nothing."""
    model = ScriptedModel([says(""), calls(("nope", "{}")), says(""), says("")])
    on = stage(model, tools=[CountingTool()])
    assert (await on.run()).reason is EndReason.EMPTY_RESPONSES
    on.consumed()


async def test_reasoning_is_the_fallback_text_of_an_answer_without_text() -> None:
    """L9, L12"""
    model = ScriptedModel([says("", reasoning="It is the DNS."), says(""), says("")])
    outcome = await stage(model).run()
    assert (outcome.text, outcome.answered) == ("It is the DNS.", False)


async def test_a_malformed_call_is_dropped_with_its_own_nudge() -> None:
    """L9"""
    bad = says("I will", finish=Finish.MALFORMED)
    model = ScriptedModel([bad, bad, bad])
    on = stage(model)
    outcome = await on.run()
    on.consumed()
    assert (outcome.reason, outcome.answered) == (EndReason.EMPTY_RESPONSES, False)
    assert notices_in(model.requests[-1], NoticeKind.MALFORMED) == [NUDGES[NoticeKind.MALFORMED]] * 2
    assert "no large payloads" in NUDGES[NoticeKind.MALFORMED]
    assert "malformed" in outcome.sentence


async def test_a_malformed_call_never_runs_whatever_it_holds() -> None:
    """L9"""
    on = stage(ScriptedModel([calls(("count", "{}"), finish=Finish.MALFORMED), says("done")]), tools=[CountingTool()])
    await on.run()
    assert on.written(ToolStarted) == []


async def test_a_cut_off_answer_is_continued_and_joined_into_one() -> None:
    """L9"""
    pieces = [says("The cau", finish=Finish.LENGTH), says("se is t", finish=Finish.LENGTH), says("he DNS.")]
    model = ScriptedModel(pieces)
    outcome = await stage(model).run()
    assert (outcome.reason, outcome.text) == (EndReason.COMPLETED, "The cause is the DNS.")
    assert [len(notices_in(request, NoticeKind.CONTINUE)) for request in model.requests] == [0, 1, 2]


async def test_at_most_three_continuations() -> None:
    """L9"""
    model = ScriptedModel([says(f"{n}", finish=Finish.LENGTH) for n in range(4)])
    on = stage(model)
    outcome = await on.run()
    on.consumed()
    assert (outcome.reason, outcome.text, outcome.answered) == (EndReason.MODEL_ERROR, "0123", False)
    assert "incomplete" in outcome.sentence


async def test_a_continuation_that_calls_tools_starts_another_answer() -> None:
    """L9: what was cut off stays a fallback, it is not glued to the answer after the tools."""
    model = ScriptedModel([says("First I", finish=Finish.LENGTH), calls(("count", "{}")), says("The DNS.")])
    assert (await stage(model, tools=[CountingTool()]).run()).text == "The DNS."


async def test_a_cut_off_call_is_never_executed() -> None:
    """L9"""
    counting = CountingTool()
    cut = calls(("count", '{"a": "lo'), text="writing", finish=Finish.LENGTH)
    whole = calls(("count", "{}"), ("count", '{"a"'), finish=Finish.LENGTH)
    model = ScriptedModel([cut, whole, says("done")])
    on = stage(model, tools=[counting])
    outcome = await on.run()
    assert counting.runs == []
    assert [m for m in outcome.messages if isinstance(m, AssistantMessage) and m.calls] == []
    assert notices_in(model.requests[-1], NoticeKind.SMALLER) == [NUDGES[NoticeKind.SMALLER]] * 2


async def test_a_call_that_is_always_cut_off_ends_the_run() -> None:
    """L9"""
    model = ScriptedModel([calls(("count", '{"a'), finish=Finish.LENGTH)] * 4)
    on = stage(model, tools=[CountingTool()])
    outcome = await on.run()
    on.consumed()
    assert (outcome.reason, outcome.answered) == (EndReason.MODEL_ERROR, False)


async def test_a_refusal_ends_with_that_reason_and_stays_out_of_the_conversation() -> None:
    """L9"""
    outcome = await stage(ScriptedModel([says("I can't help.", finish=Finish.REFUSAL)])).run()
    assert (outcome.reason, outcome.text, outcome.answered) == (EndReason.REFUSED, "I can't help.", False)
    assert list(outcome.messages) == [UserMessage("go")]


async def test_the_conversation_goes_on_after_a_refusal() -> None:
    """L9, L4"""
    model = ScriptedModel([says("no", finish=Finish.REFUSAL), says("yes")])
    on = stage(model)
    await on.run("this?")
    assert (await on.run("that?")).text == "yes"


async def test_a_paused_answer_is_sent_again_as_it_is() -> None:
    """L9: no message comes between."""
    echo = Echo("wire", "scripted:one", ["opaque"])
    part = ModelReply(AssistantMessage("part", echo=echo, paused=True), Finish.PAUSE, Usage(fresh=1))
    model = ScriptedModel([part, says("done")])
    outcome = await stage(model).run()
    assert list(model.requests[1].messages) == [UserMessage("go"), part.message]
    assert (outcome.reason, outcome.text) == (EndReason.COMPLETED, "done")


async def test_a_pause_without_content_leaves_nothing_in_the_conversation() -> None:
    """L9, L4"""
    model = ScriptedModel([paused(""), says("done")])
    outcome = await stage(model).run()
    assert list(outcome.messages) == [UserMessage("go"), AssistantMessage("done")]


async def test_endless_pauses_end_the_run() -> None:
    """L9"""
    model = ScriptedModel([paused("part")] * (PAUSES + 1))
    on = stage(model)
    outcome = await on.run()
    on.consumed()
    assert (outcome.reason, outcome.text, outcome.answered) == (EndReason.MODEL_ERROR, "part", False)


async def test_a_full_window_ends_as_context_limit_with_what_was_said() -> None:
    """L9, L12"""
    outcome = await stage(ScriptedModel([says("so far", finish=Finish.WINDOW_FULL)])).run()
    assert (outcome.reason, outcome.text, outcome.answered) == (EndReason.CONTEXT_LIMIT, "so far", False)


async def test_the_answer_wins_over_every_earlier_text() -> None:
    """L9"""
    lines: list[Line] = [calls(("count", "{}"), text="first"), calls(("count", "{}"), text="second"), says("answer")]
    assert (await stage(ScriptedModel(lines), tools=[CountingTool()]).run()).text == "answer"


async def test_the_last_text_wins_as_fallback() -> None:
    """L12"""
    lines: list[Line] = [calls(("count", "{}"), text="first"), calls(("count", "{}"), text="second"), *[says("")] * 3]
    assert (await stage(ScriptedModel(lines), tools=[CountingTool()]).run()).text == "second"


async def test_calls_without_ids_or_with_ids_used_before_get_new_ones() -> None:
    """L4: some servers number their calls from zero in every answer."""
    again = calls(("count", "{}", "call_0"), ("count", '{"a":1}', "call_0"))
    unnamed = calls(("count", "{}"), ("count", '{"b":1}'))
    signed = replace(again, message=replace(again.message, echo=Echo("w", "m", "holds call_0")))
    model = ScriptedModel([calls(("count", "{}", "call_0")), signed, unnamed, says("done")])
    outcome = await stage(model, tools=[CountingTool()], limits=Limits(iterations=9)).run()
    asked = [m for m in outcome.messages if isinstance(m, AssistantMessage) and m.calls]
    assert len({call.id for m in asked for call in m.calls}) == 5
    assert [m.echo for m in asked] == [None] * 3
