"""Notices are their own kind, stay where they were shown, and are issued anew for another model."""

from dataclasses import replace

import pytest

from hummingbird.agent.budget import CHAT_LIMITS, RunLimits
from hummingbird.core.errors import CreditExhausted
from hummingbird.core.journal import FinishReason, ModelSwitched, UserSaid
from hummingbird.core.messages import AssistantMessage, Notice, NoticeKind, UserMessage
from hummingbird.core.projections import render_transcript
from tests.agent.stage import CountingTool, notices_in, stage
from tests.standins.scripted_model import ScriptedModel, ScriptLine, text_reply, tool_call_reply


def pair(first: list[ScriptLine], second: list[ScriptLine]) -> tuple[ScriptedModel, ScriptedModel]:
    return ScriptedModel(first, name="a:one"), ScriptedModel(second, name="b:two")


async def test_notices_stay_at_their_place_in_every_later_request() -> None:
    """The stage checks that each request begins with the one before it; here with three kinds of notices."""
    lines: list[ScriptLine] = [
        text_reply(""),
        *(tool_call_reply(("count", "{}")) for _ in range(8)),
        text_reply("done"),
    ]
    model = ScriptedModel(lines)
    on = stage(model, tools=[CountingTool()], limits=RunLimits(iterations=10))
    outcome = await on.run()
    on.consumed()
    kinds = [m.kind for m in outcome.messages if isinstance(m, Notice)]
    assert kinds == [NoticeKind.EMPTY, NoticeKind.SOFT_BUDGET, NoticeKind.FINAL]
    last = list(model.requests[-1].messages)
    for request in model.requests:
        assert last[: len(request.messages)] == list(request.messages)


async def test_a_notice_is_never_a_user_message_and_not_in_the_transcript() -> None:
    model = ScriptedModel([text_reply(""), text_reply("done")])
    on = stage(model)
    await on.run("only this")
    assert [m for m in model.requests[1].messages if isinstance(m, UserMessage)] == [UserMessage("only this")]
    assert [entry.text for entry in on.written(UserSaid)] == ["only this"]
    [notice] = notices_in(model.requests[1], NoticeKind.EMPTY)
    assert notice not in render_transcript(on.journal.entries())


async def test_lasting_notices_in_force_are_issued_anew_for_another_model() -> None:
    """Continuation and budget; the ones of the old epoch are gone from the view."""
    tools = [CountingTool()]
    first, second = pair(
        [text_reply("one"), *(tool_call_reply(("count", "{}")) for _ in range(4)), CreditExhausted("no money")],
        [text_reply("two")],
    )
    on = stage(first, second, tools=tools, limits=RunLimits(iterations=5 + 1, warns=True))
    await on.run("order")
    await on.run("reply")
    on.consumed()
    kinds = [m.kind for m in second.requests[0].messages if isinstance(m, Notice)]
    assert kinds == [NoticeKind.CONTINUATION]
    assert isinstance(second.requests[0].messages[-1], Notice)


async def test_a_soft_budget_notice_is_issued_anew_with_what_is_left_now() -> None:
    first, second = pair(
        [*(tool_call_reply(("count", "{}")) for _ in range(9)), CreditExhausted("no money")], [text_reply("done")]
    )
    on = stage(first, second, tools=[CountingTool()], limits=RunLimits(iterations=11))
    await on.run()
    on.consumed()
    assert len(on.notices(NoticeKind.SOFT_BUDGET)) == 2
    assert len(notices_in(first.requests[-1], NoticeKind.SOFT_BUDGET)) == 1
    assert len(notices_in(second.requests[0], NoticeKind.SOFT_BUDGET)) == 1


async def test_a_final_notice_is_issued_anew() -> None:
    first, second = pair([tool_call_reply(("count", "{}")), CreditExhausted("no money")], [text_reply("done")])
    on = stage(first, second, tools=[CountingTool()], limits=RunLimits(iterations=2))
    outcome = await on.run()
    assert outcome.answered
    [final] = notices_in(second.requests[0], NoticeKind.FINAL)
    assert "last turn" in final


async def test_a_budget_notice_that_no_longer_holds_is_not_issued_anew() -> None:
    """Only those still in force; the other model has a larger window."""
    small = ScriptedModel(
        [tool_call_reply(("count", "{}")), CreditExhausted("no money")], name="a:one", context_tokens=120
    )
    large = ScriptedModel([text_reply("done")], name="b:two", context_tokens=100_000)
    on = stage(small, large, tools=[CountingTool()])
    await on.run()
    assert len(notices_in(small.requests[1], NoticeKind.SOFT_BUDGET)) == 1
    assert notices_in(large.requests[0], NoticeKind.SOFT_BUDGET) == []


async def test_a_request_to_continue_a_cut_off_answer_survives_a_change_of_model() -> None:
    """Without it the request would end with the assistant's own words."""
    first, second = pair(
        [text_reply("The cause", finish=FinishReason.LENGTH), CreditExhausted("no money")], [text_reply(" is known")]
    )
    on = stage(first, second)
    outcome = await on.run()
    assert outcome.text == "The cause is known"
    assert list(second.requests[0].messages[:2]) == [UserMessage("go"), AssistantMessage("The cause")]
    assert len(notices_in(second.requests[0], NoticeKind.CONTINUE)) == 1


async def test_notices_of_the_old_epoch_stay_in_the_journal() -> None:
    """Gone from the view, never from the journal."""
    first, second = pair([text_reply(""), CreditExhausted("no money")], [text_reply("done")])
    on = stage(first, second)
    await on.run()
    assert len(on.written(ModelSwitched)) == 1
    assert len(on.notices(NoticeKind.EMPTY)) == 1
    assert notices_in(second.requests[0], NoticeKind.EMPTY) == []


@pytest.mark.parametrize("limits", [RunLimits(iterations=1), replace(CHAT_LIMITS, iterations=1)])
async def test_after_a_final_turn_the_next_run_is_told_that_tools_work_again(limits: RunLimits) -> None:
    """Notices stay, so one that is over must be taken back by another."""
    model = ScriptedModel([text_reply("one"), text_reply("two")])
    on = stage(model, limits=limits)
    await on.run("first")
    on = stage(model, limits=replace(limits, iterations=9), journal=on.journal)
    await on.run("second")
    assert notices_in(model.requests[0], NoticeKind.RENEWED) == []
    assert len(notices_in(model.requests[1], NoticeKind.RENEWED)) == 1


async def test_a_nudge_on_the_final_turn_does_not_invite_tool_calls() -> None:
    model = ScriptedModel([tool_call_reply(("count", "{"), finish=FinishReason.LENGTH), text_reply("done")])
    await stage(model, limits=RunLimits(iterations=1)).run()
    (nudge,) = notices_in(model.requests[1], NoticeKind.SMALLER)
    assert "not run any more" in nudge
