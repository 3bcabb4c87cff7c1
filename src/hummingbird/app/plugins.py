"""Loads tools and hooks of third parties by entry point.

The entry point of a tool names a Tool, or a function without arguments that returns one or several; that of a hook
names a Hook or a function that makes one. One that cannot be loaded is an error, not a silent gap.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from hummingbird.agent.compaction import CompactEngine, WrapUpEngine
from hummingbird.core.errors import ToolDefinitionError, UsageError
from hummingbird.core.protocols.context_engine import ContextEngine
from hummingbird.core.protocols.tools import Tool, ToolHook
from hummingbird.core.text import shorten_line

TOOLS_GROUP = "hummingbird.tools"
HOOKS_GROUP = "hummingbird.hooks"

EntryPointFinder = Callable[[str], Iterable[EntryPoint]]


@cache
def find_entry_points(group: str) -> Iterable[EntryPoint]:
    """Return the entry points of one group; finding them reads the metadata of all packages, so it is done once."""
    return tuple(entry_points(group=group))


def plugin_tools(find: EntryPointFinder = find_entry_points) -> list[Tool]:
    """Load the tools.

    Raises ToolDefinitionError, which names the entry point.
    """
    return [tool for point in find(TOOLS_GROUP) for tool in _as_list(load_plugin(point, "spec"))]


def plugin_hooks(find: EntryPointFinder = find_entry_points) -> list[ToolHook]:
    """Load the hooks. A hook may guard something, so one that cannot be loaded is an error.

    Raises ToolDefinitionError, which names the entry point.
    """
    return [hook for point in find(HOOKS_GROUP) for hook in _as_list(load_plugin(point, "before_tool"))]


def load_plugin(point: EntryPoint, mark: str) -> Any:
    """Return what the entry point names or makes, which must have the attribute `mark`.

    Raises ToolDefinitionError.
    """
    try:
        found = point.load()
        return found if hasattr(found, mark) and not isinstance(found, type) else found()
    except Exception as error:  # border: a plug-in is somebody's code
        reason = f"{type(error).__name__}: {shorten_line(str(error), 200)}"
        raise ToolDefinitionError(f"The plug-in {point.name!r} ({point.value}) cannot be loaded: {reason}") from error


def _as_list(found: Any) -> list[Any]:
    return list(found) if isinstance(found, list | tuple) else [found]


ENGINES_GROUP = "hummingbird.context_engines"
_BUILT_IN_ENGINES: Mapping[str, Callable[..., ContextEngine]] = {"compact": CompactEngine, "wrap_up": WrapUpEngine}


def load_context_engine(name: str, find: EntryPointFinder = find_entry_points, **settings: Any) -> ContextEngine:
    """Load a context engine by name; `settings` are for the built-in ones.

    Raises UsageError for an unknown name, ToolDefinitionError for one that cannot be loaded.
    """
    if name in _BUILT_IN_ENGINES:
        return _BUILT_IN_ENGINES[name](**settings)
    found = {point.name: point for point in find(ENGINES_GROUP)}
    if name not in found:
        raise UsageError(f"There is no context engine {name!r}; there are: {', '.join([*_BUILT_IN_ENGINES, *found])}.")
    engine: ContextEngine = load_plugin(found[name], "wants_room")
    return engine
