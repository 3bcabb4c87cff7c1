"""Define the canonical messages, the only conversation format outside a model adapter.

They are shaped like OpenAI chat: user, assistant with tool calls and readable reasoning, tool. A notice is its own
kind, so that scaffolding is never mistaken for what a person or the model said. Data that a provider needs back
verbatim travels as an opaque `ProviderEcho`, which only the adapter of the same wire format reads.

The module also validates conversations (`find_problems`), repairs damaged ones (`repair_messages`) and converts from
and to chat dictionaries. Checks that only one provider needs are in that provider's adapter.
"""

import base64
import json
import re
import reprlib
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from hummingbird.core.errors import UsageError
from hummingbird.core.text import replace_surrogates


class NoticeKind(StrEnum):
    """The subject of a notice."""

    SOFT_BUDGET = "soft_budget"
    FINAL = "final"
    EMPTY = "empty"
    MALFORMED = "malformed"
    CONTINUE = "continue"
    SMALLER = "smaller"
    REPEATING = "repeating"
    CONTINUATION = "continuation"
    INTERRUPTED = "interrupted"
    RENEWED = "renewed"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call by the model; `arguments` is the JSON text the model wrote and may be malformed."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ProviderEcho:
    """Data that the provider wants replayed verbatim, opaque to everyone but the adapter of `wire`."""

    wire: str
    model: str
    content: Any


@dataclass(frozen=True, slots=True)
class ImagePart:
    """An image that goes along with a user message; `data` is its content in Base64. The text names it too."""

    name: str
    media_type: str
    data: str


IMAGE_BYTES = 3_750_000  # of one image; in Base64 that is the 5 MB that Anthropic takes
_IMAGE_TYPES = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF.{4}WEBP", re.DOTALL), "image/webp"),
)


def image_type(content: bytes) -> str:
    """Return the media type of an image that models take; empty for anything else."""
    return next((kind for mark, kind in _IMAGE_TYPES if mark.match(content)), "")


def make_image(name: str, content: bytes) -> ImagePart:
    """Return the image as it goes along with a message. Raises UsageError if it is none, or too large."""
    kind = image_type(content)
    if not kind:
        raise UsageError(f"{name[:200]} is not a PNG, JPEG, GIF or WebP image.")
    if len(content) > IMAGE_BYTES:
        raise UsageError(f"The image {name[:200]} has more than {IMAGE_BYTES:,} bytes, so nothing is sent: shrink it.")
    return ImagePart(name, kind, base64.b64encode(content).decode())


@dataclass(frozen=True, slots=True)
class UserMessage:
    """A message from a person, an order, a steering text or a skill."""

    text: str
    images: tuple[ImagePart, ...] = ()


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """An answer of the model.

    `paused`: the provider stopped in the middle and wants the same conversation sent again.
    """

    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    echo: ProviderEcho | None = None
    paused: bool = False


@dataclass(frozen=True, slots=True)
class ToolMessage:
    """The result of one tool call."""

    call_id: str
    name: str
    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Notice:
    """A message that Hummingbird itself shows to the model.

    A summary replaces a part of the conversation, so it survives the epoch it was made in; other notices do not.
    """

    kind: NoticeKind
    text: str


Message: TypeAlias = UserMessage | AssistantMessage | ToolMessage | Notice


def message_to_chat(message: Message) -> dict[str, Any]:
    """Convert a message to the OpenAI chat dictionary that library users see.

    A notice becomes a system message whose name tells its kind.
    """
    match message:
        case UserMessage(text=text):
            return {"role": "user", "content": text}
        case ToolMessage(call_id=call_id, name=name, text=text):
            return {"role": "tool", "tool_call_id": call_id, "name": name, "content": text}
        case Notice(kind=kind, text=text):
            return {"role": "system", "name": f"notice_{kind}", "content": text}
        case AssistantMessage():
            return _assistant_to_chat(message)


def _assistant_to_chat(message: AssistantMessage) -> dict[str, Any]:
    chat: dict[str, Any] = {"role": "assistant", "content": message.text}
    if message.reasoning:
        chat["reasoning"] = message.reasoning
    if message.calls:
        chat["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
            for c in message.calls
        ]
    return chat


