"""Third parties' tools and hooks, found by entry point.

A tool's entry point names a Tool, or a function without arguments that returns one or several; a hook's names a
Hook or a function that makes one. One that cannot be loaded is a fault the operator hears about, not a silence.
"""

from collections.abc import Callable, Iterable, Mapping
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


def find_entry_points(group: str) -> Iterable[EntryPoint]:
    return entry_points(group=group)


def plugin_tools(find: EntryPointFinder = find_entry_points) -> list[Tool]:
    """Raises BrokenTool, naming the entry point."""
    return [tool for point in find(TOOLS_GROUP) for tool in _as_list(load_plugin(point, "spec"))]


def plugin_hooks(find: EntryPointFinder = find_entry_points) -> list[ToolHook]:
    """Raises BrokenTool, naming the entry point: a guard that cannot be loaded must not be missing silently."""
    return [hook for point in find(HOOKS_GROUP) for hook in _as_list(load_plugin(point, "before_tool"))]


def load_plugin(point: EntryPoint, mark: str) -> Any:
    """What it names, or makes: something that has `mark`. Raises BrokenTool."""
    try:
        found = point.load()
        return found if hasattr(found, mark) and not isinstance(found, type) else found()
    except Exception as error:
        reason = f"{type(error).__name__}: {shorten_line(str(error), 200)}"
        raise ToolDefinitionError(f"The plug-in {point.name!r} ({point.value}) cannot be loaded: {reason}") from error


def _as_list(found: Any) -> list[Any]:
    return list(found) if isinstance(found, list | tuple) else [found]


# Context engines by name: ours, and third parties' by entry point.


ENGINES_GROUP = "hummingbird.context_engines"
_BUILT_IN_ENGINES: Mapping[str, Callable[..., ContextEngine]] = {"compact": CompactEngine, "wrap_up": WrapUpEngine}


def load_context_engine(name: str, find: EntryPointFinder = find_entry_points, **settings: Any) -> ContextEngine:
    """`settings` are for ours. Raises UsageFault for a name that is none, BrokenTool for one that cannot be loaded."""
    if name in _BUILT_IN_ENGINES:
        return _BUILT_IN_ENGINES[name](**settings)
    found = {point.name: point for point in find(ENGINES_GROUP)}
    if name not in found:
        raise UsageError(f"There is no context engine {name!r}; there are: {', '.join([*_BUILT_IN_ENGINES, *found])}.")
    engine: ContextEngine = load_plugin(found[name], "wants_room")
    return engine
