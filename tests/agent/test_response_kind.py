"""What a response means, row by row."""

from dataclasses import replace

import pytest

from hummingbird.agent.budget import RunLimits
from hummingbird.agent.prompts import NO_ANSWER, NUDGES
from hummingbird.agent.recovery import ResponseKind, classify_response
from hummingbird.core.journal import EndReason, FinishReason, ModelAnswered, ToolStarted
from hummingbird.core.limits import PAUSES
from hummingbird.core.messages import AssistantMessage, NoticeKind, ProviderEcho, ToolCall, UserMessage
from hummingbird.core.protocols.model import ModelReply
from hummingbird.core.usage import TokenUsage
from tests.agent.stage import CountingTool, notices_in, paused, stage
from tests.standins.scripted_model import ScriptedModel, ScriptLine, text_reply, tool_call_reply

CALL = ToolCall("1", "count", "{}")

TABLE = [
    (AssistantMessage("text"), FinishReason.STOP, ResponseKind.TEXT, True),
    (AssistantMessage("text", "thinking"), FinishReason.STOP, ResponseKind.TEXT, True),
    (AssistantMessage("text", calls=(CALL,)), FinishReason.STOP, ResponseKind.CALLS, True),
    (AssistantMessage(calls=(CALL,)), FinishReason.STOP, ResponseKind.CALLS, True),
    (AssistantMessage(), FinishReason.STOP, ResponseKind.NOTHING, False),
    (AssistantMessage(" \n\t"), FinishReason.STOP, ResponseKind.NOTHING, False),
    (AssistantMessage("", "only thinking"), FinishReason.STOP, ResponseKind.NOTHING, False),
    (AssistantMessage("text", calls=(CALL,)), FinishReason.MALFORMED, ResponseKind.MALFORMED, False),
    (AssistantMessage(), FinishReason.MALFORMED, ResponseKind.MALFORMED, False),
    (AssistantMessage("half a sen"), FinishReason.LENGTH, ResponseKind.CUT_OFF, True),
    (AssistantMessage("half", calls=(CALL,)), FinishReason.LENGTH, ResponseKind.CUT_OFF_CALL, False),
    (AssistantMessage("", "endless thinking"), FinishReason.LENGTH, ResponseKind.CUT_OFF_CALL, False),
    (AssistantMessage(" \n"), FinishReason.LENGTH, ResponseKind.CUT_OFF_CALL, False),
    (AssistantMessage("no"), FinishReason.REFUSAL, ResponseKind.REFUSED, False),
    (AssistantMessage("text", calls=(CALL,)), FinishReason.REFUSAL, ResponseKind.REFUSED, False),
    (AssistantMessage("part", paused=True), FinishReason.PAUSE, ResponseKind.PAUSED, True),
    (AssistantMessage("part"), FinishReason.WINDOW_FULL, ResponseKind.WINDOW_FULL, False),
]


@pytest.mark.parametrize(("message", "finish", "means", "kept"), TABLE)
def test_every_response_has_one_meaning(
    message: AssistantMessage, finish: FinishReason, means: ResponseKind, kept: bool
) -> None:
    """Also that what must not run or cannot be sent is not kept."""
    assert classify_response(message, finish) is means
    assert means.is_kept is kept


async def test_text_only_is_done() -> None:
    outcome = await stage(ScriptedModel([text_reply("done")])).run()
    assert (outcome.reason, outcome.text, outcome.answered) == (EndReason.COMPLETED, "done", True)
    assert outcome.exit_code == 0
    assert list(outcome.messages) == [UserMessage("go"), AssistantMessage("done")]


async def test_text_beside_calls_is_a_fallback_and_the_run_goes_on() -> None:
    counting = CountingTool()
    model = ScriptedModel(
        [tool_call_reply(("count", "{}"), text="I looked"), text_reply(""), text_reply(""), text_reply("")]
    )
    on = stage(model, tools=[counting])
    outcome = await on.run()
    on.consumed()
    assert len(counting.runs) == 1
    assert (outcome.reason, outcome.text, outcome.answered) == (EndReason.EMPTY_RESPONSES, "I looked", False)


async def test_calls_only_run_and_the_run_goes_on() -> None:
    counting = CountingTool()
    outcome = await stage(ScriptedModel([tool_call_reply(("count", "{}")), text_reply("done")]), tools=[counting]).run()
    assert (outcome.text, outcome.answered, len(counting.runs)) == ("done", True, 1)


