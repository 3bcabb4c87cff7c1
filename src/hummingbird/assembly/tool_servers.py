"""MCP servers as a configuration declares them, with the values of the variables that it names for each."""

from collections.abc import Mapping

from hummingbird.adapters.mcp.settings import ServerSettings
from hummingbird.config.configuration import Configuration
from hummingbird.domain.errors import MissingSetting


def server_settings(configuration: Configuration, given: Mapping[str, str], name: str) -> ServerSettings:
    """Raises MissingSetting for a variable that is not set."""
    found = configuration.chat.mcp_servers[name]
    wanted = [*found.env, *found.headers_env.values()]
    if missing := [variable for variable in wanted if not given.get(variable, "").strip()]:
        raise MissingSetting(f"Set {missing[0]}: chat.mcp_servers.{name} is given it.")
    return ServerSettings(
        name=name,
        command=found.command,
        args=found.args,
        env={variable: given[variable] for variable in found.env},
        url=found.url,
        headers={header: given[variable].strip() for header, variable in found.headers_env.items()},
        tools=found.tools,
        read_tools=found.read_tools,
    )
