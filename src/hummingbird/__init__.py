"""Hummingbird: finds why a GitLab pipeline failed and says so with evidence.

Importing this package does nothing; its few public names are loaded when they are first used.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"
__all__ = ["Agent", "__version__"]

_HOME = {"Agent": "hummingbird.assembly.library"}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'hummingbird' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
