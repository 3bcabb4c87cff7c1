"""An agent that finds out why a pipeline failed, as a command, a service and a library.

The names below are the library; every other name is private and may change. Importing this package imports nothing
else: its names are loaded when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hummingbird.agent.tools.typed_function import tool
    from hummingbird.app.agent_config import AgentConfig
    from hummingbird.app.callbacks import Callbacks
    from hummingbird.app.library import Agent
    from hummingbird.app.run_result import RunResult, ToolCallRecord
    from hummingbird.core.errors import HummingbirdError, OperatorError, RunFailed, UsageError
    from hummingbird.core.events import ReasoningDelta, TextDelta
    from hummingbird.core.journal import EndReason, ToolFinished, ToolStarted
    from hummingbird.core.permissions import PermissionQuestion
    from hummingbird.core.protocols.tools import ToolContext
    from hummingbird.core.usage import TokenUsage
    from hummingbird.sandboxes.registry import SandboxOptions

__version__ = "0.1.0"
__all__ = [
    "Agent",
    "AgentConfig",
    "Callbacks",
    "EndReason",
    "HummingbirdError",
    "OperatorError",
    "PermissionQuestion",
    "ReasoningDelta",
    "RunFailed",
    "RunResult",
    "SandboxOptions",
    "TextDelta",
    "TokenUsage",
    "ToolCallRecord",
    "ToolContext",
    "ToolFinished",
    "ToolStarted",
    "UsageError",
    "__version__",
    "tool",
]

_PUBLIC_NAMES = {
    "Agent": "hummingbird.app.library",
    "AgentConfig": "hummingbird.app.agent_config",
    "Callbacks": "hummingbird.app.callbacks",
    "EndReason": "hummingbird.core.journal",
    "HummingbirdError": "hummingbird.core.errors",
    "OperatorError": "hummingbird.core.errors",
    "PermissionQuestion": "hummingbird.core.permissions",
    "ReasoningDelta": "hummingbird.core.events",
    "RunFailed": "hummingbird.core.errors",
    "RunResult": "hummingbird.app.run_result",
    "SandboxOptions": "hummingbird.sandboxes.registry",
    "TextDelta": "hummingbird.core.events",
    "TokenUsage": "hummingbird.core.usage",
    "ToolCallRecord": "hummingbird.app.run_result",
    "ToolContext": "hummingbird.core.protocols.tools",
    "ToolFinished": "hummingbird.core.journal",
    "ToolStarted": "hummingbird.core.journal",
    "UsageError": "hummingbird.core.errors",
    "tool": "hummingbird.agent.tools.typed_function",
}


if not TYPE_CHECKING:  # type checkers would take it for a promise that any name exists

    def __getattr__(name: str) -> object:
        if name in _PUBLIC_NAMES:
            return getattr(import_module(_PUBLIC_NAMES[name]), name)
        raise AttributeError(f"module 'hummingbird' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
