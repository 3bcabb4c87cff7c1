"""A source's tool: a specification and the coroutine behind it, and the schemas that all of them use.

Arguments come validated; what a tool raises is the caller's business.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from hummingbird.domain.tools import ToolSpec
from hummingbird.ports.tool import Output, ToolContext

Work: TypeAlias = Callable[..., Awaitable[Output]]
JsonSchema: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SourceTool:
    """Calls `work(**arguments)`."""

    spec: ToolSpec
    work: Work

    def available(self) -> bool:
        return True

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> Output:
        return await self.work(**arguments)


def takes(required: Mapping[str, JsonSchema], optional: Mapping[str, JsonSchema] | None = None) -> dict[str, Any]:
    """The schema of a tool's arguments; nothing else may be given."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }
