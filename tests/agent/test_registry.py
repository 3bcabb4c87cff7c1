"""Which tools a session has, and which it refuses to have."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.agent.tools.registry import Toolbox, select_tools
from hummingbird.core.errors import ModelMistake, ToolDefinitionError, UsageError
from hummingbird.core.protocols.tools import ToolContext
from hummingbird.core.tool_spec import ToolEffect, ToolSpec
from tests.agent.stage import ANYTHING, CountingTool, stage, tool
from tests.standins.function_tool import FunctionTool
from tests.standins.scripted_model import ScriptedModel, text_reply, tool_call_reply


def names(*tools: Any, toolsets: list[str] | None = None, environment: Mapping[str, str] | None = None) -> list[str]:
    return Toolbox(select_tools(tools, toolsets, environment or {})).names


def broken(schema: Any, **spec: Any) -> Toolbox:
    return Toolbox([tool("it", schema=schema, **spec)])


def object_of(*properties: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {**{one: {} for one in properties}, **more}, "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "given", "taken"),
    [
        (object_of("project", "mr_iid"), {"project": "org/repo", "iid": 42}, {"project": "org/repo", "mr_iid": 42}),
        (object_of("mr_iid"), {"mr_iid": 42}, {"mr_iid": 42}),
        (object_of("iid"), {"iid": 42}, {"iid": 42}),
        (object_of("sha"), {"commit_sha": "abc"}, {"sha": "abc"}),
        (
            object_of(fetches={"type": "array", "items": object_of("tool", "arguments", "path")}),
            {"requests": [{"tool": "konflux_list_pipelineruns", "args": {"sha": "abc"}, "path": "runs.json"}]},
            {"fetches": [{"tool": "konflux_list_pipelineruns", "arguments": {"sha": "abc"}, "path": "runs.json"}]},
        ),
    ],
)
def test_documented_names_of_parameters_are_taken_beside_ours(
    schema: dict[str, Any], given: dict[str, Any], taken: dict[str, Any]
) -> None:
    assert Toolbox([tool("it", schema=schema)]).prepare("it", json.dumps(given)).arguments == taken


def test_only_the_enabled_toolsets_are_exposed() -> None:
    tools = [tool("a", toolset="gitlab"), tool("b", toolset="web"), tool("c", toolset="gitlab"), tool("d")]
    assert names(*tools, toolsets=["gitlab"]) == ["a", "c"]
    assert names(*tools, toolsets=["gitlab", "default"]) == ["a", "c", "d"]
    assert names(*tools, toolsets=[]) == []
    assert names(*tools) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("environment", "there"), [({}, False), ({"KEY": ""}, False), ({"OTHER": "x"}, False), ({"KEY": "x"}, True)]
)
def test_a_tool_needs_its_environment(environment: dict[str, str], there: bool) -> None:
    """An empty variable is not set."""
    assert (names(tool("a", requires_env=("KEY",)), environment=environment) == ["a"]) is there


def test_a_tool_needs_all_of_its_environment() -> None:
    both = tool("a", requires_env=("KEY", "HOST"))
    assert names(both, environment={"KEY": "x"}) == []
    assert names(both, environment={"KEY": "x", "HOST": "y"}) == ["a"]


def test_a_tool_needs_its_check_to_hold() -> None:
    assert names(tool("a", check=lambda: False), tool("b", check=lambda: True)) == ["b"]


def test_a_check_is_not_asked_when_the_environment_already_says_no() -> None:
    """It may rely on the variable."""

    def check() -> bool:
        raise AssertionError("asked")

    assert names(tool("a", requires_env=("KEY",), check=check)) == []


def test_a_specification_says_what_a_tool_is() -> None:
    spec = ToolSpec("it", "Does it.", {"type": "object"})
    assert (spec.toolset, spec.effects, spec.exclusive, spec.interactive) == (
        "default",
        frozenset({ToolEffect.READ}),
        None,
        False,
    )
    assert spec.timeout_s == 120.0
    assert set(ToolEffect) == {"read", "write", "exec", "send"}


@pytest.mark.parametrize(
    "name", ["", "two words", "dash-ed", "9lives", "dot.ted", "naïve", "x" * 65, "new\nline", "名前", "a\ud800"]
)
def test_a_name_that_some_provider_refuses_is_refused_here(name: str) -> None:
    with pytest.raises(ToolDefinitionError, match="not usable"):
        Toolbox([tool(name)])


@pytest.mark.parametrize("name", ["a", "_", "read_file", "readFile2", "x" * 64])
def test_a_name_that_all_take_is_taken(name: str) -> None:
    assert Toolbox([tool(name)]).names == [name]


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ToolDefinitionError, match="Two tools are named 'a'"):
        Toolbox([tool("a"), tool("b"), tool("a")])


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "string"},
        {"type": ["object", "null"]},
        {"type": "object", "properties": {"a": {"type": "text"}}},
        {"type": "object", "properties": []},
        {"type": "object", "required": "a"},
        {"type": "object", "properties": {"a": {"pattern": "("}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/missing"}}},
        {"type": "object", "default": object()},
        {"type": "object", "title": "\ud800"},
        {"type": "object", "properties": {1: {}}},
        [],
        None,
        True,
    ],
)
def test_a_schema_that_cannot_be_used_is_refused(schema: Any) -> None:
    """When the session opens, not when the model calls."""
    with pytest.raises(ToolDefinitionError, match="schema of tool it"):
        broken(schema)


@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef"])
@pytest.mark.parametrize("uri", ["http://example.org/x", "https://example.org/x", "file:///etc/passwd", "other.json"])
def test_a_schema_may_not_refer_to_anything_outside_itself(keyword: str, uri: str) -> None:
    """Nothing is fetched because a tool says so."""
    with pytest.raises(ToolDefinitionError, match="schema of tool it"):
        broken({"type": "object", "properties": {"a": {keyword: uri}}})
    with pytest.raises(ToolDefinitionError, match="schema of tool it"):
        broken({"type": "object", "$schema": uri})


def test_a_schema_may_refer_to_itself() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}}
    box = broken(schema)
    assert box.prepare("it", '{"a": 1}').arguments == {"a": 1}
    with pytest.raises(ModelMistake):
        box.prepare("it", '{"a": "1"}')


class FakeTool(CountingTool):
    def __init__(self, spec: ToolSpec) -> None:
        super().__init__()
        self.spec = spec


MENTIONING = FakeTool(
    ToolSpec("exec", "Runs a command.", {"type": "object"}, mentions={"fetch": "Use fetch for logs."})
)


def test_a_description_is_text_that_can_be_written_down() -> None:
    [definition] = Toolbox([FakeTool(ToolSpec("it", "half \ud800", {"type": "object"}))]).definitions
    assert definition.description == "half ?"


def test_another_tool_is_mentioned_only_while_it_is_enabled() -> None:
    alone, both = Toolbox([MENTIONING]), Toolbox([MENTIONING, tool("fetch")])
    assert alone.definitions[0].description == "Runs a command."
    assert both.definitions[0].description == "Runs a command. Use fetch for logs."


def test_a_description_that_names_a_tool_that_is_not_enabled_is_refused() -> None:
    spec = ToolSpec("exec", "Runs it; see fetch.", {"type": "object"}, mentions={"fetch": "More with fetch."})
    with pytest.raises(ToolDefinitionError, match="names fetch"):
        Toolbox([FakeTool(spec)])
    assert Toolbox([FakeTool(spec), tool("fetch")]).names == ["exec", "fetch"]


def test_a_sentence_about_one_tool_may_not_name_another_that_is_missing() -> None:
    mentions = {"fetch": "Use fetch, then unpack.", "unpack": "Use unpack."}
    spec = ToolSpec("exec", "Runs it.", {"type": "object"}, mentions=mentions)
    with pytest.raises(ToolDefinitionError, match="names unpack"):
        Toolbox([FakeTool(spec), tool("fetch")])


def test_notes_for_the_system_prompt_stand_there_once() -> None:
    box = Toolbox([tool("a", notes="Same."), tool("b", notes=" Same. "), tool("c", notes="Other."), tool("d")])
    assert box.notes == "Same.\n\nOther."


async def test_arguments_are_validated_before_the_call() -> None:
    ran: list[int] = []

    async def it(a: int) -> str:
        ran.append(a)
        return "ok"

    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    model = ScriptedModel([tool_call_reply(("it", '{"a":"x"}'), ("it", "{}"), ("it", '{"a":7}')), text_reply("done")])
    await stage(model, tools=[tool("it", it, schema=schema)]).run()
    assert ran == [7]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.one_of(st.text(), JSON.map(json.dumps)), st.text())
def test_whatever_a_model_writes_is_prepared_or_a_mistake(arguments: str, name: str) -> None:
    """Nothing else comes out of the registry."""
    box = broken({"type": "object", "properties": {"a": {"type": "integer", "multipleOf": 0.1}}})
    for called in ("it", name):
        told = ""
        try:
            prepared = box.prepare(called, arguments)
            assert isinstance(prepared.arguments, dict)
        except ModelMistake as mistake:
            told = str(mistake)
        assert len(told.encode()) < 3_000


@pytest.mark.parametrize(
    ("effects", "exclusive", "interactive", "alone"),
    [
        ({ToolEffect.READ}, None, False, False),
        ({ToolEffect.READ, ToolEffect.WRITE}, None, False, True),
        ({ToolEffect.EXEC}, None, False, True),
        ({ToolEffect.EXEC}, False, False, False),
        ({ToolEffect.READ}, True, False, True),
        ({ToolEffect.READ}, False, True, True),
    ],
)
def test_only_what_reads_runs_beside_others_unless_it_says_so(
    effects: set[ToolEffect], exclusive: bool | None, interactive: bool, alone: bool
) -> None:
    """Concurrent when each is marked safe for it."""
    spec = ToolSpec(
        "it", "Does it.", ANYTHING, effects=frozenset(effects), exclusive=exclusive, interactive=interactive
    )
    assert spec.runs_alone is alone


def test_a_description_cannot_name_a_tool_that_is_not_enabled() -> None:
    """Also when its author did not say that it mentions one."""
    reader = tool("read_log", schema=ANYTHING)
    naming = FunctionTool(ToolSpec("look", "Call search_log first.", ANYTHING), lambda: "x")
    with pytest.raises(ToolDefinitionError, match="names search_log"):
        Toolbox([reader, naming], hidden=["search_log", "read_log"])
    assert Toolbox([reader, naming], hidden=["read_log"]).names == ["read_log", "look"]


def test_a_toolset_that_nothing_belongs_to_is_a_fault() -> None:
    with pytest.raises(UsageError, match="no toolset 'gitlba'; there are: default"):
        select_tools([tool()], ["gitlba"], {})


def test_a_check_that_fails_to_answer_names_its_tool() -> None:
    def check() -> bool:
        raise ConnectionError("no route")

    with pytest.raises(ToolDefinitionError, match=r"Tool look could not tell.*no route"):
        select_tools([tool(check=check)], None, {})


async def test_a_tools_own_context_argument_is_its_own() -> None:
    """Grep has one too."""
    schema = {"type": "object", "properties": {"context": {"type": "integer"}}}
    grep = FunctionTool(ToolSpec("grep", "Searches.", schema), lambda context: f"{context} lines")
    assert await grep({"context": 3}, ToolContext("s", "c")) == "3 lines"
