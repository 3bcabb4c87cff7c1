"""The todo list of a session, as a projection of its journal: the successful calls of the tool `todo`, in order.

So it survives compactions, resumes and moves to other machines. If a hook rewrote the arguments of a call, the
rewritten ones count. A turn that was taken back also takes back its changes to the list.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from hummingbird.core.errors import ArgumentsInvalid
from hummingbird.core.journal import (
    JournalEntry,
    MessageSource,
    ModelAnswered,
    ToolDecided,
    ToolFinished,
    ToolOutcome,
    ToolStarted,
    TurnUndone,
    UserSaid,
)
from hummingbird.core.json_codec import decode_json_object
from hummingbird.core.text import replace_surrogates, shorten_line

TODOS = 256  # kept; when there are more, those that ended first are dropped
TODO_CHARS = 500  # of one item
TODOS_SHOWN_CHARS = 4_000  # of the list that a call returns
TODO_CUT_CHARS = 80  # of one item in a list that is too long
TODO_TOOL = "todo"
REWRITE_PREFIX = "arguments "  # begins the reason of a decision that holds arguments rewritten by a hook


class TodoState(StrEnum):
    """The state of a todo item."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Todo:
    """An item; its `number` stays the same for the whole session."""

    number: int
    text: str
    state: TodoState = TodoState.PENDING

    @property
    def is_open(self) -> bool:
        return self.state in {TodoState.PENDING, TodoState.IN_PROGRESS}

    def __str__(self) -> str:
        return f"{self.number} {self.state}: {self.text}"


class TodoList:
    """Apply journal entries in order; read `all` and `open` at any time."""

    def __init__(self) -> None:
        self._items: Mapping[int, Todo] = {}
        self._last = 0
        self._started: dict[str, str] = {}  # call id to arguments, of calls without a result
        self._rewritten: dict[str, str] = {}
        self._said: list[tuple[str, Mapping[int, Todo]]] = []  # user messages and the items at that time

    @classmethod
    def from_entries(cls, entries: Iterable[JournalEntry]) -> "TodoList":
        todos = cls()
        for entry in entries:
            todos.apply_entry(entry)
        return todos

    def copy(self) -> "TodoList":
        """Return a copy of the items, to try an action on."""
        other = TodoList()
        other._items, other._last = self._items, self._last
        return other

    @property
    def all(self) -> tuple[Todo, ...]:
        return tuple(self._items.values())

    @property
    def open(self) -> tuple[Todo, ...]:
        return tuple(item for item in self._items.values() if item.is_open)

    @property
    def progress_line(self) -> str:
        """Return one line: how many are done, and which is in progress."""
        counted = [item for item in self.all if item.state is not TodoState.CANCELLED]
        done = sum(not item.is_open for item in counted)
        now = next((item.text for item in self.all if item.state is TodoState.IN_PROGRESS), "")
        return f"{done} of {len(counted)} done" + (f"; now: {shorten_line(now, TODO_CUT_CHARS)}" if now else "")

    def apply_entry(self, entry: JournalEntry) -> None:
        match entry:
            case UserSaid(text=text, source=source) if source is not MessageSource.SKILL:
                self._said.append((text, self._items))
            case TurnUndone(text=text):
                self._undo_turn(text)
            case ModelAnswered():
                self._started.clear()  # calls without a result by now never ended
            case ToolDecided(call_id=call_id, name=name, reason=reason, decision="rewritten") if _is_todo(name):
                if reason.startswith(REWRITE_PREFIX):
                    self._rewritten[call_id] = reason.removeprefix(REWRITE_PREFIX)
            case ToolStarted(call_id=call_id, name=name, arguments=arguments) if _is_todo(name):
                self._start_call(call_id, self._rewritten.pop(call_id, arguments))
            case ToolFinished(call_id=call_id, outcome=outcome):
                self._finish_call(call_id, outcome)
            case _:
                pass

    def apply_action(self, arguments: Mapping[str, Any]) -> str:
        """Apply one call and return the list afterwards.

        Raises ArgumentsInvalid, and then nothing has changed.
        """
        action = arguments.get("action")
        if not isinstance(action, str) or (act := _ACTIONS.get(action)) is None:
            raise ArgumentsInvalid(f"todo has no such action; it has {', '.join(_ACTIONS)}.")
        act(self, arguments)
        return self.render()

    def render(self) -> str:
        """Return the list, at most TODOS_SHOWN_CHARS: the longer it is, the less is shown of ended items."""
        if not self._items:
            return "The list is empty."
        states = Counter(item.state for item in self.all)
        head = ", ".join(f"{states[state]} {state}" for state in TodoState if states[state]) + "."
        for lines in (list(map(str, self.all)), list(map(str, self.open)), list(map(_shorten_item, self.open))):
            hidden = len(self._items) - len(lines)
            text = "\n".join([head, *([f"[{hidden} that ended are not shown]"] if hidden else ()), *lines])
            if len(text) <= TODOS_SHOWN_CHARS:
                return text
        return self._render_first_open(head)

    def _render_first_open(self, head: str) -> str:
        """Return the items in progress, then the others by number, as many as fit."""
        ordered = sorted(self.open, key=lambda item: item.state is not TodoState.IN_PROGRESS)
        lines, room = [head], TODOS_SHOWN_CHARS - len(head) - 60
        for item in ordered:
            room -= len(_shorten_item(item)) + 1
            if room < 0:
                break
            lines.append(_shorten_item(item))
        return "\n".join([*lines, f"[{len(ordered) - len(lines) + 1} further open ones are not shown]"])

    def _start_call(self, call_id: str, arguments: str) -> None:
        """Remember the call; identical calls of one answer run once, so only the first counts."""
        if arguments in self._started.values() or decode_json_object(arguments) in map(
            decode_json_object, self._started.values()
        ):
            return
        self._started[call_id] = arguments

    def _finish_call(self, call_id: str, outcome: ToolOutcome) -> None:
        arguments = decode_json_object(self._started.pop(call_id, ""))
        if outcome is not ToolOutcome.OK or arguments is None:
            return
        with suppress(ArgumentsInvalid):  # an unknown action of another version changes nothing
            self.apply_action(arguments)

    def _undo_turn(self, text: str) -> None:
        for place in reversed(range(len(self._said))):
            if self._said[place][0] == text:
                self._items = self._said[place][1]
                del self._said[place:]
                return

    def _create(self, arguments: Mapping[str, Any]) -> None:
        texts = [_item_text(text) for text in _parse_list(arguments, "texts", str)]
        free = TODOS - len(self.open)
        if len(texts) > free:
            raise ArgumentsInvalid(
                f"There is room for {free} more, and these are {len(texts)}: {TODOS} may be open. Complete or cancel "
                "some, or put several into one."
            )
        ended = [item.number for item in self.all if not item.is_open]
        forgotten = set(ended[: max(0, len(self._items) + len(texts) - TODOS)])
        kept = {number: item for number, item in self._items.items() if number not in forgotten}
        numbered = enumerate(texts, self._last + 1)
        self._items = kept | {number: Todo(number, text) for number, text in numbered}
        self._last += len(texts)

    def _update(self, arguments: Mapping[str, Any]) -> None:
        named = self._parse_numbers(arguments)
        text, state = arguments.get("text"), arguments.get("state")
        if text is None and state is None:
            raise ArgumentsInvalid("To update an item give its text, its state or both.")
        if text is not None and len(named) > 1:
            raise ArgumentsInvalid("A new text is for one item; name one number, or leave the text out.")
        self._change_items(named, {"text": None if text is None else _item_text(text), "state": _parse_state(state)})

    def _complete(self, arguments: Mapping[str, Any]) -> None:
        self._change_items(self._parse_numbers(arguments), {"state": TodoState.COMPLETED})

    def _cancel(self, arguments: Mapping[str, Any]) -> None:
        self._change_items(self._parse_numbers(arguments), {"state": TodoState.CANCELLED})

    def _list_items(self, _: Mapping[str, Any]) -> None:
        """Change nothing: every call returns the list."""

    def _change_items(self, named: Iterable[int], fields: Mapping[str, Any]) -> None:
        given = {name: value for name, value in fields.items() if value is not None}
        items = dict(self._items)
        for number in named:
            items[number] = replace(items[number], **given)
        if sum(item.is_open for item in items.values()) > TODOS:
            raise ArgumentsInvalid(
                f"At most {TODOS} items may be open; complete or cancel one before reopening another."
            )
        self._items = items

    def _parse_numbers(self, arguments: Mapping[str, Any]) -> list[int]:
        numbers = _parse_list(arguments, "numbers", int)
        if unknown := [number for number in numbers if number not in self._items]:
            there = ", ".join(map(str, [item.number for item in self.open][:20])) or "none"
            raise ArgumentsInvalid(f"There is no item {unknown[0]}. Open ones: {there}.")
        return numbers


