"""A Chat Completions answer as a reply. Read as plain JSON: half of the servers leave out what the other half needs.

`finish_reason` may be null or empty, usage and ids may be missing, arguments may be an object already. Total: an
answer with a message becomes a reply, whatever is in it. A part or a call that we don't know cannot be acted on, but
it was billed: such an answer is malformed, and its usage is kept. (Encoding raises instead: there nothing was spent
yet.) Only what is no answer at all is unreadable.
"""

from dataclasses import dataclass, field
from typing import Any

from hummingbird.adapters.models.calls import argument_text, derived_id
from hummingbird.adapters.models.openai_chat.encode import WIRE
from hummingbird.adapters.models.openai_errors import inside
from hummingbird.adapters.models.reading import inclusive, text, used
from hummingbird.adapters.models.wire import Profile
from hummingbird.domain.errors import ReplyUnreadable
from hummingbird.domain.journal import Finish
from hummingbird.domain.messages import AssistantMessage, Echo, ToolCall
from hummingbird.domain.text import shortened
from hummingbird.ports.model import ModelReply, ModelRequest

# Everything else, known or not, is a stop: what to do next shows in text and calls. `error` is OpenRouter's word for a
# provider that broke in the middle.
_FINISH = {
    "length": Finish.LENGTH,
    "max_tokens": Finish.LENGTH,
    "content_filter": Finish.REFUSAL,
    "error": Finish.MALFORMED,
}


@dataclass(slots=True)
class _Read:
    """`usable` is False once there is a part or a call that we don't know."""

    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    usable: bool = True


def decode(answer: Any, request: ModelRequest, profile: Profile, server: str) -> ModelReply:
    if error := inside(server, answer):
        raise error
    seen = shortened(str(answer), 120)
    if not isinstance(answer, dict):
        raise ReplyUnreadable(f"The model's answer has no choices in it; it begins with: {seen}")
    raw = answer.get("usage")
    bill = used(inclusive(raw, "prompt_tokens", "completion_tokens"), raw, "prompt_tokens", "completion_tokens")
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return bill.unusable(f"The model's answer has no choices in it; it begins with: {seen}")
    if error := inside(server, choices[0]):
        raise error
    said = choices[0].get("message")
    if not isinstance(said, dict):
        return bill.unusable(f"The answer of {server} has no message in its first choice.")
    read = _Read()
    _read_content(said.get("content"), read)
    _read_calls(said, request.call_id, read)
    if not read.usable:
        return bill.reply(AssistantMessage(*_words(said, read)), Finish.MALFORMED)
    return bill.reply(
        AssistantMessage(*_words(said, read), tuple(read.calls), _echo(said, profile)), _finish(choices[0])
    )


def _words(said: dict[str, Any], read: _Read) -> tuple[str, str]:
    reasoning = text(said.get("reasoning")) or text(said.get("reasoning_content")) or text("".join(read.thoughts))
    return text("".join(read.texts)) or text(said.get("refusal")), reasoning


def _read_content(content: Any, read: _Read) -> None:
    """Text and thinking. Most send a string or null, Mistral a list of parts."""
    if isinstance(content, str):
        read.texts.append(content)
    elif isinstance(content, list):
        for part in content:
            _read_part(part, read)
    elif content is not None:
        read.usable = False


def _read_part(part: Any, read: _Read) -> None:
    match part:
        case {"type": "text", "text": str(words)}:
            read.texts.append(words)
        case {"type": "thinking", "thinking": str() | list()}:
            read.thoughts.append(thought_in(part))
        case _:
            read.usable = False


def thought_in(part: dict[str, Any]) -> str:
    """A thinking part holds a string, or text parts of its own."""
    thinking = part.get("thinking")
    if not isinstance(thinking, list):
        return text(thinking)
    return "".join(text(inner.get("text")) for inner in thinking if isinstance(inner, dict))


def _read_calls(said: dict[str, Any], call_id: str, read: _Read) -> None:
    calls = said.get("tool_calls") or []
    if said.get("function_call") or not isinstance(calls, list):
        read.usable = False
        return
    for index, call in enumerate(calls):
        match call:
            case {"function": {"name": str(name), **function}} if name:
                # Never the server's ids: some give none, some the same one twice, some the same ones every turn.
                identity = derived_id(call_id, index)
                read.calls.append(ToolCall(identity, text(name), _arguments(function.get("arguments"))))
            case _:
                read.usable = False


def _arguments(arguments: Any) -> str:
    if isinstance(arguments, str):
        return text(arguments) if arguments.strip() else "{}"
    return argument_text({} if arguments is None else arguments)


def _echo(said: dict[str, Any], profile: Profile) -> Echo | None:
    kept = {key: said[key] for key in profile.echo_keys if said.get(key)}
    return Echo(WIRE, profile.model, kept) if kept else None


def _finish(choice: dict[str, Any]) -> Finish:
    if text(choice["message"].get("refusal")):
        return Finish.REFUSAL
    return _FINISH.get(text(choice.get("finish_reason")), Finish.STOP)
