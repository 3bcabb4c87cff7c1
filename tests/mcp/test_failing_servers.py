"""A server that cannot be started, dies, hangs or talks nonsense costs itself alone."""

import asyncio
import sys
import time
from pathlib import Path

import pytest

from hummingbird.core.errors import SourceRefused, SourceUnavailable
from hummingbird.mcp import McpLimits, McpServerSettings
from tests.mcp.playing import LEAVING, QUICK, call, misbehaving, opened, until

SHORT = McpLimits(open_s=1.0, back_off_s=(0.0, 0.05))


async def test_whatever_goes_wrong_with_others_one_server_works_and_each_has_its_sentence() -> None:
    bad = [
        misbehaving("die", name="dying"),
        misbehaving("garbage", name="babbling"),
        misbehaving("refuse", name="refusing"),
        McpServerSettings("missing", command="no-such-program-here", tools=("*",)),
        McpServerSettings("forbidden", command="/etc/passwd", tools=("*",)),
        McpServerSettings("zero", command=sys.executable, args=("a\0b",), tools=("*",)),
    ]
    async with opened(*bad, misbehaving()) as servers:
        assert await call(servers, "echo") == "{}"
        assert {tool.server for tool in servers.tools} == {servers.tools[0].server}
        told = {text.split("'")[1]: text for text in servers.trouble}
        assert len(told) == len(servers.trouble) == len(bad)
        assert told["dying"] == (
            "MCP server 'dying' ended with status 3: run its command by hand to see why, then fix `command`, `args` "
            "or `env`. Its last output: KeyError: token=[masked] is not set"
        )
        assert "does not speak MCP on its standard output" in told["babbling"]
        assert "cannot be used as an MCP server (no licence for token=[masked])" in told["refusing"]
        assert "there is no program 'no-such-program-here' here that may be run. Install it" in told["missing"]
        assert "there is no program '/etc/passwd' here that may be run" in told["forbidden"]
        assert "fix `command`, `args` or `env` (embedded null byte)" in told["zero"]


async def test_servers_that_never_answer_are_given_up() -> None:
    async with opened(
        *(misbehaving("hang", name=f"hanging{n}") for n in range(4)), misbehaving("silent"), bounds=SHORT
    ) as servers:
        assert servers.tools == ()
        assert len(servers.trouble) == 5
        assert {text.partition("' ")[2].partition(":")[0] for text in servers.trouble} == {"did not answer within 1 s"}


async def test_lines_on_stdout_that_are_no_messages_are_skipped_and_told_once() -> None:
    async with opened(misbehaving("banner")) as servers:
        assert await call(servers, "echo") == "{}"
        assert await call(servers, "echo") == "{}"
        assert servers.trouble == (
            "MCP server 'raw' writes lines on its standard output that are not messages, which were skipped; the "
            "first: Welcome! token=[masked]",
        )


@pytest.mark.thorough
async def test_a_server_that_dies_in_a_call_fails_it_once_and_is_started_for_the_next(tmp_path: Path) -> None:
    mark = tmp_path / "effects"
    async with opened(misbehaving()) as servers:
        with pytest.raises(SourceUnavailable, match=r"broke off during die; it is unknown whether it took effect"):
            await call(servers, "die", file=str(mark))
        assert servers.trouble == (
            "MCP server 'raw' ended with status 3: run its command by hand to see why, then fix `command`, `args` or "
            "`env`. Its last output: [31mfatal:[0m token=[masked] is gone",
        )
        assert await call(servers, "echo", again=True) == '{"again": true}'
        assert mark.read_text() == "x"  # what was in flight was not repeated


@pytest.mark.thorough
async def test_restarts_are_bounded(tmp_path: Path) -> None:
    mark = tmp_path / "effects"
    async with opened(misbehaving()) as servers:
        for _ in range(1 + len(QUICK.back_off_s)):
            with pytest.raises(SourceUnavailable, match="broke off"):
                await call(servers, "die", file=str(mark))
        with pytest.raises(SourceUnavailable, match=r"failed 4 times and is left alone\. Do without its tools."):
            await call(servers, "die", file=str(mark))
        assert mark.read_text() == "xxxx"


@pytest.mark.thorough
async def test_restarts_are_counted_anew_after_a_steady_time(tmp_path: Path) -> None:
    steady = McpLimits(open_s=60.0, back_off_s=(0.0,), steady_s=3.0)
    async with opened(misbehaving(), bounds=steady) as servers:
        for _ in range(2):
            with pytest.raises(SourceUnavailable, match="broke off"):
                await call(servers, "die", file=str(tmp_path / "effects"))
        with pytest.raises(SourceUnavailable, match="failed 2 times"):
            await call(servers, "echo")
        await asyncio.sleep(3.0)
        assert await call(servers, "echo") == "{}"


@pytest.mark.thorough
async def test_an_interrupt_returns_at_once_from_a_server_that_does_not_come_back(tmp_path: Path) -> None:
    mark = tmp_path / "began"
    async with opened(misbehaving("once", str(mark)), bounds=LEAVING) as servers:
        with pytest.raises(SourceUnavailable, match="broke off"):
            await call(servers, "die", file=str(tmp_path / "effects"))
        work = asyncio.ensure_future(call(servers, "echo"))
        await until(lambda: mark.read_text() == "again")
        began = time.monotonic()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        assert time.monotonic() - began < 30.0
    assert time.monotonic() - began < 30.0
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.thorough
async def test_closing_ends_a_server_that_is_just_being_started_again(tmp_path: Path) -> None:
    mark = tmp_path / "began"
    async with opened(misbehaving("once", str(mark)), bounds=LEAVING) as servers:
        with pytest.raises(SourceUnavailable, match="broke off"):
            await call(servers, "die", file=str(tmp_path / "effects"))
        work = asyncio.ensure_future(call(servers, "echo"))
        await until(lambda: mark.read_text() == "again")
        began = time.monotonic()
    assert time.monotonic() - began < 30.0
    with pytest.raises(SourceUnavailable, match="could not be started again"):
        await work
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.thorough
async def test_a_tool_that_is_another_one_after_a_restart_is_not_called(tmp_path: Path) -> None:
    mark = tmp_path / "effects"
    async with opened(misbehaving("replaced", str(tmp_path / "began"))) as servers:
        with pytest.raises(SourceUnavailable):
            await call(servers, "die", file=str(mark))
        with pytest.raises(SourceRefused, match="does not offer effect any more"):
            await call(servers, "effect", file=str(mark))
        assert mark.read_text() == "x"
        assert "offers other tools than when this session began" in servers.trouble[-1]
