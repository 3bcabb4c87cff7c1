"""Define the frozen specification of a tool, and the tools of data sources, which are little more than that."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from hummingbird.core.limits import TOOL_TIMEOUT_S
from hummingbird.core.protocols.tools import ToolContext, ToolOutput


class ToolEffect(StrEnum):
    """What a tool can do to the outside world."""

    READ = "read"
    WRITE = "write"
    EXEC = "exec"
    SEND = "send"


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """What the model sees of a tool.

    It is frozen per session, because signatures and prompt caches depend on it.
    """

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """Everything Hummingbird knows about a tool.

    `mentions` maps another tool's name to a sentence that is added to the description only while that tool is enabled.
    `exclusive` None derives it from the effects: a tool that only reads may run beside others.

    `source` names where a read-only tool gets its material; `metadata` is what that source says of itself and is added
    to each result. `trusted`: the tool returns our own words; results of any other tool could have been written by
    outsiders, so the model reads them inside a fence. `foreign`: a third party wrote the description, without knowing
    our other tools.
    """

    name: str
    description: str
    schema: Mapping[str, Any]
    toolset: str = "default"
    effects: frozenset[ToolEffect] = frozenset({ToolEffect.READ})
    exclusive: bool | None = None
    interactive: bool = False
    timeout_s: float = TOOL_TIMEOUT_S
    notes: str = ""
    requires_env: tuple[str, ...] = ()
    mentions: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    trusted: bool = False
    foreign: bool = False

    @property
    def runs_alone(self) -> bool:
        """Tell whether the tool makes its batch sequential."""
        harmless = self.effects <= {ToolEffect.READ}
        return self.interactive or (not harmless if self.exclusive is None else self.exclusive)


ToolFunction: TypeAlias = Callable[..., Awaitable[ToolOutput]]
JsonSchema: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SourceTool:
    """A tool that calls `function(**arguments)`."""

    spec: ToolSpec
    function: ToolFunction

    def is_available(self) -> bool:
        return True

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        return await self.function(**arguments)


def arguments_schema(
    required: Mapping[str, JsonSchema], optional: Mapping[str, JsonSchema] | None = None
) -> dict[str, Any]:
    """Return the JSON schema of a tool's arguments, which allows no others."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }
