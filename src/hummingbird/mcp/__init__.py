"""Tools of MCP servers, offered as tools of ours.

Only tools that the configuration names are offered. A program that is started for a server gets PATH, HOME and LANG of
our environment and nothing else. We do not answer requests that a server makes to us.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hummingbird.core.limits import TOOL_TIMEOUT_S

MAX_TOOLS = 64  # that are offered of one server
MAX_PAGES = 32  # that are read of a server's list of tools
DESCRIPTION_CHARS = 1_024
SCHEMA_BYTES = 8 * 1024
MAX_SENTENCES = 24  # about trouble with one server that are kept
QUOTED_CHARS = 200  # of a server's text in a sentence of ours
STDERR_BYTES = 8 * 1024  # kept of the end of a server's standard error
MAX_UNREADABLE_LINES = 1_000  # on stdout before we decide that the program is not an MCP server
PROGRESS_EVERY_S = 0.1
CANCEL_NOTICE_S = 0.05  # how long an interrupt waits until the server is told


@dataclass(frozen=True, slots=True)
class McpLimits:
    """Time and size limits of one server.

    Attributes:
        open_s: Time to connect and list the tools.
        leaving_s: Time for a server to end by itself after its input has ended.
        close_s: Time until everything of it must be gone.
        back_off_s: Delays before the first, second … restart after a failure; there are no more restarts than delays.
        steady_s: After this time without a failure, restarts are counted from the beginning.
    """

    open_s: float = 10.0
    leaving_s: float = 0.3
    close_s: float = 0.9
    message_bytes: int = 16 * 1024 * 1024
    result_bytes: int = 4 * 1024 * 1024
    back_off_s: tuple[float, ...] = (0.0, 1.0, 2.0, 4.0)
    steady_s: float = 60.0


DEFAULT_LIMITS = McpLimits()

EVERY_TOOL = "*"


@dataclass(frozen=True, slots=True)
class McpServerSettings:
    """One server as configured: a program to start or an address, and which of its tools are wanted.

    Attributes:
        command: The program to start; exclusive with `url`.
        env: Variables and their values; shown nowhere.
        headers: HTTP headers and their values; shown nowhere.
        tools: Exact names of wanted tools, or `*` for all.
        read_tools: Those that change nothing, according to the operator, or `*` for all. What a server says about that
            is ignored.
    """

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

    def only_reads(self, tool: str) -> bool:
        """Return whether the operator says that the tool changes nothing."""
        return tool in self.read_tools or EVERY_TOOL in self.read_tools
