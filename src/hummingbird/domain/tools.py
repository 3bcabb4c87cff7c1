"""What a tool is (T1): a frozen specification. The function behind it lives elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from hummingbird.domain.limits import TOOL_TIMEOUT_S


class Effect(StrEnum):
    READ = "read"
    WRITE = "write"
    EXEC = "exec"
    SEND = "send"


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """What the model sees of a tool. Frozen per session: signatures and caches hang on it (L5)."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """`mentions` maps another tool's name to a sentence that joins the description only while that tool is enabled
    (T2). `exclusive` None leaves it to the effects: a tool that only reads may run beside others (L17).

    `source` names where a read-only tool gets its material; `metadata` is what that source says of itself and joins
    each result (T6). `trusted`: what the tool returns are our own words; any other tool's results could have been
    written by outsiders, and the model reads them inside a fence (T8). `foreign`: its description is somebody else's,
    who cannot know our other tools.
    """

    name: str
    description: str
    schema: Mapping[str, Any]
    toolset: str = "default"
    effects: frozenset[Effect] = frozenset({Effect.READ})
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
    def alone(self) -> bool:
        """Whether it makes its batch sequential."""
        harmless = self.effects <= {Effect.READ}
        return self.interactive or (not harmless if self.exclusive is None else self.exclusive)
