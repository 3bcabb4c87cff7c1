"""Define the frozen specification of a tool; the function behind it is elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from hummingbird.core.limits import TOOL_TIMEOUT_S


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