@dataclass(slots=True)
class EncodedMessages:
    """Cache of the wire encoding of the beginning of a conversation, so that each message is encoded once.

    It belongs to one epoch: within an epoch the beginning never changes, and the next epoch starts with an empty cache.
    A request encodes to the same bytes with and without it.

    `body` holds the first `count` messages, the last of which is `last`; `call_ids` are the tool calls among them.
    `head` holds the encoded parts that precede the conversation, by name.
    """

    count: int = 0
    last: Message | None = None
    body: bytearray = field(default_factory=bytearray)
    call_ids: set[str] = field(default_factory=set)
    head: dict[str, bytes] = field(default_factory=dict)

    def clear(self) -> None:
        """Forget what is encoded: the same messages are encoded in another way from now on."""
        self.count, self.last = 0, None
        self.body.clear()
        self.call_ids.clear()


UNKNOWN_OUTCOME = "[interrupted, outcome unknown: this call had started and may or may not have taken effect]"
NOT_RUN = "[not run: interrupted before this call started]"
PRINTED_UNTIL_THEN = "It had printed until then:\n"
MISSING_RESULT = "[no result was recorded for this call]"


def find_problems(messages: Sequence[Message], start: int = 0, known: Set[str] = frozenset()) -> Iterator[str]:
    """Yield a sentence for each reason why a provider would refuse these messages.

    With `start`, the caller vouches for the messages before it: they are valid, end with an assistant message, and
    contain the calls `known`.
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
            yield from _find_assistant_problems(index, message, previous)
        elif previous is None and type(message) is Notice:
            yield "the conversation begins with a notice instead of a user message"
        previous = message
    if owed:
        yield f"the conversation ends before the results of {', '.join(owed)}"


def _find_assistant_problems(index: int, message: AssistantMessage, previous: Message | None) -> Iterator[str]:
    if previous is None:
        yield "the conversation begins with an assistant message"
    if type(previous) is AssistantMessage and not previous.calls and not previous.paused:
        yield f"message {index} is a second assistant message in a row"
    if not message.text and not message.calls and message.echo is None:
        yield f"message {index} is an empty assistant message"


def find_request_problems(messages: Sequence[Message], start: int = 0, known: Set[str] = frozenset()) -> Iterator[str]:
    """Yield the problems of `find_problems`, and those of a request that has no message to answer."""
    yield from find_problems(messages, start, known)
    if not messages:
        yield "there is no message to answer"
    elif isinstance(last := messages[-1], AssistantMessage) and not last.paused:
        yield "the last message is the assistant's own"


def repair_messages(messages: Sequence[Message]) -> tuple[list[Message], list[str]]:
    """Return a valid conversation made from a damaged one, and a sentence for each change.

    Neighbours of the same role are merged, orphaned results are dropped, and missing results get a stub.
    """
    repair = _MessageRepair(messages)
    for index, message in enumerate(messages):
        repair.add(index, message)
    return repair.messages, repair.notes


class _MessageRepair:
    """Build a valid conversation message by message; each result goes behind its call, wherever it stood."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.messages: list[Message] = []
        self.notes: list[str] = []
        self._results = _results_by_call(messages)
        self._seen: set[str] = set()
        self._placed: set[str] = set()
        self._due: list[str] = []  # calls whose results are in place if they come next, in this order

    def add(self, index: int, message: Message) -> None:
        if isinstance(message, ToolMessage):
            self._check_result(index, message.call_id)
            return
        self._due = []
        match message:
            case AssistantMessage():
                self.notes += append_answer(message, self.messages, self._seen, index)
                self._append_results(self.messages[-1:])
            case Notice() if not self.messages:
                self.notes.append(f"dropped message {index}: a notice before anything was said")
            case UserMessage() if self.messages and isinstance(last := self.messages[-1], UserMessage):
                self.messages[-1] = UserMessage(f"{last.text}\n\n{message.text}", last.images + message.images)
                self.notes.append(f"merged message {index} into the user message before it")
            case _:
                self.messages.append(message)

    def _check_result(self, index: int, call_id: str) -> None:
        if call_id not in self._seen:
            self.notes.append(f"dropped message {index}: a result for {call_id}, which nobody asked for")
        elif call_id in self._placed:
            self.notes.append(f"dropped message {index}: a second result for {call_id}")
        elif self._due[:1] != [call_id]:
            self.notes.append(f"moved message {index}: the result for {call_id} belongs behind its call")
        self._placed.add(call_id)
        self._due = [due for due in self._due if due != call_id]

    def _append_results(self, last: list[Message]) -> None:
        for call in last[0].calls if last and isinstance(last[0], AssistantMessage) else ():
            result = self._results.get(call.id)
            if result is None:
                self.notes.append(f"call {call.id} had no result: put a stub there")
            else:
                self._due.append(call.id)
            self.messages.append(result or ToolMessage(call.id, call.name, MISSING_RESULT, is_error=True))


