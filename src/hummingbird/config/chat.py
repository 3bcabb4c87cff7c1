"""The `chat` section (G9): conversations in a terminal, an editor or a browser."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from hummingbird.config.defaults import NOTHING, default
from hummingbird.config.kinds import Address, Engine, Line, Names, Part, Texts, Variable, Variables, fault
from hummingbird.domain.errors import UsageFault
from hummingbird.domain.permissions import Action, Rule
from hummingbird.domain.tools import Effect

TASKS = ("summary",)  # that have models of their own
EffectName = Literal["read", "write", "exec", "send"]


def _task(name: str) -> str:
    if name not in TASKS:
        raise fault(f"expected a side task that there is: {', '.join(TASKS)}")
    return name


Task = Annotated[str, AfterValidator(_task)]


class Delegation(Part):
    max_iterations: int = default("chat.delegation.max_iterations", ge=1, le=10_000)
    max_concurrent: int = default("chat.delegation.max_concurrent", ge=1, le=16)


class Compression(Part):
    threshold: float = default("chat.compression.threshold", gt=0, lt=1)
    protect_last_n: int = default("chat.compression.protect_last_n", ge=0)


class SideTask(Part):
    model: Line = default("chat.auxiliary.*.model")
    fallback_providers: Texts = default("chat.auxiliary.*.fallback_providers")


class Memory(Part):
    memory_char_limit: int = default("chat.memory.memory_char_limit", ge=0)
    user_char_limit: int = default("chat.memory.user_char_limit", ge=0)


class Permission(Part):
    """One rule (T9), as it is written."""

    action: Literal["allow", "ask", "deny"] = default("chat.permissions[].action")
    tool: Line = default("chat.permissions[].tool")
    argument: Line = default("chat.permissions[].argument")
    pattern: str = default("chat.permissions[].pattern")
    effects: Annotated[tuple[EffectName, ...], Field(strict=False)] = default("chat.permissions[].effects")
    reason: Line = default("chat.permissions[].reason")
    name: Line = default("chat.permissions[].name")

    @model_validator(mode="after")
    def _means_something(self) -> "Permission":
        try:
            self.rule()
        except UsageFault as error:
            raise fault("expected a rule that means something: check `tool`, `argument` and `pattern`") from error
        return self

    def rule(self) -> Rule:
        effects = frozenset(map(Effect, self.effects))
        action = Action(self.action)
        return Rule(action, self.tool, self.argument, self.pattern, effects, self.reason, self.name)


class McpServer(Part):
    """A program or an address. Its secrets are variables; only the tools that are listed are offered."""

    command: Line = default("chat.mcp_servers.*.command")
    args: Texts = default("chat.mcp_servers.*.args")
    env: Variables = default("chat.mcp_servers.*.env")
    url: Address = default("chat.mcp_servers.*.url")
    headers_env: Names[Line, Variable] = default("chat.mcp_servers.*.headers_env")
    tools: Texts = default("chat.mcp_servers.*.tools")
    read_tools: Texts = default("chat.mcp_servers.*.read_tools")

    @model_validator(mode="after")
    def _one_way_in(self) -> "McpServer":
        if bool(self.command) == bool(self.url):
            raise fault("expected either `command` or `url`")
        return self


class ChatSettings(Part):
    model: Line = default("chat.model")
    max_turns: int = default("chat.max_turns", ge=1, le=10_000)
    context: Engine = default("chat.context")
    delegation: Delegation = Field(default_factory=Delegation)
    compression: Compression = Field(default_factory=Compression)
    fallback_providers: Texts = default("chat.fallback_providers")
    auxiliary: Names[Task, SideTask] = Field(
        default_factory=lambda: NOTHING, description="Name of a side task (summary) → its model."
    )
    memory: Memory = Field(default_factory=Memory)
    toolsets: Texts | None = default("chat.toolsets")
    permissions: Annotated[tuple[Permission, ...], Field(strict=False)] = Field(
        default=(), description="Rules for calls of tools."
    )
    mcp_servers: Names[Line, McpServer] = Field(
        default_factory=lambda: NOTHING, description="Name → a server of tools."
    )