_ACTIONS: Mapping[str, Callable[[TodoList, Mapping[str, Any]], None]] = {
    "create": TodoList._create,
    "update": TodoList._update,
    "complete": TodoList._complete,
    "cancel": TodoList._cancel,
    "list": TodoList._list_items,
}
ACTIONS = tuple(_ACTIONS)


def _parse_list(arguments: Mapping[str, Any], field: str, kind: type) -> list[Any]:
    found = arguments.get(field)
    if not isinstance(found, list) or not found or not all(type(one) is kind for one in found):
        what = "texts" if kind is str else "numbers of items"
        raise ArgumentsInvalid(f"{arguments.get('action')} needs `{field}`: a list of {what}, not empty.")
    return found


def _item_text(text: object) -> str:
    line = " ".join(replace_surrogates(text).split()) if isinstance(text, str) else ""
    if not line or len(line) > TODO_CHARS:
        raise ArgumentsInvalid(f"The text of an item has 1 to {TODO_CHARS} characters; this one has {len(line)}.")
    return line


def _parse_state(state: object) -> TodoState | None:
    if state is None:
        return None
    if not isinstance(state, str) or state not in set(TodoState):
        raise ArgumentsInvalid(f"A state is one of {', '.join(TodoState)}.")
    return TodoState(state)


def _shorten_item(item: Todo) -> str:
    return str(replace(item, text=shorten_line(item.text, TODO_CUT_CHARS)))


def _is_todo(name: str) -> bool:
    """Return whether the name is `todo`, also if the model misspelt it in a way that the toolbox accepts."""
    return name == TODO_TOOL or re.sub(r"[^a-z0-9]", "", name.lower()) == TODO_TOOL
