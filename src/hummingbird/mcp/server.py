"""Offers our own tools to other agents over MCP: on standard input and output, or over streamable HTTP.

The tools are plain functions; their docstrings tell the model what they do. All of them only read.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeAlias

from hummingbird.core.errors import HummingbirdError

if TYPE_CHECKING:
    from mcp.server import MCPServer

ServerTool: TypeAlias = Callable[..., Awaitable[str]]
ENDPOINT = "/mcp"


def create_mcp_server(tools: Sequence[ServerTool], instructions: str, version: str) -> "MCPServer[Any]":
    """Create a server with these tools."""
    from mcp.server import MCPServer
    from mcp.types import ToolAnnotations

    server: MCPServer[Any] = MCPServer(
        "hummingbird", title="Hummingbird", instructions=instructions, version=version, log_level="WARNING"
    )
    read_only = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True)
    for tool in tools:
        server.add_tool(_with_sentences(tool), annotations=read_only, structured_output=False)
    return server


def create_mcp_application(server: "MCPServer[Any]") -> Any:
    """Return the server as an ASGI application that keeps no state between requests; it refuses nobody."""
    from mcp.server.transport_security import TransportSecuritySettings

    open_to_all = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    return server.streamable_http_app(
        streamable_http_path=ENDPOINT, json_response=True, stateless_http=True, transport_security=open_to_all
    )


def _with_sentences(tool: ServerTool) -> ServerTool:
    """Answer with the sentence of an error of ours, marked as an error, instead of a traceback."""

    @wraps(tool)
    async def call(*args: Any, **arguments: Any) -> str:
        from mcp.server.mcpserver.exceptions import ToolError

        try:
            return await tool(*args, **arguments)
        except HummingbirdError as error:
            raise ToolError(str(error)) from None

    return call