async def test_nothing_is_dropped_and_nudged_twice_then_the_run_ends() -> None:
    """At most two in a row."""
    model = ScriptedModel([text_reply(""), text_reply(" "), text_reply("")])
    on = stage(model)
    outcome = await on.run()
    on.consumed()
    assert (outcome.reason, outcome.text, outcome.answered) == (EndReason.EMPTY_RESPONSES, NO_ANSWER, False)
    assert [m.text for m in outcome.messages if isinstance(m, AssistantMessage)] == []
    assert [entry.kept for entry in on.written(ModelAnswered)] == [False] * 3
    assert len(notices_in(model.requests[-1], NoticeKind.EMPTY)) == 2
    assert "3 times" in outcome.sentence


async def test_the_counter_of_empty_answers_resets_after_a_turn_that_ran_tools() -> None:
    empty, work = text_reply(""), tool_call_reply(("count", "{}"))
    model = ScriptedModel([empty, empty, work, empty, empty, work, empty, empty, text_reply("done")])
    on = stage(model, tools=[CountingTool()])
    assert (await on.run()).reason is EndReason.COMPLETED
    on.consumed()


async def test_the_counter_of_empty_answers_does_not_reset_after_a_turn_that_ran_none() -> None:
    """A call of a tool that does not exist ran nothing."""
    model = ScriptedModel([text_reply(""), tool_call_reply(("nope", "{}")), text_reply(""), text_reply("")])
    on = stage(model, tools=[CountingTool()])
    assert (await on.run()).reason is EndReason.EMPTY_RESPONSES
    on.consumed()


async def test_reasoning_is_the_fallback_text_of_an_answer_without_text() -> None:
    model = ScriptedModel([text_reply("", reasoning="It is the DNS."), text_reply(""), text_reply("")])
    outcome = await stage(model).run()
    assert (outcome.text, outcome.answered) == ("It is the DNS.", False)


async def test_a_malformed_call_is_dropped_with_its_own_nudge() -> None:
    bad = text_reply("I will", finish=FinishReason.MALFORMED)
    model = ScriptedModel([bad, bad, bad])
    on = stage(model)
    outcome = await on.run()
    on.consumed()
    assert (outcome.reason, outcome.answered) == (EndReason.EMPTY_RESPONSES, False)
    assert notices_in(model.requests[-1], NoticeKind.MALFORMED) == [NUDGES[NoticeKind.MALFORMED]] * 2
    assert "no large payloads" in NUDGES[NoticeKind.MALFORMED]
    assert "malformed" in outcome.sentence


async def test_a_malformed_call_never_runs_whatever_it_holds() -> None:
    on = stage(
        ScriptedModel([tool_call_reply(("count", "{}"), finish=FinishReason.MALFORMED), text_reply("done")]),
        tools=[CountingTool()],
    )
    await on.run()
    assert on.written(ToolStarted) == []


async def test_a_cut_off_answer_is_continued_and_joined_into_one() -> None:
    pieces = [
        text_reply("The cau", finish=FinishReason.LENGTH),
        text_reply("se is t", finish=FinishReason.LENGTH),
        text_reply("he DNS."),
    ]
    model = ScriptedModel(pieces)
    outcome = await stage(model).run()
    assert (outcome.reason, outcome.text) == (EndReason.COMPLETED, "The cause is the DNS.")
    assert [len(notices_in(request, NoticeKind.CONTINUE)) for request in model.requests] == [0, 1, 2]


async def test_at_most_three_continuations() -> None:
    model = ScriptedModel([text_reply(f"{n}", finish=FinishReason.LENGTH) for n in range(4)])
    on = stage(model)
    outcome = await on.run()
    on.consumed()
    assert (outcome.reason, outcome.text, outcome.answered) == (EndReason.MODEL_ERROR, "0123", False)
    assert "incomplete" in outcome.sentence


async def test_a_continuation_that_calls_tools_starts_another_answer() -> None:
    """What was cut off stays a fallback, it is not glued to the answer after the tools."""
    model = ScriptedModel(
        [text_reply("First I", finish=FinishReason.LENGTH), tool_call_reply(("count", "{}")), text_reply("The DNS.")]
    )
    assert (await stage(model, tools=[CountingTool()]).run()).text == "The DNS."


async def test_a_cut_off_call_is_never_executed() -> None:
    counting = CountingTool()
    cut = tool_call_reply(("count", '{"a": "lo'), text="writing", finish=FinishReason.LENGTH)
    whole = tool_call_reply(("count", "{}"), ("count", '{"a"'), finish=FinishReason.LENGTH)
    model = ScriptedModel([cut, whole, text_reply("done")])
    on = stage(model, tools=[counting])
    outcome = await on.run()
    assert counting.runs == []
    assert [m for m in outcome.messages if isinstance(m, AssistantMessage) and m.calls] == []
    assert notices_in(model.requests[-1], NoticeKind.SMALLER) == [NUDGES[NoticeKind.SMALLER]] * 2


