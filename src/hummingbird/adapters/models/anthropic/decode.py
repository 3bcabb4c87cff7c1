"""An answer of the Messages API as a reply: text, readable thinking, calls, and the echo to replay.

Total: an answer that is a message becomes a reply, whatever is in it. A part that we don't know cannot be replayed
or acted on, but it was billed: such an answer is malformed, and its usage is kept. (Encoding raises instead: there
nothing was spent yet.) Only what is no message at all is unreadable.
"""

from dataclasses import dataclass, field
from typing import Any

from hummingbird.adapters.models.anthropic.encode import WIRE
from hummingbird.adapters.models.anthropic.errors import error_inside
from hummingbird.adapters.models.calls import argument_object, argument_text, call_ids, legal_name
from hummingbird.adapters.models.reading import Used, count, names_error, text, used
from hummingbird.adapters.models.wire import Profile
from hummingbird.domain.errors import ReplyUnreadable
from hummingbird.domain.journal import Finish
from hummingbird.domain.messages import AssistantMessage, Echo, ToolCall
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
_THINKING = ("thinking", "redacted_thinking")


@dataclass(slots=True)
class _Read:
    """The blocks, sorted by what they are to us; `usable` is False once one of them is nothing we know."""

    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    usable: bool = True


def decode(answer: Any, request: ModelRequest, profile: Profile) -> ModelReply:
    if names_error(answer) or (isinstance(answer, dict) and answer.get("type") == "error"):
        raise error_inside(answer)
    if not isinstance(answer, dict):
        raise ReplyUnreadable("Anthropic's answer is not an object.")
    bill = _used(answer.get("usage"))
    content = answer.get("content")
    if not isinstance(content, list):
        return bill.unusable("Anthropic's answer has no content; it is not a message.")
    finish = _FINISHES.get(text(answer.get("stop_reason")), Finish.STOP)
    if finish is Finish.REFUSAL:
        # what was said before a classifier cut in is to be discarded, says the provider
        return bill.reply(AssistantMessage(), finish)
    read = _Read()
    for at, block in enumerate(content):
        _sort(at, block, read)
    if not read.usable:
        return bill.reply(AssistantMessage(*_words(read)), Finish.MALFORMED)
    return bill.reply(_message(list(content), read, request, profile, finish), finish)


def _sort(at: int, block: Any, read: _Read) -> None:
    match block:
        case {"type": "text", "text": str(said)}:
            read.texts.append(said)
        case {"type": "thinking"} if isinstance(block.get("thinking", ""), str | None):
            read.thoughts.append(text(block.get("thinking")))
        case {"type": "redacted_thinking"}:
            pass
        case {"type": "tool_use", "name": str()}:
            read.asked.append(at)
        case _:
            read.usable = False


def _words(read: _Read) -> tuple[str, str]:
    return text("\n\n".join(t for t in read.texts if t.strip())), text("\n\n".join(filter(None, read.thoughts)))


def _message(
    content: list[Any], read: _Read, request: ModelRequest, profile: Profile, finish: Finish
) -> AssistantMessage:
    ids = call_ids(request, [content[at].get("id") for at in read.asked])
    calls = [_call(content[at], call_id) for at, call_id in zip(read.asked, ids, strict=True)]
    for at, call in zip(read.asked, calls, strict=True):
        content[at] = _sendable(content[at], call)
    kept = _replayable(content)
    said, thought = _words(read)
    return AssistantMessage(
        said, thought, tuple(calls), Echo(WIRE, profile.model, kept) if kept else None, paused=finish is Finish.PAUSE
    )


def _call(block: dict[str, Any], call_id: str) -> ToolCall:
    given = block.get("input")
    return ToolCall(call_id, text(block["name"]), argument_text({} if given is None else given))


def _sendable(block: dict[str, Any], call: ToolCall) -> dict[str, Any]:
    """The call as it may be sent back: verbatim, but for an id, a name or an input that would be refused."""
    mended: dict[str, Any] = {"id": call.id, "name": legal_name(call.name)}
    if not isinstance(block.get("input"), dict):
        mended["input"] = {} if block.get("input") is None else argument_object(call.arguments)
    return block if all(block.get(key) == value for key, value in mended.items()) else {**block, **mended}


def _replayable(content: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What may be sent back. Text without a word in it is refused in a request, but thinking that follows it is
    signed over it. So white space stays where thinking follows, which is what the provider itself sent and asks to
    have back; elsewhere it goes. Text of no length at all cannot stay anywhere: where thinking follows it, and where
    thinking is without its signature, the message is told in our words instead, without its thinking."""
    if not all(map(_whole, content)):
        return []
    last = max((at for at, block in enumerate(content) if block["type"] in _THINKING), default=-1)
    kept = []
    for at, block in enumerate(content):
        if block["type"] == "text" and not block["text"].strip():
            if at < last and not block["text"]:
                return []
            if at > last:
                continue
        kept.append(block)
    return kept


def _whole(block: dict[str, Any]) -> bool:
    match block["type"]:
        case "thinking":
            return isinstance(block.get("thinking"), str) and isinstance(block.get("signature"), str)
        case "redacted_thinking":
            return isinstance(block.get("data"), str)
    return True


def _used(raw: Any) -> Used:
    """`input_tokens` is what neither was in the cache nor went there; `output_tokens` includes thinking."""
    counts = raw if isinstance(raw, dict) else {}
    usage = Usage(
        fresh=count(counts, "input_tokens"),
        cache_read=count(counts, "cache_read_input_tokens"),
        cache_write=count(counts, "cache_creation_input_tokens"),
        output=count(counts, "output_tokens"),
        reasoning=count(counts.get("output_tokens_details"), "thinking_tokens"),
    )
    return used(usage, raw, "input_tokens", "output_tokens")
