"""An answer of the Messages API as a reply: text, readable thinking, calls, and the echo to replay."""

from typing import Any

from hummingbird.adapters.models.anthropic.encode import WIRE
from hummingbird.adapters.models.anthropic.errors import error_inside
from hummingbird.adapters.models.calls import argument_text, call_ids
from hummingbird.adapters.models.wire import Profile
from hummingbird.domain.errors import ReplyUnreadable
from hummingbird.domain.journal import Finish
from hummingbird.domain.messages import AssistantMessage, Echo, ToolCall
from hummingbird.domain.text import plain, shortened
from hummingbird.domain.usage import Usage
from hummingbird.ports.model import ModelReply, ModelRequest

# Values that are not here (end_turn, tool_use, stop_sequence, and those still to come) end an answer that can be
# read like any other.
_FINISHES = {
    "max_tokens": Finish.LENGTH,
    "pause_turn": Finish.PAUSE,
    "refusal": Finish.REFUSAL,
    "model_context_window_exceeded": Finish.WINDOW_FULL,
}


def decode(answer: Any, request: ModelRequest, profile: Profile) -> ModelReply:
    content = _content(answer)
    finish = _FINISHES.get(str(answer.get("stop_reason")), Finish.STOP)
    raw = answer.get("usage")
    usage = raw if isinstance(raw, dict) else {}
    if finish is Finish.REFUSAL:
        # what was said before a classifier cut in is to be discarded, says the provider
        return ModelReply(AssistantMessage(), finish, _usage(usage), usage)
    return ModelReply(_message(content, request, profile, finish), finish, _usage(usage), usage)


def _content(answer: Any) -> list[dict[str, Any]]:
    if isinstance(answer, dict) and (answer.get("type") == "error" or "error" in answer):
        raise error_inside(answer)
    content = answer.get("content") if isinstance(answer, dict) else None
    if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
        raise ReplyUnreadable("Anthropic's answer has no content; it is not a message.")
    # an empty text block may come, but may not be sent back
    return [block for block in content if block.get("type") != "text" or str(block.get("text") or "").strip()]


def _message(
    content: list[dict[str, Any]], request: ModelRequest, profile: Profile, finish: Finish
) -> AssistantMessage:
    texts, thoughts, asked = [], [], []
    for at, block in enumerate(content):
        match block.get("type"):
            case "text":
                texts.append(str(block["text"]))
            case "thinking":
                thoughts.append(str(block.get("thinking") or ""))
            case "redacted_thinking":
                pass
            case "tool_use":
                asked.append(at)
            case kind:
                raise ReplyUnreadable(f"Anthropic's answer has a part of unknown type {shortened(str(kind), 60)!r}.")
    ids = call_ids(request, [content[at].get("id") for at in asked])
    for at, call_id in zip(asked, ids, strict=True):
        if content[at].get("id") != call_id:
            content[at] = {**content[at], "id": call_id}
    return AssistantMessage(
        text=plain("\n\n".join(texts)),
        reasoning=plain("\n\n".join(filter(None, thoughts))),
        calls=tuple(_call(content[at]) for at in asked),
        echo=Echo(WIRE, profile.model, content) if content else None,
        paused=finish is Finish.PAUSE,
    )


def _call(block: dict[str, Any]) -> ToolCall:
    return ToolCall(block["id"], str(block.get("name") or ""), argument_text(block.get("input") or {}))


def _usage(raw: dict[str, Any]) -> Usage:
    """`input_tokens` is what neither was in the cache nor went there; `output_tokens` includes thinking."""
    details = raw.get("output_tokens_details")
    return Usage(
        fresh=raw.get("input_tokens") or 0,
        cache_read=raw.get("cache_read_input_tokens") or 0,
        cache_write=raw.get("cache_creation_input_tokens") or 0,
        output=raw.get("output_tokens") or 0,
        reasoning=(details.get("thinking_tokens") or 0) if isinstance(details, dict) else 0,
    )
