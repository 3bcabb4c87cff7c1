"""The loop guard."""

from collections.abc import Mapping
from typing import Any

import pytest

from hummingbird.agent.run_state import call_signature, count_repeats
from hummingbird.core.journal import EndReason
from hummingbird.core.messages import NoticeKind
from hummingbird.core.protocols.tools import DenyCall
from hummingbird.core.tool_spec import ToolSpec
from tests.agent.stage import CountingTool, notices_in, stage, tool
from tests.standins.scripted_model import ScriptedModel, ScriptLine, text_reply, tool_call_reply

SAME = tool_call_reply(("look", '{"at":"x"}'))


def looking(letter: str) -> ScriptLine:
    return tool_call_reply(("look", f'{{"at":"{letter}"}}'))


async def noticed(lines: list[ScriptLine]) -> tuple[EndReason, list[bool]]:
    """How the run ended, and for each request whether the model had been told that it repeats itself."""
    model = ScriptedModel([*lines, text_reply("done")])
    on = stage(model, tools=[tool(), CountingTool()])
    outcome = await on.run()
    on.consumed()
    assert outcome.text == "done"
    return outcome.reason, [bool(notices_in(request, NoticeKind.REPEATING)) for request in model.requests]


async def test_the_same_call_with_the_same_result_three_times_gets_a_notice() -> None:
    reason, told = await noticed([SAME] * 3)
    assert (reason, told) == (EndReason.COMPLETED, [False] * 3 + [True])


async def test_at_five_the_run_ends_as_no_progress_with_a_final_text_turn() -> None:
    model = ScriptedModel([*[SAME] * 5, text_reply("what I know")])
    on = stage(model, tools=[tool()])
    outcome = await on.run()
    on.consumed()
    assert (outcome.reason, outcome.text, outcome.answered) == (EndReason.NO_PROGRESS, "what I know", True)
    assert "repeating" in notices_in(model.requests[-1], NoticeKind.FINAL)[0]
    assert len(on.notices(NoticeKind.REPEATING)) == 1


@pytest.mark.parametrize("length", [2, 3, 4, 5])
async def test_a_repeating_cycle_is_noticed_at_three_and_ends_at_five(length: int) -> None:
    """Cycles of two to five calls."""
    cycle = [looking(letter) for letter in "abcde"[:length]]
    reason, told = await noticed(cycle * 3)
    assert reason is EndReason.COMPLETED
    assert told.index(True) == {2: 5, 3: 7, 4: 9, 5: 15}[length], "the third time, or the third round if that is sooner"
    reason, told = await noticed(cycle * 5)
    assert reason is EndReason.NO_PROGRESS
    assert len(told) == length * 5 + 1


async def test_different_results_are_no_repetition() -> None:
    """Polling something that changes is work."""
    reason, told = await noticed([tool_call_reply(("count", "{}"))] * 12)
    assert (reason, any(told)) == (EndReason.COMPLETED, False)


async def test_different_calls_with_the_same_result_are_no_repetition() -> None:
    reason, told = await noticed([looking(letter) for letter in "abcdefghijkl"])
    assert (reason, any(told)) == (EndReason.COMPLETED, False)


async def test_identical_calls_of_one_response_count_once() -> None:
    five = tool_call_reply(*[("look", '{"at":"x"}')] * 5)
    reason, told = await noticed([five, five])
    assert (reason, any(told)) == (EndReason.COMPLETED, False)
    reason, told = await noticed([five] * 3)
    assert told[-1]


@pytest.mark.parametrize("between", [1, 2, 3])
async def test_polling_between_steps_that_get_on_is_noticed_but_does_not_end_the_run(between: int) -> None:
    """The same status read again and again while other calls find something new."""
    lines: list[ScriptLine] = []
    for number in range(6):
        lines += [SAME, *(looking(f"{number}.{step}") for step in range(between))]
    reason, told = await noticed(lines)
    assert reason is EndReason.COMPLETED
    assert any(told), "the same call with the same result three times is worth a notice, not an end"


