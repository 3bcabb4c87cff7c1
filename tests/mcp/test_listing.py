"""Which tools of a server become ours, under which names and with which effects."""

import asyncio
import re

import pytest

from hummingbird.agent.tools.registry import Toolbox
from hummingbird.core.errors import SourceRefused
from hummingbird.core.limits import TOOL_NAME_CHARS
from hummingbird.core.tool_spec import ToolEffect
from hummingbird.mcp import DESCRIPTION_CHARS, MAX_TOOLS
from hummingbird.mcp.client import McpServers, tool_name
from hummingbird.mcp.server_text import answer_from_result
from tests.mcp.playing import TIME_TOOLS, call, clock, misbehaving, named, opened


async def test_the_time_server_lists_its_tools_and_answers_calls() -> None:
    async with opened(clock()) as servers:
        assert [tool.name for tool in servers.tools] == list(TIME_TOOLS)
        assert '"timezone": "UTC"' in await call(servers, "get_current_time", timezone="UTC")
        converted = await call(
            servers, "convert_time", source_timezone="UTC", time="12:00", target_timezone="Asia/Tokyo"
        )
        assert "21:00" in converted
        assert servers.trouble == ()


async def test_only_the_tools_of_the_allow_list_are_offered_and_one_that_is_not_there_is_told() -> None:
    async with opened(misbehaving(tools=("echo", "Echo", "ech*"))) as servers:
        assert [tool.spec.name for tool in servers.tools] == ["mcp_raw_echo"]
        assert servers.trouble == (
            "MCP server 'raw' has no tool 'Echo': fix the name in `tools`, or take it out.",
            "MCP server 'raw' has no tool 'ech*': fix the name in `tools`, or take it out.",
        )


async def test_a_server_without_an_allow_list_is_not_even_started() -> None:
    async with opened(misbehaving("die", tools=()), misbehaving(name="both", url="http://127.0.0.1:9")) as servers:
        assert servers.tools == ()
        assert servers.trouble == (
            "MCP server 'raw' was not started: its `tools` name none. Name those you want, or '*'.",
            "MCP server 'both' needs either `command` or `url`: set one of them.",
        )


@pytest.mark.thorough
async def test_only_what_the_operator_calls_reading_reads_and_all_else_can_do_anything() -> None:
    async with opened(clock(read_tools=("convert_time", "format_disk"))) as servers:
        assert named(servers, "convert_time").spec.effects == {ToolEffect.READ}
        assert named(servers, "get_current_time").spec.effects == set(
            ToolEffect
        )  # its own annotation says that it reads
        assert not any(tool.spec.trusted for tool in servers.tools)
        assert {tool.spec.toolset for tool in servers.tools} == {"mcp"}


async def test_read_tools_outside_the_allow_list_are_told() -> None:
    async with opened(misbehaving(tools=("echo",), read_tools=("env",))) as servers:
        assert "has 'env' in its `read_tools` and not in its `tools`: add it there." in servers.trouble[0]


async def test_star_in_read_tools_means_every_tool() -> None:
    async with opened(clock(read_tools=("*",))) as servers:
        assert {effect for tool in servers.tools for effect in tool.spec.effects} == {ToolEffect.READ}
        assert servers.trouble == ()


@pytest.mark.parametrize(
    ("structured", "text"),
    [({"content": "of a"}, "of a"), ({"result": "of a"}, "of a"), ({"n": 1}, 'of a\n\n{"n":1}')],
)
def test_result_that_is_there_twice_is_read_once(structured: dict[str, object], text: str) -> None:
    """The file server of MCP sends it as text and as `content`."""
    result = {"content": [{"type": "text", "text": "of a"}], "structuredContent": structured}
    assert answer_from_result(result).text == text


async def test_a_tool_with_a_broken_schema_costs_only_itself_and_is_told() -> None:
    async with opened(misbehaving("broken")) as servers:
        assert [tool.name for tool in servers.tools] == ["echo", "fine"]
        told = {name: text for text in servers.trouble for name in re.findall(r"a tool '(\w+)' that is left out", text)}
        assert told.keys() == {"no_schema", "array", "words", "invalid", "remote", "large"}
        assert "9,0" in told["large"]
        assert "8,192 are allowed" in told["large"]
        assert "may not refer to" in told["remote"]
        Toolbox(servers.tools)  # refuses none of what is left


@pytest.mark.thorough
async def test_descriptions_are_bounded_plain_text_that_says_whose_they_are() -> None:
    async with opened(misbehaving("broken", tools=("echo",))) as servers:
        words = servers.tools[0].spec.description
        assert words.startswith("MCP server raw: It is [31mred xxx")
        assert len(words.removeprefix("MCP server raw: ")) == DESCRIPTION_CHARS


@pytest.mark.thorough
async def test_a_server_that_gives_no_list_has_no_tools_and_a_sentence() -> None:
    async with opened(misbehaving("no-list"), clock()) as servers:
        assert [tool.name for tool in servers.tools] == list(TIME_TOOLS)
        assert servers.trouble == (
            "MCP server 'raw' gave no list of tools: look at it by hand, or take it out of the configuration.",
        )


@pytest.mark.thorough
async def test_an_endless_list_is_read_to_the_bound() -> None:
    async with opened(misbehaving("many")) as servers:
        assert len(servers.tools) == MAX_TOOLS
        assert "has more than 64 tools" in servers.trouble[0]
    async with opened(misbehaving("many", tools=("tool-100",))) as servers:
        assert [tool.spec.name for tool in servers.tools] == ["mcp_raw_tool_100"]


@pytest.mark.thorough
async def test_names_are_unique_callable_and_the_same_in_every_session() -> None:
    async with opened(misbehaving("same", name="a-b"), misbehaving("same", name="a b")) as servers:
        names = [tool.spec.name for tool in servers.tools]
        assert len(set(names)) == len(names) == 8
        assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and len(name) <= TOOL_NAME_CHARS for name in names)
        assert names[0] == "mcp_a_b_a_b"
        Toolbox(servers.tools)
        assert "MCP server 'a-b' lists 'a.b' twice: the second is left out." in servers.trouble
    assert tool_name("s", "n" * 80) == tool_name("s", "n" * 80) != tool_name("s", "n" * 81)


async def told_of_trouble(servers: McpServers) -> None:
    """The server is asked again in the background."""
    async with asyncio.timeout(30):
        while not servers.trouble:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.01)


async def test_a_server_that_changes_its_tools_does_not_change_those_of_the_session() -> None:
    """One that only says so is no trouble: some do at every start."""
    async with opened(misbehaving(tools=("change",))) as servers:
        before = servers.tools
        for _ in range(3):
            assert await call(servers, "change") == "changed"
        assert list(servers.trouble) == []
        assert await call(servers, "change", really=True) == "changed"
        await told_of_trouble(servers)
        assert servers.tools is before
        assert servers.trouble == (
            "MCP server 'raw' offers other tools than when this session began: start a new session to use them.",
        )
        with pytest.raises(SourceRefused, match="as it did when this session began"):
            await call(servers, "change")


@pytest.mark.thorough
async def test_a_server_that_knows_only_the_newest_protocol_is_spoken_with() -> None:
    async with opened(misbehaving("modern", tools=("echo", "unasked"))) as servers:
        assert servers.trouble == ()
        assert len(servers.tools) == 2
