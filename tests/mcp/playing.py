"""MCP servers for tests: the one that misbehaves, and the one that tells the time, as a program and at an address."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hummingbird.core.protocols.tools import ToolContext
from hummingbird.mcp import McpLimits, McpServerSettings
from hummingbird.mcp.client import McpServers, McpTool

RAW = Path(__file__).with_name("raw_server.py")
QUICK = McpLimits(open_s=60.0, back_off_s=(0.0, 0.05, 0.1))
LEAVING = McpLimits(open_s=60.0, close_s=0.3, leaving_s=0.1, back_off_s=(0.0, 0.05, 0.1))
TIME_TOOLS = ("get_current_time", "convert_time")


def misbehaving(mode: str = "well", *args: str, name: str = "raw", **settings: Any) -> McpServerSettings:
    settings.setdefault("tools", ("*",))
    return McpServerSettings(name, command=sys.executable, args=("-I", "-S", str(RAW), mode, *args), **settings)


def clock(**settings: Any) -> McpServerSettings:
    settings.setdefault("tools", ("*",))
    return McpServerSettings("time", command=sys.executable, args=("-m", "mcp_server_time"), **settings)


def masked(text: str) -> str:
    return text.replace("hunter22", "[masked]")


@asynccontextmanager
async def opened(*settings: McpServerSettings, bounds: McpLimits = QUICK, **more: Any) -> AsyncIterator[McpServers]:
    servers = McpServers(settings, os.environ, mask=masked, bounds=bounds, **more)
    try:
        await servers.open()
        yield servers
    finally:
        await servers.close()


def named(servers: McpServers, tool: str) -> McpTool:
    return next(each for each in servers.tools if each.name == tool)


async def call(servers: McpServers, tool: str, /, **arguments: Any) -> Any:
    return await named(servers, tool)(arguments, ToolContext("session", "call"))


def alive(process: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False


async def gone(*processes: int, within_s: float) -> bool:
    try:
        await until(lambda: not any(alive(each) for each in processes), within_s)
    except TimeoutError:
        return False
    return True


async def until(so: Callable[[], bool], within_s: float = 30.0) -> None:
    """Raises TimeoutError."""
    async with asyncio.timeout(within_s):
        while not so():  # noqa: ASYNC110 - other processes set no events
            await asyncio.sleep(0.01)