def _results_by_call(messages: Sequence[Message]) -> dict[str, ToolMessage]:
    """Map each call to its first result that stands after it; an earlier result is not its own."""
    asked: set[str] = set()
    results: dict[str, ToolMessage] = {}
    for message in messages:
        if isinstance(message, AssistantMessage):
            asked.update(call.id for call in message.calls)
        elif isinstance(message, ToolMessage) and message.call_id in asked:
            results.setdefault(message.call_id, message)
    return results


def append_answer(message: AssistantMessage, messages: list[Message], seen: set[str], index: int) -> list[str]:
    """Append an assistant message by the rules of `repair_messages`, and return a sentence for each change.

    `seen` holds all call ids so far and is updated. The results of its calls are not in `messages` yet.
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
        messages[-1] = _merge_answers(last, message)
        notes.append(f"merged message {index} into the assistant message before it")
    else:
        messages.append(message)
    return notes


def _merge_answers(one: AssistantMessage, other: AssistantMessage) -> AssistantMessage:
    text = "\n\n".join(filter(None, (one.text, other.text)))
    if not text and not other.calls:
        return other  # both consist of nothing but a provider echo
    return AssistantMessage(text, "\n\n".join(filter(None, (one.reasoning, other.reasoning))), other.calls)


def messages_from_chat(chat: Sequence[Any]) -> tuple[list[Message], list[str]]:
    """Convert chat dictionaries from any source to a valid conversation, with a sentence for each repair."""
    messages: list[Message] = []
    notes: list[str] = []
    for index, raw in enumerate(chat):
        message = _parse_message(raw)
        if message is None:
            notes.append(f"dropped message {index}: {reprlib.repr(raw)} is not a chat message")
            continue
        messages.append(message)
        if isinstance(message, AssistantMessage) and len(message.calls) < len(_raw_calls(raw)):
            notes.append(f"dropped calls of message {index} that have no id, no name or no arguments one could send")
    repaired, repairs = repair_messages(messages)
    return repaired, notes + repairs


def _parse_message(raw: Any) -> Message | None:
    if not isinstance(raw, Mapping):
        return None
    text = _content_text(raw.get("content"))
    match raw.get("role"):
        case "user":
            return UserMessage(text)
        case "assistant":
            reasoning = raw.get("reasoning")
            found = tuple(filter(None, map(_parse_call, _raw_calls(raw))))
            return AssistantMessage(text, replace_surrogates(reasoning) if isinstance(reasoning, str) else "", found)
        case "tool":
            return ToolMessage(_plain_word(raw.get("tool_call_id")), _plain_word(raw.get("name")), text)
        case "system" if (name := _plain_word(raw.get("name"))) in {f"notice_{kind}" for kind in NoticeKind}:
            return Notice(NoticeKind(name.removeprefix("notice_")), text)
    return None


def _content_text(content: Any) -> str:
    if isinstance(content, str):
        return replace_surrogates(content)
    if isinstance(content, list | tuple):
        parts = [part.get("text") for part in content if isinstance(part, Mapping)]
        return replace_surrogates("\n".join(part for part in parts if isinstance(part, str)))
    return ""


def _plain_word(raw: Any) -> str:
    return "" if raw is None else replace_surrogates(str(raw))


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
    return ToolCall(_plain_word(raw["id"]), _plain_word(function["name"]), replace_surrogates(text))
