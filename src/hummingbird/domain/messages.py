"""Canonical messages: the only conversation format outside an adapter (L3).

Shaped like OpenAI chat: user, assistant with tool calls and readable reasoning, tool. A notice is its own
kind (L8), so that scaffolding can never be mistaken for what a person or the model said. What a provider
needs back verbatim rides along as an opaque `Echo` that only the adapter of the same wire reads.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias


class NoticeKind(StrEnum):
    """What a notice is about."""

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
    """`arguments` is the JSON text the model wrote; it may be malformed (L10)."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Echo:
    """What the provider wants replayed verbatim: opaque to everyone but the adapter of `wire`."""

    wire: str
    model: str
    content: Any


@dataclass(frozen=True, slots=True)
class UserMessage:
    text: str


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """`paused`: the provider stopped in the middle and wants the same conversation sent again."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    echo: Echo | None = None
    paused: bool = False


@dataclass(frozen=True, slots=True)
class ToolMessage:
    call_id: str
    name: str
    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Notice:
    """A summary stands for a part of the conversation, so it outlasts the epoch it was made in; others do not."""

    kind: NoticeKind
    text: str


Message: TypeAlias = UserMessage | AssistantMessage | ToolMessage | Notice


def as_chat(message: Message) -> dict[str, Any]:
    """The OpenAI-chat dictionary that library users see; notices say what they are."""
    match message:
        case UserMessage(text=text):
            return {"role": "user", "content": text}
        case ToolMessage(call_id=call_id, name=name, text=text):
            return {"role": "tool", "tool_call_id": call_id, "name": name, "content": text}
        case Notice(kind=kind, text=text):
            return {"role": "system", "name": f"notice_{kind}", "content": text}
        case AssistantMessage():
            return _assistant_as_chat(message)


def _assistant_as_chat(message: AssistantMessage) -> dict[str, Any]:
    chat: dict[str, Any] = {"role": "assistant", "content": message.text}
    if message.reasoning:
        chat["reasoning"] = message.reasoning
    if message.calls:
        chat["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
            for c in message.calls
        ]
    return chat
