"""Which result belongs to which call, in chat dictionaries whose ids are missing or used again and again (S1).

Gemini gave no ids for long, and what stood in for them was often counted from one in every turn. Afterwards each call
has an id that no other has. One pass, and what it makes up depends on nothing but the messages.
"""

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from hummingbird.domain.text import plain


def matched(chat: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """The messages with ids of their own, without results that nobody asked for, and sentences about both."""
    calls, found, orphans = _Calls(), [], 0
    for message in chat:
        if message.get("role") != "tool":
            found.append(_asking(message, calls))
        elif (call_id := calls.answered(_word(message.get("tool_call_id")), _word(message.get("name")))) is None:
            orphans += 1
        else:
            found.append({**message, "tool_call_id": call_id})
    notes = [f"gave {calls.made_up} calls an id: they had none, or one that was used before"] if calls.made_up else []
    return found, [*notes, f"left out {orphans} results that no call was waiting for"] if orphans else notes


def _asking(message: dict[str, Any], calls: "_Calls") -> dict[str, Any]:
    asked = message.get("tool_calls")
    if not isinstance(asked, list) or not any(map(_name, asked)):
        return message
    calls.begin_turn()
    named = [{**raw, "id": calls.asked(_word(raw.get("id")), _name(raw))} if _name(raw) else raw for raw in asked]
    return {**message, "tool_calls": named}


def _name(raw: Any) -> str:
    """Empty for what is no call; the repair says that it is dropped."""
    function = raw.get("function") if isinstance(raw, Mapping) else None
    return _word(function.get("name")) if isinstance(function, Mapping) else ""


def _word(raw: Any) -> str:
    return plain(str(raw)) if isinstance(raw, str | int) else ""


@dataclass(slots=True)
class _Call:
    id: str
    waiting: bool = True


class _Calls:
    """What was asked so far. An id means the last turn that used it; a name, a call of the last turn."""

    def __init__(self) -> None:
        self.made_up = 0
        self._numbers = count(1)
        self._taken: set[str] = set()
        self._turn = 0
        self._by_id: dict[str, tuple[int, deque[_Call]]] = {}
        self._by_name: defaultdict[tuple[str, bool], deque[_Call]] = defaultdict(deque)

    def begin_turn(self) -> None:
        self._turn += 1
        self._by_name.clear()

    def asked(self, own: str, name: str) -> str:
        call = _Call(own if own and own not in self._taken else self._another())
        self._taken.add(call.id)
        if own:
            turn, calls = self._by_id.get(own, (0, deque()))
            self._by_id[own] = (self._turn, calls if turn == self._turn else deque())
            self._by_id[own][1].append(call)
        for key in {name, ""}:
            self._by_name[key, False].append(call)
            if not own:
                self._by_name[key, True].append(call)
        return call.id

    def answered(self, own: str, name: str) -> str | None:
        """The id of the call whose result this is. One with an id that no call had can be of one without."""
        if own in self._by_id:
            return _first(self._by_id[own][1])
        return _first(self._by_name[name, bool(own)])

    def _another(self) -> str:
        """Nine letters and digits: the one shape that every known server takes."""
        self.made_up += 1
        made = (f"past{number:05}" for number in self._numbers)
        return next(call_id for call_id in made if call_id not in self._taken)


def _first(calls: deque[_Call]) -> str | None:
    """The first that waits, which waits no longer."""
    while calls:
        call = calls.popleft()
        if call.waiting:
            call.waiting = False
            return call.id
    return None
