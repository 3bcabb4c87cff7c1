"""Is this list of messages a conversation that a provider takes, and how to make it one (L4).

`problems` proves it; `repair` mends damaged histories by rule: neighbours are merged, orphans dropped,
missing results stubbed. Neither knows a provider: what only one of them refuses is checked by its adapter.
"""

import json
import reprlib
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from hummingbird.domain.messages import (
    AssistantMessage,
    Message,
    Notice,
    NoticeKind,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from hummingbird.domain.text import plain

UNKNOWN_OUTCOME = "[interrupted, outcome unknown: this call had started and may or may not have taken effect]"
NOT_RUN = "[not run: interrupted before this call started]"
MISSING_RESULT = "[no result was recorded for this call]"


def problems(messages: Sequence[Message], start: int = 0, known: Set[str] = frozenset()) -> Iterator[str]:
    """Sentences about what is wrong, one pass, nothing if all is well.

    With `start`, what comes before is known to be well, ends with an assistant message, and has the calls `known`.
    """
    previous: Message | None = messages[start - 1] if start else None
    owed = [call.id for call in previous.calls] if isinstance(previous, AssistantMessage) else []
    seen: set[str] = set()
    for index in range(start, len(messages)):
        message = messages[index]
        if type(message) is ToolMessage:
            if not owed:
                yield f"message {index} is a tool result for {message.call_id}, which nobody asked for"
            elif message.call_id != owed[0]:
                yield f"message {index} answers {message.call_id}, but {owed[0]} is next"
                owed = [call_id for call_id in owed if call_id != message.call_id]
            else:
                del owed[0]
            continue
        if owed:
            yield f"message {index} comes before the results of {', '.join(owed)}"
            owed = []
        if type(message) is AssistantMessage:
            owed = [call.id for call in message.calls]
            if len(set(owed)) < len(owed) or not (seen.isdisjoint(owed) and known.isdisjoint(owed)):
                yield f"message {index} uses a tool call id twice"
            seen.update(owed)
            yield from _assistant_problems(index, message, previous)
        elif previous is None and type(message) is Notice:
            yield "the conversation begins with a notice instead of a user message"
        previous = message
    if owed:
        yield f"the conversation ends before the results of {', '.join(owed)}"


def _assistant_problems(index: int, message: AssistantMessage, previous: Message | None) -> Iterator[str]:
    if previous is None:
        yield "the conversation begins with an assistant message"
    if type(previous) is AssistantMessage and not previous.calls and not previous.paused:
        yield f"message {index} is a second assistant message in a row"
    if not message.text and not message.calls and message.echo is None:
        yield f"message {index} is an empty assistant message"


def unsendable(messages: Sequence[Message], start: int = 0, known: Set[str] = frozenset()) -> Iterator[str]:
    """`problems`, and what makes a whole conversation unfit as a request: nothing there to answer."""
    yield from problems(messages, start, known)
    if not messages:
        yield "there is no message to answer"
    elif isinstance(last := messages[-1], AssistantMessage) and not last.paused:
        yield "the last message is the assistant's own"


def repair(messages: Sequence[Message]) -> tuple[list[Message], list[str]]:
    """A valid conversation out of a damaged one, and a sentence for everything that was changed."""
    mending = _Mending(messages)
    for index, message in enumerate(messages):
        mending.take(index, message)
    return mending.mended, mending.notes


class _Mending:
    """Takes one message after the other; results go behind their calls, wherever they stood."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.mended: list[Message] = []
        self.notes: list[str] = []
        self._results = _results_by_call(messages)
        self._seen: set[str] = set()
        self._placed: set[str] = set()
        self._due: list[str] = []  # results that stand where they belong if they come next, in this order

    def take(self, index: int, message: Message) -> None:
        if isinstance(message, ToolMessage):
            self._take_result(index, message.call_id)
            return
        self._due = []
        match message:
            case AssistantMessage():
                self.notes += add_answer(message, self.mended, self._seen, index)
                self._answer(self.mended[-1:])
            case Notice() if not self.mended:
                self.notes.append(f"dropped message {index}: a notice before anything was said")
            case UserMessage(text=text) if self.mended and isinstance(last := self.mended[-1], UserMessage):
                self.mended[-1] = UserMessage(f"{last.text}\n\n{text}")
                self.notes.append(f"merged message {index} into the user message before it")
            case _:
                self.mended.append(message)

    def _take_result(self, index: int, call_id: str) -> None:
        if call_id not in self._seen:
            self.notes.append(f"dropped message {index}: a result for {call_id}, which nobody asked for")
        elif call_id in self._placed:
            self.notes.append(f"dropped message {index}: a second result for {call_id}")
        elif self._due[:1] != [call_id]:
            self.notes.append(f"moved message {index}: the result for {call_id} belongs behind its call")
        self._placed.add(call_id)
        self._due = [due for due in self._due if due != call_id]

    def _answer(self, last: list[Message]) -> None:
        for call in last[0].calls if last and isinstance(last[0], AssistantMessage) else ():
            result = self._results.get(call.id)
            if result is None:
                self.notes.append(f"call {call.id} had no result: put a stub there")
            else:
                self._due.append(call.id)
            self.mended.append(result or ToolMessage(call.id, call.name, MISSING_RESULT, is_error=True))


def _results_by_call(messages: Sequence[Message]) -> dict[str, ToolMessage]:
    """The first result after each call: one that stands before it is not its result."""
    asked: set[str] = set()
    results: dict[str, ToolMessage] = {}
    for message in messages:
        if isinstance(message, AssistantMessage):
            asked.update(call.id for call in message.calls)
        elif isinstance(message, ToolMessage) and message.call_id in asked:
            results.setdefault(message.call_id, message)
    return results


def add_answer(message: AssistantMessage, messages: list[Message], seen: set[str], index: int) -> list[str]:
    """Appends an assistant message by the rules of `repair`, and says what had to be changed for that.

    `seen` holds all call ids so far. Results for its calls are not in `messages` yet.
    """
    notes: list[str] = []
    fresh: dict[str, ToolCall] = {}
    for call in message.calls:
        if call.id not in seen:
            fresh.setdefault(call.id, call)
    if len(fresh) < len(message.calls):
        message = AssistantMessage(message.text, message.reasoning, tuple(fresh.values()))
        notes.append(f"dropped calls of message {index} whose id was used before")
    seen.update(fresh)
    if not message.text and not message.calls and message.echo is None:
        return [*notes, f"dropped message {index}: an empty assistant message"]
    if not messages:
        messages.append(UserMessage("[the beginning of this conversation is lost]"))
        notes.append(f"message {index} had no user message before it: put a marker there")
    last = messages[-1]
    if isinstance(last, AssistantMessage) and not last.calls and not last.paused:
        messages[-1] = _merged(last, message)
        notes.append(f"merged message {index} into the assistant message before it")
    else:
        messages.append(message)
    return notes


def _merged(one: AssistantMessage, other: AssistantMessage) -> AssistantMessage:
    text = "\n\n".join(filter(None, (one.text, other.text)))
    if not text and not other.calls:
        return other  # both are nothing but an echo
    return AssistantMessage(text, "\n\n".join(filter(None, (one.reasoning, other.reasoning))), other.calls)


def from_chat(chat: Sequence[Any]) -> tuple[list[Message], list[str]]:
    """Chat dictionaries from anywhere, as a valid conversation, with a sentence for every repair."""
    messages: list[Message] = []
    notes: list[str] = []
    for index, raw in enumerate(chat):
        message = _parse(raw)
        if message is None:
            notes.append(f"dropped message {index}: {reprlib.repr(raw)} is no chat message")
            continue
        messages.append(message)
        if isinstance(message, AssistantMessage) and len(message.calls) < len(_raw_calls(raw)):
            notes.append(f"dropped calls of message {index} that have no id, no name or no arguments one could send")
    mended, repairs = repair(messages)
    return mended, notes + repairs


def _parse(raw: Any) -> Message | None:
    if not isinstance(raw, Mapping):
        return None
    text = _text(raw.get("content"))
    match raw.get("role"):
        case "user":
            return UserMessage(text)
        case "assistant":
            reasoning = raw.get("reasoning")
            found = tuple(filter(None, map(_parse_call, _raw_calls(raw))))
            return AssistantMessage(text, plain(reasoning) if isinstance(reasoning, str) else "", found)
        case "tool":
            return ToolMessage(_word(raw.get("tool_call_id")), _word(raw.get("name")), text)
        case "system" if (name := _word(raw.get("name"))) in {f"notice_{kind}" for kind in NoticeKind}:
            return Notice(NoticeKind(name.removeprefix("notice_")), text)
    return None


def _text(content: Any) -> str:
    if isinstance(content, str):
        return plain(content)
    if isinstance(content, list | tuple):
        parts = [part.get("text") for part in content if isinstance(part, Mapping)]
        return plain("\n".join(part for part in parts if isinstance(part, str)))
    return ""


def _word(raw: Any) -> str:
    return "" if raw is None else plain(str(raw))


def _raw_calls(raw: Mapping[Any, Any]) -> Sequence[Any]:
    calls = raw.get("tool_calls")
    return calls if isinstance(calls, list | tuple) else ()


def _parse_call(raw: Any) -> ToolCall | None:
    function = raw.get("function") if isinstance(raw, Mapping) else None
    if not isinstance(function, Mapping) or not raw.get("id") or not function.get("name"):
        return None
    arguments = function.get("arguments", "")
    try:
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    except (TypeError, ValueError, RecursionError):
        return None
    return ToolCall(_word(raw["id"]), _word(function["name"]), plain(text))
