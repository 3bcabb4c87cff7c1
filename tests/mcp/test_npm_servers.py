"""The reference servers of the Model Context Protocol, which scripts/real-parts gets from npm for `make thorough`."""

from pathlib import Path

import pytest

from hummingbird.mcp import McpServerSettings
from hummingbird.mcp.client import McpServers
from hummingbird.mcp.connection import McpToolError
from tests.mcp.playing import call, opened
from tests.real_parts import npm_program

pytestmark = pytest.mark.thorough


def server(name: str, *args: str, env: dict[str, str] | None = None) -> McpServerSettings:
    command = npm_program(f"mcp-server-{name}")
    return McpServerSettings(name, command=command, args=args, env=env or {}, tools=("*",), read_tools=("*",))


async def listed_again(servers: McpServers) -> None:
    """Until the server of everything, which says at each start that its tools changed, was surely asked again."""
    for _ in range(3):
        await call(servers, "trigger-long-running-operation", duration=0.2, steps=2)


async def test_everything_is_offered_without_a_warning() -> None:
    async with opened(server("everything")) as servers:
        assert len(servers.tools) == 13
        assert await call(servers, "echo", message="hello") == "Echo: hello"
        assert "3" in await call(servers, "get-sum", a=1, b=2)
        assert (await call(servers, "get-structured-content", location="New York")).count("temperature") == 1
        assert "image" in await call(servers, "get-tiny-image")
        await listed_again(servers)
        assert servers.trouble == ()


async def test_files_are_read_once_and_only_where_it_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "nest").mkdir()
    for name in ("egg", "nest/chick"):
        (tmp_path / name).write_text(f"this is the {name}\n")
    async with opened(server("filesystem", str(tmp_path))) as servers:
        assert await call(servers, "read_text_file", path=str(tmp_path / "egg")) == "this is the egg\n"
        assert (await call(servers, "list_directory", path=str(tmp_path))).count("egg") == 1
        assert (await call(servers, "directory_tree", path=str(tmp_path))).count("chick") == 1
        several = [str(tmp_path / "egg"), str(tmp_path / "nest/chick")]
        assert (await call(servers, "read_multiple_files", paths=several)).count("this is the egg") == 1
        with pytest.raises(McpToolError, match="outside allowed directories"):
            await call(servers, "read_text_file", path="/etc/hostname")
        assert servers.trouble == ()


async def test_what_is_remembered_is_told_once_and_kept(tmp_path: Path) -> None:
    settings = server("memory", env={"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")})
    bird = {"name": "bird", "entityType": "animal", "observations": ["hovers"]}
    async with opened(settings) as servers:
        assert (await call(servers, "create_entities", entities=[bird])).count("hovers") == 1
    async with opened(settings) as servers:
        assert (await call(servers, "read_graph")).count("hovers") == 1
        assert (await call(servers, "search_nodes", query="bird")).count("hovers") == 1
        assert servers.trouble == ()