@pytest.mark.parametrize("first", [True, False])
async def test_polling_beside_a_step_that_gets_on_does_not_end_the_run(first: bool) -> None:
    """The order within one response does not matter."""
    poll = ("look", '{"at":"x"}')
    other = ("count", "{}")
    lines: list[ScriptLine] = [tool_call_reply(poll, other) if first else tool_call_reply(other, poll)] * 6
    reason, _ = await noticed(lines)
    assert reason is EndReason.COMPLETED


async def test_going_round_without_a_strict_order_is_noticed_too() -> None:
    """Nothing new comes up any more."""
    _, told = await noticed([looking(letter) for letter in "abbaabab"])
    assert told[-1]


async def test_after_a_notice_progress_clears_the_slate() -> None:
    """A new circle gets a new notice."""
    lines: list[ScriptLine] = [*[SAME] * 3, looking("new"), *[looking("y")] * 3]
    model = ScriptedModel([*lines, text_reply("done")])
    on = stage(model, tools=[tool()])
    assert (await on.run()).reason is EndReason.COMPLETED
    assert len(on.notices(NoticeKind.REPEATING)) == 2


async def test_a_failing_call_made_again_and_again_is_no_progress() -> None:
    """The same call with the same result, whatever the result is."""

    async def broken() -> str:
        raise ValueError("always")

    model = ScriptedModel([*[tool_call_reply(("broken", "{}"))] * 5, text_reply("done")])
    assert (await stage(model, tools=[tool("broken", broken)]).run()).reason is EndReason.NO_PROGRESS


async def test_a_denied_call_made_again_and_again_is_no_progress() -> None:
    class Never:
        name = "never"

        async def before_tool(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> DenyCall:
            return DenyCall("not here")

        async def after_tool(self, spec: ToolSpec, arguments: Mapping[str, Any], result: str) -> None:
            return None

    model = ScriptedModel([*[SAME] * 5, text_reply("done")])
    assert (await stage(model, tools=[tool()], hooks=[Never()]).run()).reason is EndReason.NO_PROGRESS


async def test_each_run_has_its_own_guard() -> None:
    """Asked again, a tool may say the same again."""
    model = ScriptedModel([SAME, SAME, text_reply("1"), SAME, SAME, text_reply("2")])
    on = stage(model, tools=[tool()])
    await on.run()
    await on.run()
    assert on.notices(NoticeKind.REPEATING) == []


def test_white_space_between_the_arguments_does_not_make_another_call() -> None:
    assert call_signature("look", '{"a": 1,\n "b": 2}', "r") == call_signature("look", '{"b":2,"a":1}', "r")


def test_white_space_inside_an_argument_does() -> None:
    """`rm -rf a b` is not `rm -rf ab`."""
    assert call_signature("look", '{"q":"a b"}', "r") != call_signature("look", '{"q":"ab"}', "r")


def test_a_call_that_is_no_json_has_a_signature_too() -> None:
    assert call_signature("look", "{broken", "r") == call_signature("look", "{broken", "r")
    assert call_signature("look", "[" * 100_000, "r") == call_signature("look", "[" * 100_000, "r")


def test_nothing_done_is_nothing_repeated() -> None:
    assert count_repeats([]) == 0
    assert count_repeats([1]) == 1


def test_a_long_result_that_went_to_another_file_is_the_same_result() -> None:
    first, second = (
        call_signature("read_log", "{}", f"saved to /tmp/data/_out/read_log_{number}.txt, 9 lines")
        for number in (1, 22)
    )
    assert first == second
    assert first != call_signature("read_log", "{}", "saved to /tmp/data/_out/read_log_1.txt, 10 lines")
    assert first != call_signature("read_log", "{}", "saved to /tmp/data/_out/other_1.txt, 9 lines")
