"""The list of what is to be done in a session (C7), as a projection of its journal: calls of the tool `todo` that
succeeded, in their order. So it survives compactions, resumes and other machines by itself.

A hook that rewrote the arguments of a call is heard: the journal says what it made of them. Turns that were taken back
take their part of the list with them.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import msgspec

from hummingbird.domain.errors import ArgumentsInvalid
from hummingbird.domain.journal import (
    Entry,
    ModelAnswered,
    Source,
    ToolDecided,
    ToolFinished,
    ToolOutcome,
    ToolStarted,
    TurnUndone,
    UserSaid,
)
from hummingbird.domain.mind_limits import TODO_CHARS, TODO_CUT_CHARS, TODOS, TODOS_SHOWN_CHARS
from hummingbird.domain.text import plain, shortened

NAME = "todo"
REWRITTEN = "arguments "  # how the reason of a decision begins that holds what a hook made of them


class TodoState(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Todo:
    """`number` is how it is named for as long as the session is."""

    number: int
    text: str
    state: TodoState = TodoState.PENDING

    @property
    def open(self) -> bool:
        return self.state in {TodoState.PENDING, TodoState.IN_PROGRESS}

    def __str__(self) -> str:
        return f"{self.number} {self.state}: {self.text}"


class Todos:
    """`follow` the journal; read `all` and `open` at any time."""

    def __init__(self) -> None:
        self._items: Mapping[int, Todo] = {}
        self._last = 0
        self._started: dict[str, str] = {}  # arguments by calls that have no result yet
        self._rewritten: dict[str, str] = {}
        self._said: list[tuple[str, Mapping[int, Todo]]] = []  # what there was when somebody said something

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> "Todos":
        todos = cls()
        for entry in entries:
            todos.follow(entry)
        return todos

    def copy(self) -> "Todos":
        """As the list is now, to try something."""
        other = Todos()
        other._items, other._last = self._items, self._last
        return other

    @property
    def all(self) -> tuple[Todo, ...]:
        return tuple(self._items.values())

    @property
    def open(self) -> tuple[Todo, ...]:
        return tuple(item for item in self._items.values() if item.open)

    @property
    def count(self) -> str:
        """One line: how many are done, and what is being done."""
        counted = [item for item in self.all if item.state is not TodoState.CANCELLED]
        done = sum(not item.open for item in counted)
        now = next((item.text for item in self.all if item.state is TodoState.IN_PROGRESS), "")
        return f"{done} of {len(counted)} done" + (f"; now: {shortened(now, TODO_CUT_CHARS)}" if now else "")

    def follow(self, entry: Entry) -> None:
        match entry:
            case UserSaid(text=text, source=source) if source is not Source.SKILL:
                self._said.append((text, self._items))
            case TurnUndone(text=text):
                self._take_back(text)
            case ModelAnswered():
                self._started.clear()  # what is unsettled by now never ended
            case ToolDecided(call_id=call_id, name=name, reason=reason, decision="rewritten") if _is_todo(name):
                if reason.startswith(REWRITTEN):
                    self._rewritten[call_id] = reason.removeprefix(REWRITTEN)
            case ToolStarted(call_id=call_id, name=name, arguments=arguments) if _is_todo(name):
                self._start(call_id, self._rewritten.pop(call_id, arguments))
            case ToolFinished(call_id=call_id, outcome=outcome):
                self._finish(call_id, outcome)
            case _:
                pass

    def apply(self, arguments: Mapping[str, Any]) -> str:
        """What one call does, and the list afterwards. Raises ArgumentsInvalid, and then nothing has changed."""
        action = arguments.get("action")
        if not isinstance(action, str) or (act := _ACTIONS.get(action)) is None:
            raise ArgumentsInvalid(f"todo has no such action; it has {', '.join(_ACTIONS)}.")
        act(self, arguments)
        return self.shown()

    def shown(self) -> str:
        """The list, at most TODOS_SHOWN_CHARS: the longer it is, the less is said of what ended."""
        if not self._items:
            return "The list is empty."
        states = Counter(item.state for item in self.all)
        head = ", ".join(f"{states[state]} {state}" for state in TodoState if states[state]) + "."
        for lines in (list(map(str, self.all)), list(map(str, self.open)), list(map(_cut, self.open))):
            hidden = len(self._items) - len(lines)
            text = "\n".join([head, *([f"[{hidden} that ended are not shown]"] if hidden else ()), *lines])
            if len(text) <= TODOS_SHOWN_CHARS:
                return text
        return self._first_of_them(head)

    def _first_of_them(self, head: str) -> str:
        """What is being done first, then by number, as many as there is room for."""
        ordered = sorted(self.open, key=lambda item: item.state is not TodoState.IN_PROGRESS)
        lines, room = [head], TODOS_SHOWN_CHARS - len(head) - 60
        for item in ordered:
            room -= len(_cut(item)) + 1
            if room < 0:
                break
            lines.append(_cut(item))
        return "\n".join([*lines, f"[{len(ordered) - len(lines) + 1} further open ones are not shown]"])

    def _start(self, call_id: str, arguments: str) -> None:
        """Identical calls of one answer run once (L17): only the first one counts."""
        if arguments in self._started.values() or _parsed(arguments) in map(_parsed, self._started.values()):
            return
        self._started[call_id] = arguments

    def _finish(self, call_id: str, outcome: ToolOutcome) -> None:
        arguments = _parsed(self._started.pop(call_id, ""))
        if outcome is not ToolOutcome.OK or arguments is None:
            return
        with suppress(ArgumentsInvalid):  # of another version of this program: what we do not know changes nothing
            self.apply(arguments)

    def _take_back(self, text: str) -> None:
        for place in reversed(range(len(self._said))):
            if self._said[place][0] == text:
                self._items = self._said[place][1]
                del self._said[place:]
                return

    def _create(self, arguments: Mapping[str, Any]) -> None:
        texts = [_text(text) for text in _several(arguments, "texts", str)]
        free = TODOS - len(self.open)
        if len(texts) > free:
            raise ArgumentsInvalid(
                f"There is room for {free} more, and these are {len(texts)}: {TODOS} may be open. Complete or cancel "
                "some, or put several into one."
            )
        ended = [item.number for item in self.all if not item.open]
        forgotten = set(ended[: max(0, len(self._items) + len(texts) - TODOS)])
        kept = {number: item for number, item in self._items.items() if number not in forgotten}
        numbered = enumerate(texts, self._last + 1)
        self._items = kept | {number: Todo(number, text) for number, text in numbered}
        self._last += len(texts)

    def _update(self, arguments: Mapping[str, Any]) -> None:
        named = self._named(arguments)
        text, state = arguments.get("text"), arguments.get("state")
        if text is None and state is None:
            raise ArgumentsInvalid("To update an item give its text, its state or both.")
        if text is not None and len(named) > 1:
            raise ArgumentsInvalid("A new text is for one item; name one number, or leave the text out.")
        self._change(named, {"text": None if text is None else _text(text), "state": _state(state)})

    def _complete(self, arguments: Mapping[str, Any]) -> None:
        self._change(self._named(arguments), {"state": TodoState.COMPLETED})

    def _cancel(self, arguments: Mapping[str, Any]) -> None:
        self._change(self._named(arguments), {"state": TodoState.CANCELLED})

    def _list(self, _: Mapping[str, Any]) -> None:
        """It is shown anyway."""

    def _change(self, named: Iterable[int], fields: Mapping[str, Any]) -> None:
        given = {name: value for name, value in fields.items() if value is not None}
        items = dict(self._items)
        for number in named:
            items[number] = replace(items[number], **given)
        if sum(item.open for item in items.values()) > TODOS:
            raise ArgumentsInvalid(f"{TODOS} items are open; complete or cancel some before one is opened again.")
        self._items = items

    def _named(self, arguments: Mapping[str, Any]) -> list[int]:
        numbers = _several(arguments, "numbers", int)
        if unknown := [number for number in numbers if number not in self._items]:
            there = ", ".join(map(str, [item.number for item in self.open][:20])) or "none"
            raise ArgumentsInvalid(f"There is no item {unknown[0]}. Open ones: {there}.")
        return numbers


_ACTIONS: Mapping[str, Callable[[Todos, Mapping[str, Any]], None]] = {
    "create": Todos._create,
    "update": Todos._update,
    "complete": Todos._complete,
    "cancel": Todos._cancel,
    "list": Todos._list,
}
ACTIONS = tuple(_ACTIONS)


def _several(arguments: Mapping[str, Any], field: str, kind: type) -> list[Any]:
    found = arguments.get(field)
    if not isinstance(found, list) or not found or not all(type(one) is kind for one in found):
        what = "texts" if kind is str else "numbers of items"
        raise ArgumentsInvalid(f"{arguments.get('action')} needs `{field}`: a list of {what}, not empty.")
    return found


def _text(text: object) -> str:
    line = " ".join(plain(text).split()) if isinstance(text, str) else ""
    if not line or len(line) > TODO_CHARS:
        raise ArgumentsInvalid(f"The text of an item has 1 to {TODO_CHARS} characters; this one has {len(line)}.")
    return line


def _state(state: object) -> TodoState | None:
    if state is None:
        return None
    if not isinstance(state, str) or state not in set(TodoState):
        raise ArgumentsInvalid(f"A state is one of {', '.join(TodoState)}.")
    return TodoState(state)


def _cut(item: Todo) -> str:
    return str(replace(item, text=shortened(item.text, TODO_CUT_CHARS)))


def _is_todo(name: str) -> bool:
    """As the toolbox reads a name that a model misspelt."""
    return name == NAME or re.sub(r"[^a-z0-9]", "", name.lower()) == NAME


def _parsed(arguments: str) -> dict[str, Any] | None:
    try:
        found = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
