"""Context engines by name (L20): ours, and third parties' by entry point."""

from collections.abc import Callable, Mapping
from typing import Any

from hummingbird.agent.compaction import Compacting, WrappingUp
from hummingbird.assembly.plugins import Find, installed, loaded
from hummingbird.domain.errors import UsageFault
from hummingbird.ports.context import ContextEngine

ENGINES = "hummingbird.context_engines"
_OURS: Mapping[str, Callable[..., ContextEngine]] = {"compact": Compacting, "wrap_up": WrappingUp}


def engine_named(name: str, find: Find = installed, **settings: Any) -> ContextEngine:
    """`settings` are for ours. Raises UsageFault for a name that is none, BrokenTool for one that cannot be loaded."""
    if name in _OURS:
        return _OURS[name](**settings)
    found = {point.name: point for point in find(ENGINES)}
    if name not in found:
        raise UsageFault(f"There is no context engine {name!r}; there are: {', '.join([*_OURS, *found])}.")
    engine: ContextEngine = loaded(found[name], "wants_room")
    return engine
