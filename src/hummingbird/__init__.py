"""Find out why a GitLab pipeline failed, and explain it with evidence.

Importing this package imports nothing else: its public names are loaded when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hummingbird.app.agent_config import AgentConfig
    from hummingbird.app.library import Agent

__version__ = "0.1.0"
__all__ = ["Agent", "AgentConfig", "__version__"]

_PUBLIC_NAMES = {"Agent": "hummingbird.app.library", "AgentConfig": "hummingbird.app.agent_config"}


if not TYPE_CHECKING:  # type checkers would take it for a promise that any name exists

    def __getattr__(name: str) -> object:
        if name in _PUBLIC_NAMES:
            return getattr(import_module(_PUBLIC_NAMES[name]), name)
        raise AttributeError(f"module 'hummingbird' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
