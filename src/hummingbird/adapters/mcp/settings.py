"""One server as configured: a program to start or an address, and which of its tools are wanted."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hummingbird.domain.limits import TOOL_TIMEOUT_S

EVERY_TOOL = "*"


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """`command` or `url`, not both. `env` and `headers` hold values, not names of variables, and are shown nowhere.
    `tools`: exact names, or `*` for all. `read_tools`: those of them that change nothing, by the operator's word;
    what a server says of its own tools counts for nothing."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    tools: tuple[str, ...] = ()
    read_tools: tuple[str, ...] = ()
    timeout_s: float = TOOL_TIMEOUT_S

    def wants(self, tool: str) -> bool:
        return tool in self.tools or EVERY_TOOL in self.tools
