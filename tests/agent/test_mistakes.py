"""Calls that cannot be run as they came."""

import pytest

from hummingbird.core.journal import EndReason, ToolFinished, ToolOutcome, ToolStarted
from hummingbird.core.messages import NoticeKind
from tests.agent.stage import CountingTool, Stage, notices_in, results_in, stage, tool
from tests.standins.scripted_model import ScriptedModel, text_reply, tool_call_reply

STRICT = {
    "type": "object",
    "properties": {"lines": {"type": "array", "items": {"type": "integer"}}, "path": {"type": "string"}},
    "required": ["path"],
    "additionalProperties": False,
}
DEEP = '{"path":' + "[" * 100_000 + "]" * 100_000 + "}"


async def one_call(name: str, arguments: str) -> tuple[Stage, ToolFinished]:
    model = ScriptedModel([tool_call_reply((name, arguments)), text_reply("done")])
    on = stage(model, tools=[tool("read_file", "text", schema=STRICT)])
    assert (await on.run()).answered
    [finished] = on.written(ToolFinished)
    return on, finished


async def test_an_unknown_tool_gets_an_error_result_that_lists_the_tools() -> None:
    model = ScriptedModel([tool_call_reply(("remove_file", "{}")), text_reply("done")])
    on = stage(model, tools=[tool("read_file"), tool("list_files")])
    await on.run()
    [result] = results_in(model.requests[1])
    assert result.is_error
    assert "remove_file" in result.text
    assert "read_file, list_files" in result.text
    assert on.written(ToolStarted) == []


@pytest.mark.parametrize("name", ["read_file", "Read_File", "read-file", "READ-FILE", "readFile"])
async def test_case_and_dashes_are_normalised_once(name: str) -> None:
    _, finished = await one_call(name, '{"path":"a"}')
    assert (finished.outcome, finished.text) == (ToolOutcome.OK, "text")


@pytest.mark.parametrize("name", ["reed_file", "read_files", "file_read", "read", "", "日本"])
async def test_nothing_else_is_guessed(name: str) -> None:
    """A near miss may be another tool."""
    _, finished = await one_call(name, '{"path":"a"}')
    assert finished.outcome is ToolOutcome.MISTAKE


async def test_a_name_that_two_tools_could_mean_means_neither() -> None:
    """Exact normalisation, not a choice."""
    model = ScriptedModel([tool_call_reply(("GET-LOG", "{}")), text_reply("done")])
    on = stage(model, tools=[tool("get_log"), tool("getlog")])
    await on.run()
    assert [entry.outcome for entry in on.written(ToolFinished)] == [ToolOutcome.MISTAKE]


@pytest.mark.parametrize("name", ["get_log", "getlog"])
async def test_an_exact_name_is_never_normalised(name: str) -> None:
    model = ScriptedModel([tool_call_reply((name, "{}")), text_reply("done")])
    on = stage(model, tools=[tool("get_log", "get_log"), tool("getlog", "getlog")])
    await on.run()
    assert [entry.text for entry in on.written(ToolFinished)] == [name]


@pytest.mark.parametrize(
    "arguments",
    ['{"path": "a', "path=a", "{'path': 'a'}", '{"path":"a"} more', '{"path": "\ud800"}', "[]", "null", '"a"', DEEP],
    ids=len,
)
async def test_arguments_that_are_no_json_object_get_an_error_result(arguments: str) -> None:
    on, finished = await one_call("read_file", arguments)
    assert finished.outcome is ToolOutcome.MISTAKE
    assert "read_file" in finished.text
    assert "JSON" in finished.text
    assert len(finished.text) < 1_000
    assert on.written(ToolStarted) == []


@pytest.mark.parametrize(
    ("arguments", "where", "rule"),
    [
        ('{"path": 1}', "path", "properties/path/type"),
        ('{"path": "a", "lines": [1, "two"]}', "lines/1", "properties/lines/items/type"),
        ("{}", "the arguments", "required"),
        ('{"path": "a", "x": 1}', "the arguments", "additionalProperties"),
    ],
)
async def test_arguments_that_break_the_schema_get_its_path(arguments: str, where: str, rule: str) -> None:
    _, finished = await one_call("read_file", arguments)
    assert finished.outcome is ToolOutcome.MISTAKE
    assert f"at {where}:" in finished.text
    assert f"(rule {rule})" in finished.text


async def test_no_arguments_at_all_are_an_empty_object() -> None:
    """What several models send for tools without parameters."""
    model = ScriptedModel([tool_call_reply(("look", "")), text_reply("done")])
    on = stage(model, tools=[tool()])
    await on.run()
    assert [entry.outcome for entry in on.written(ToolFinished)] == [ToolOutcome.OK]


async def test_three_strikes_end_the_run_honestly() -> None:
    """With one last chance to say what it knows."""
    model = ScriptedModel(
        [
            tool_call_reply(("nope", "{}")),
            tool_call_reply(("look", "{")),
            tool_call_reply(("look", "[]")),
            text_reply("I know this"),
        ]
    )
    on = stage(model, tools=[tool()])
    outcome = await on.run()
    on.consumed()
    assert (outcome.reason, outcome.text, outcome.answered) == (EndReason.MODEL_ERROR, "I know this", True)
    assert "three times" in notices_in(model.requests[-1], NoticeKind.FINAL)[0]


async def test_strikes_are_counted_in_a_row() -> None:
    bad, good = tool_call_reply(("nope", "{}")), tool_call_reply(("count", "{}"))
    model = ScriptedModel([bad, bad, good, bad, bad, good, text_reply("done")])
    on = stage(model, tools=[CountingTool()])
    assert (await on.run()).reason is EndReason.COMPLETED


async def test_a_mistake_beside_a_good_call_is_no_strike() -> None:
    """The good call runs, the bad one gets its error."""
    counting = CountingTool()
    both = tool_call_reply(("count", "{}"), ("nope", "{}"))
    on = stage(ScriptedModel([both] * 4 + [text_reply("done")]), tools=[counting])
    assert (await on.run()).reason is EndReason.COMPLETED
    assert len(counting.runs) == 4


async def test_a_model_that_only_makes_mistakes_to_the_end_leaves_a_fixed_sentence() -> None:
    on = stage(ScriptedModel([tool_call_reply(("nope", "{}"))] * 5), tools=[tool()])
    outcome = await on.run()
    on.consumed()
    assert (outcome.reason, outcome.answered, outcome.exit_code) == (EndReason.MODEL_ERROR, False, 1)
