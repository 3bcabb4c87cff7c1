"""`todo` (C7): what is to be done in this session, as the model keeps it. Has no list of its own: what counts is what
the journal says of its calls, so a call that a hook took back, or that ran for two, never makes them differ.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hummingbird.domain.journal import Entry
from hummingbird.domain.mind_limits import TODO_CHARS, TODOS
from hummingbird.domain.todos import ACTIONS, NAME, Todos, TodoState
from hummingbird.domain.tools import ToolSpec
from hummingbird.ports.tool import Output, ToolContext

SPEC = ToolSpec(
    name=NAME,
    description=(
        "The list of what is to be done in this session; the user sees it. Use it for work of three steps or more: "
        "create the steps at once, set one in_progress, complete it when it is done and checked. Returns the list."
    ),
    schema={
        "type": "object",
        "properties": {
            "action": {"enum": list(ACTIONS)},
            "texts": {
                "type": "array",
                "items": {"type": "string", "minLength": 1, "maxLength": TODO_CHARS},
                "maxItems": TODOS,
                "description": "create: one for each item",
            },
            "numbers": {
                "type": "array",
                "items": {"type": "integer"},
                "description": "update, complete, cancel: which items",
            },
            "text": {"type": "string", "maxLength": TODO_CHARS, "description": "update: the new text"},
            "state": {"enum": list(TodoState), "description": "update"},
        },
        "required": ["action"],
        "additionalProperties": False,
    },
    toolset="todo",
    exclusive=True,  # numbers are given in the order of the calls, and a replay must give the same ones
    trusted=True,
)


class TodoTool:
    """`entries`: those of the session's journal so far."""

    def __init__(self, entries: Callable[[], Sequence[Entry]]) -> None:
        self._entries = entries
        self._todos = Todos()
        self._read = 0

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    def available(self) -> bool:
        return True

    def of(self, entries: Callable[[], Sequence[Entry]]) -> "TodoTool":
        """The same for another session: a sub-agent's list is its own."""
        return TodoTool(entries)

    @property
    def todos(self) -> Todos:
        """As the journal has them now; only what is new of it is read."""
        entries = self._entries()
        if len(entries) < self._read:
            self._todos, self._read = Todos(), 0
        for entry in entries[self._read :]:
            self._todos.follow(entry)
        self._read = len(entries)
        return self._todos

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> Output:
        tried = self.todos.copy()
        shown = tried.apply(arguments)
        context.progress(tried.count)
        return shown