async def test_a_call_that_is_always_cut_off_ends_the_run() -> None:
    model = ScriptedModel([tool_call_reply(("count", '{"a'), finish=FinishReason.LENGTH)] * 4)
    on = stage(model, tools=[CountingTool()])
    outcome = await on.run()
    on.consumed()
    assert (outcome.reason, outcome.answered) == (EndReason.MODEL_ERROR, False)


async def test_a_refusal_ends_with_that_reason_and_stays_out_of_the_conversation() -> None:
    outcome = await stage(ScriptedModel([text_reply("I can't help.", finish=FinishReason.REFUSAL)])).run()
    assert (outcome.reason, outcome.text, outcome.answered) == (EndReason.REFUSED, "I can't help.", False)
    assert list(outcome.messages) == [UserMessage("go")]


async def test_the_conversation_goes_on_after_a_refusal() -> None:
    model = ScriptedModel([text_reply("no", finish=FinishReason.REFUSAL), text_reply("yes")])
    on = stage(model)
    await on.run("this?")
    assert (await on.run("that?")).text == "yes"


async def test_a_paused_answer_is_sent_again_as_it_is() -> None:
    """No message comes between."""
    echo = ProviderEcho("wire", "scripted:one", ["opaque"])
    part = ModelReply(AssistantMessage("part", echo=echo, paused=True), FinishReason.PAUSE, TokenUsage(fresh=1))
    model = ScriptedModel([part, text_reply("done")])
    outcome = await stage(model).run()
    assert list(model.requests[1].messages) == [UserMessage("go"), part.message]
    assert (outcome.reason, outcome.text) == (EndReason.COMPLETED, "done")


async def test_a_pause_without_content_leaves_nothing_in_the_conversation() -> None:
    model = ScriptedModel([paused(""), text_reply("done")])
    outcome = await stage(model).run()
    assert list(outcome.messages) == [UserMessage("go"), AssistantMessage("done")]


async def test_endless_pauses_end_the_run() -> None:
    model = ScriptedModel([paused("part")] * (PAUSES + 1))
    on = stage(model)
    outcome = await on.run()
    on.consumed()
    assert (outcome.reason, outcome.text, outcome.answered) == (EndReason.MODEL_ERROR, "part", False)


async def test_a_full_window_ends_as_context_limit_with_what_was_said() -> None:
    outcome = await stage(ScriptedModel([text_reply("so far", finish=FinishReason.WINDOW_FULL)])).run()
    assert (outcome.reason, outcome.text, outcome.answered) == (EndReason.CONTEXT_LIMIT, "so far", False)


async def test_the_answer_wins_over_every_earlier_text() -> None:
    lines: list[ScriptLine] = [
        tool_call_reply(("count", "{}"), text="first"),
        tool_call_reply(("count", "{}"), text="second"),
        text_reply("answer"),
    ]
    assert (await stage(ScriptedModel(lines), tools=[CountingTool()]).run()).text == "answer"


async def test_the_last_text_wins_as_fallback() -> None:
    lines: list[ScriptLine] = [
        tool_call_reply(("count", "{}"), text="first"),
        tool_call_reply(("count", "{}"), text="second"),
        *[text_reply("")] * 3,
    ]
    assert (await stage(ScriptedModel(lines), tools=[CountingTool()]).run()).text == "second"


async def test_calls_without_ids_or_with_ids_used_before_get_new_ones() -> None:
    """Some servers number their calls from zero in every answer."""
    again = tool_call_reply(("count", "{}", "call_0"), ("count", '{"a":1}', "call_0"))
    unnamed = tool_call_reply(("count", "{}"), ("count", '{"b":1}'))
    signed = replace(again, message=replace(again.message, echo=ProviderEcho("w", "m", "holds call_0")))
    model = ScriptedModel([tool_call_reply(("count", "{}", "call_0")), signed, unnamed, text_reply("done")])
    outcome = await stage(model, tools=[CountingTool()], limits=RunLimits(iterations=9)).run()
    asked = [m for m in outcome.messages if isinstance(m, AssistantMessage) and m.calls]
    assert len({call.id for m in asked for call in m.calls}) == 5
    assert [m.echo for m in asked] == [None] * 3
