"""Third parties' tools and hooks by entry point."""

from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint

import pytest

from hummingbird.app.plugins import HOOKS_GROUP, TOOLS_GROUP, plugin_hooks, plugin_tools
from hummingbird.core.errors import ToolDefinitionError
from hummingbird.core.tool_spec import ToolSpec
from tests.standins.function_tool import FunctionTool

SPEC = ToolSpec("look", "Looks.", {"type": "object"})
ONE = FunctionTool(SPEC, lambda: "x")


class Guard:
    name = "guard"

    async def before_tool(self, spec: object, arguments: object) -> None: ...

    async def after_tool(self, spec: object, arguments: object, result: str) -> None: ...


def several() -> list[FunctionTool]:
    return [ONE, FunctionTool(ToolSpec("read", "Reads.", {"type": "object"}), lambda: "y")]


def broken() -> FunctionTool:
    raise RuntimeError("no licence")


def installed(group: str, *names: str) -> Callable[[str], Iterable[EntryPoint]]:
    points = [EntryPoint(name, f"tests.app.test_plugins:{name}", group) for name in names]
    return lambda wanted: [point for point in points if point.group == wanted]


def test_a_tool_may_be_named_itself_or_made_by_a_function() -> None:
    found = plugin_tools(installed(TOOLS_GROUP, "ONE", "several"))
    assert [tool.spec.name for tool in found] == ["look", "look", "read"]


def test_a_hook_class_is_made_an_object() -> None:
    (hook,) = plugin_hooks(installed(HOOKS_GROUP, "Guard"))
    assert hook.name == "guard"


@pytest.mark.parametrize("find", [plugin_tools, plugin_hooks])
@pytest.mark.parametrize(("name", "words"), [("broken", "no licence"), ("missing", "missing")])
def test_one_that_cannot_be_loaded_is_named(find: Callable[..., object], name: str, words: str) -> None:
    """A guard that is missing silently would be worse than none."""
    group = TOOLS_GROUP if find is plugin_tools else HOOKS_GROUP
    with pytest.raises(ToolDefinitionError, match=words):
        find(installed(group, name))


def test_what_is_installed_here_can_be_asked() -> None:
    assert isinstance(plugin_tools(), list)
    assert isinstance(plugin_hooks(), list)
