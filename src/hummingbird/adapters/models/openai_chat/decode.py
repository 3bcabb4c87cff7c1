"""A Chat Completions answer as a reply. Read as plain JSON: half of the servers leave out what the other half needs.

`finish_reason` may be null or empty, usage and ids may be missing, arguments may be an object already.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from hummingbird.adapters.models.calls import derived_id
from hummingbird.adapters.models.openai_chat.encode import WIRE
from hummingbird.adapters.models.openai_errors import inside
from hummingbird.adapters.models.wire import Profile
from hummingbird.domain.errors import ReplyUnreadable
from hummingbird.domain.journal import Finish
from hummingbird.domain.messages import AssistantMessage, Echo, ToolCall
from hummingbird.domain.text import shortened
from hummingbird.domain.usage import Usage
from hummingbird.ports.model import ModelReply, ModelRequest

# Everything else, known or not, is a stop: what to do next shows in text and calls.
_FINISH = {"length": Finish.LENGTH, "max_tokens": Finish.LENGTH, "content_filter": Finish.REFUSAL}


def decode(answer: Any, request: ModelRequest, profile: Profile, server: str) -> ModelReply:
    if error := inside(server, answer):
        raise error
    choice = _choice(answer)
    if error := inside(server, choice):
        raise error
    said = choice.get("message")
    if not isinstance(said, Mapping):
        raise ReplyUnreadable(f"The answer of {server} has no message in its first choice.")
    raw = answer.get("usage")
    raw_usage = dict(raw) if isinstance(raw, Mapping) else {}
    message = _message(said, request, profile)
    return ModelReply(message, _finish(choice, said), usage_of(raw_usage), raw_usage)


def _choice(answer: Any) -> Mapping[str, Any]:
    choices = answer.get("choices") if isinstance(answer, Mapping) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        seen = shortened(str(answer), 120)
        raise ReplyUnreadable(f"The model's answer has no choices in it; it begins with: {seen}")
    return choices[0]


def _message(said: Mapping[str, Any], request: ModelRequest, profile: Profile) -> AssistantMessage:
    text, thought = _content(said.get("content"))
    reasoning = said.get("reasoning") or said.get("reasoning_content") or thought
    return AssistantMessage(
        text=text or _text(said.get("refusal")),
        reasoning=_text(reasoning),
        calls=_calls(said, request.call_id),
        echo=_echo(said, profile),
    )


def _content(content: Any) -> tuple[str, str]:
    """Text and thinking. Most send a string or null, Mistral a list of parts."""
    if content is None or isinstance(content, str):
        return content or "", ""
    if not isinstance(content, list):
        raise ReplyUnreadable(f"The model's answer has content of an unknown kind: {type(content).__name__}.")
    texts, thoughts = [], []
    for part in content:
        match part:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case {"type": "thinking", "thinking": thinking}:
                thoughts.append(thinking if isinstance(thinking, str) else _content(thinking)[0])
            case _:
                kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
                raise ReplyUnreadable(f"The model's answer has a content part of an unknown type: {kind!r}.")
    return "".join(texts), "".join(thoughts)


def _calls(said: Mapping[str, Any], call_id: str) -> tuple[ToolCall, ...]:
    if said.get("function_call"):
        raise ReplyUnreadable("The model's answer has a call of an unknown type: 'function_call'.")
    calls = said.get("tool_calls") or ()
    if not isinstance(calls, Iterable) or isinstance(calls, str | Mapping):
        raise ReplyUnreadable("The tool calls of the model's answer are not a list.")
    # Never the server's ids: some give none, some the same one twice, some the same ones every turn.
    return tuple(_call(call, derived_id(call_id, index)) for index, call in enumerate(calls))


def _call(call: Any, identity: str) -> ToolCall:
    match call:
        case {"function": {"name": str(name), **function}}:
            return ToolCall(identity, name, _arguments(function.get("arguments")))
    kind = call.get("type") if isinstance(call, Mapping) else type(call).__name__
    raise ReplyUnreadable(f"The model's answer has a call of an unknown type: {kind!r}.")


def _arguments(arguments: Any) -> str:
    if isinstance(arguments, str):
        return arguments if arguments.strip() else "{}"
    return "{}" if arguments is None else msgspec.json.encode(arguments).decode()


def _echo(said: Mapping[str, Any], profile: Profile) -> Echo | None:
    kept = {key: said[key] for key in profile.echo_keys if said.get(key)}
    return Echo(WIRE, profile.model, kept) if kept else None


def _finish(choice: Mapping[str, Any], said: Mapping[str, Any]) -> Finish:
    if said.get("refusal"):
        return Finish.REFUSAL
    return _FINISH.get(_text(choice.get("finish_reason")), Finish.STOP)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def usage_of(raw: Mapping[str, Any]) -> Usage:
    """`prompt_tokens` includes what was read from and written to the cache, `completion_tokens` the reasoning."""
    prompt, details = _count(raw, "prompt_tokens"), raw.get("prompt_tokens_details")
    # DeepSeek's own name for it, from before it had the details
    read = _count(details, "cached_tokens") or _count(raw, "prompt_cache_hit_tokens")
    write = _count(details, "cache_write_tokens")
    return Usage(
        fresh=max(0, prompt - read - write),
        cache_read=read,
        cache_write=write,
        output=_count(raw, "completion_tokens"),
        reasoning=_count(raw.get("completion_tokens_details"), "reasoning_tokens"),
    )


def _count(counts: Any, key: str) -> int:
    value = counts.get(key) if isinstance(counts, Mapping) else None
    return int(value) if isinstance(value, int | float) and value > 0 else 0
