"""What the tests of the agent's own tools share: a context that listens, and a tool as the loop calls it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hummingbird.agent.tools.registry import Toolbox
from hummingbird.agent.tools.results import InlineShape
from hummingbird.core.protocols.tools import Tool, ToolContext


@dataclass
class Listener:
    """`shown`: progress. `said`: messages put into the conversation."""

    session_id: str = "session-1"
    shown: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    async def call(self, tool: Tool, arguments: Mapping[str, Any]) -> str:
        """What the model would read; the arguments are checked against the schema first."""
        valid = Toolbox([tool]).validate(tool.spec, dict(arguments))
        context = ToolContext(self.session_id, "call-1", progress=self.shown.append, say=self.said.append)
        output = await tool(valid, context)
        assert isinstance(output, str)
        return await InlineShape()(tool.spec, output)
