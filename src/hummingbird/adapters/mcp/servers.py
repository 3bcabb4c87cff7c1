"""All MCP servers of a session (C5): opened together, each with its own failures, closed together.

servers = McpServers(settings, os.environ, mask=secrets.mask)
await servers.open()
try:
    toolbox with servers.tools; servers.trouble told to the person
finally:
    await servers.close()
"""

import asyncio
import importlib
from collections.abc import Callable, Iterable, Mapping

from hummingbird.adapters.mcp.endpoint import Endpoint
from hummingbird.adapters.mcp.limits import BOUNDS, Bounds
from hummingbird.adapters.mcp.link import Link
from hummingbird.adapters.mcp.program import Program
from hummingbird.adapters.mcp.server import ServedTool, Server
from hummingbird.adapters.mcp.settings import ServerSettings
from hummingbird.adapters.mcp.words import Trouble


class McpServers:
    """`environment` is where PATH, HOME and LANG of the started programs come from. `mask` hides what is secret in
    sentences. `tools` do not change once they are open; `trouble` grows when a server fails later."""

    def __init__(
        self,
        settings: Iterable[ServerSettings],
        environment: Mapping[str, str],
        *,
        mask: Callable[[str], str] = str,
        ca_bundle: str = "",
        bounds: Bounds = BOUNDS,
    ) -> None:
        self._settings = tuple(settings)
        self._environment = environment
        self._mask = mask
        self._ca_bundle = ca_bundle
        self._bounds = bounds
        self._servers: list[Server] = []
        self._faults: list[str] = []
        self.tools: tuple[ServedTool, ...] = ()

    @property
    def expected(self) -> bool:
        """Whether there are servers at all."""
        return bool(self._settings)

    @property
    def trouble(self) -> tuple[str, ...]:
        return tuple(self._faults) + tuple(each for server in self._servers for each in server.trouble)

    async def open(self) -> None:
        """Takes as long as the slowest, within its time. Raises nothing that a server does."""
        if not self._settings:
            return
        await asyncio.to_thread(
            importlib.import_module, "mcp"
        )  # most of a second, which the terminal need not wait for
        self._servers = [self._made(each) for each in self._settings if self._usable(each)]
        await asyncio.gather(*(server.open() for server in self._servers))
        taken: set[str] = set()
        self.tools = tuple(tool for server in self._servers for tool in server.tools(taken))

    async def close(self) -> None:
        """All of them are gone afterwards, with whatever they started."""
        await asyncio.gather(*(server.close() for server in self._servers))

    def _usable(self, settings: ServerSettings) -> bool:
        if bool(settings.command) == bool(settings.url):
            self._faults.append(f"MCP server {settings.name!r} needs either `command` or `url`: set one of them.")
        elif not settings.tools:
            self._faults.append(
                f"MCP server {settings.name!r} was not started: its `tools` name none. Name those you want, or '*'."
            )
        else:
            return True
        return False

    def _made(self, settings: ServerSettings) -> Server:
        trouble = Trouble(self._mask)

        def link() -> Link:
            if settings.command:
                return Program(settings, self._environment, self._bounds, trouble)
            return Endpoint(settings, self._ca_bundle, self._bounds)

        return Server(settings, link, self._bounds, trouble)
