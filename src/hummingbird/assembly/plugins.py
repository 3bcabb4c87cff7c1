"""Third parties' tools and hooks, found by entry point (T1, L18).

A tool's entry point names a Tool, or a function without arguments that returns one or several; a hook's names a
Hook or a function that makes one. One that cannot be loaded is a fault the operator hears about, not a silence.
"""

from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from hummingbird.domain.errors import BrokenTool
from hummingbird.domain.text import shortened
from hummingbird.ports.tool import Hook, Tool

TOOLS = "hummingbird.tools"
HOOKS = "hummingbird.hooks"

Find = Callable[[str], Iterable[EntryPoint]]


def installed(group: str) -> Iterable[EntryPoint]:
    return entry_points(group=group)


def plugin_tools(find: Find = installed) -> list[Tool]:
    """Raises BrokenTool, naming the entry point."""
    return [tool for point in find(TOOLS) for tool in _several(loaded(point, "spec"))]


def plugin_hooks(find: Find = installed) -> list[Hook]:
    """Raises BrokenTool, naming the entry point: a guard that cannot be loaded must not be missing silently."""
    return [hook for point in find(HOOKS) for hook in _several(loaded(point, "before_tool"))]


def loaded(point: EntryPoint, mark: str) -> Any:
    """What it names, or makes: something that has `mark`. Raises BrokenTool."""
    try:
        found = point.load()
        return found if hasattr(found, mark) and not isinstance(found, type) else found()
    except Exception as error:
        reason = f"{type(error).__name__}: {shortened(str(error), 200)}"
        raise BrokenTool(f"The plug-in {point.name!r} ({point.value}) cannot be loaded: {reason}") from error


def _several(found: Any) -> list[Any]:
    return list(found) if isinstance(found, list | tuple) else [found]
