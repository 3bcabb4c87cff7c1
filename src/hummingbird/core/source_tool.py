"""Define the tools of data sources: a specification, and the coroutine behind it.

Arguments arrive validated; the caller handles whatever a tool raises.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from hummingbird.core.protocols.tools import ToolContext, ToolOutput
from hummingbird.core.tool_spec import ToolSpec

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
