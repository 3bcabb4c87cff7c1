"""A request as a Responses body: instructions, input items, tools; `store` off, reasoning encrypted.

Prompt caching stays in its implicit mode, also on gpt-5.6 and later, which take explicit breakpoints: the implicit
one sits at the end of the input, and matching has no limit on how far it looks back, so each turn reads what the
one before it wrote. Breakpoints of ours would write the same prefix once more, at 1.25 times the input price.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from hummingbird.adapters.models.calls import legal_id, legal_name
from hummingbird.adapters.models.openai_rules import CACHE_KEY_CHARS, check_end, proper
from hummingbird.adapters.models.sealing import grown
from hummingbird.adapters.models.wire import Profile
from hummingbird.domain.messages import AssistantMessage, Message, Notice, ToolMessage, UserMessage
from hummingbird.domain.text import plain
from hummingbird.domain.tools import ToolDefinition
from hummingbird.ports.model import ModelRequest

WIRE = "openai_responses"
_json = msgspec.json.Encoder()


def encode(request: ModelRequest, profile: Profile, *, stream: bool) -> bytes:
    def render(messages: Sequence[Message], _: Message | None) -> bytes:
        return b",".join(_items(messages, profile))

    talk = grown(request, "the model", render)
    check_end(request)
    parts: list[bytes | bytearray] = [
        b'{"model":',
        _json.encode(profile.model),
        _instructions(request),
        b',"input":[',
        talk.sealed,
        render(talk.rest, talk.before),
        b"]",
        _tools(request),
        b',"max_output_tokens":%d' % request.max_output_tokens,
        b',"store":false',
        b',"include":["reasoning.encrypted_content"]' if profile.encrypted_reasoning else b"",
        _reasoning(profile),
    ]
    if profile.cache_key:
        parts += [b',"prompt_cache_key":', _json.encode(request.session_id[:CACHE_KEY_CHARS])]
    if stream:
        parts.append(b',"stream":true')
    parts.append(b"}")
    return b"".join(parts)


def _instructions(request: ModelRequest) -> bytes:
    if not request.system:
        return b""
    head = request.encoded.head
    if "system" not in head:
        head["system"] = b',"instructions":' + _json.encode(plain(request.system))
    return head["system"]


def _reasoning(profile: Profile) -> bytes:
    wanted = {"summary": "auto"} if profile.summarised_thinking else {}
    if profile.effort is not None:
        wanted["effort"] = profile.effort
    return b',"reasoning":' + _json.encode(wanted) if wanted else b""


def _items(messages: Sequence[Message], profile: Profile) -> Iterator[bytes]:
    """One piece a message; a piece may be several items, or none."""
    for message in messages:
        if piece := _json.encode(_input(message, profile))[1:-1]:
            yield piece


def _input(message: Message, profile: Profile) -> list[Any]:
    match message:
        case UserMessage(text=text):
            return [{"role": "user", "content": plain(text)}]
        case Notice(text=text):
            return [{"role": "developer", "content": plain(text)}]
        case ToolMessage(call_id=call_id, text=text):
            return [{"type": "function_call_output", "call_id": legal_id(call_id), "output": plain(text)}]
        case AssistantMessage(echo=echo):
            if echo is not None and echo.wire == WIRE and echo.model == profile.model:
                return list(echo.content)
            return _converted(message)


def _converted(message: AssistantMessage) -> list[Any]:
    """What another provider's model said, or ours in another epoch: without reasoning and ids of OpenAI's."""
    said: list[Any] = [{"role": "assistant", "content": plain(message.text)}] if message.text else []
    return said + [
        {
            "type": "function_call",
            "call_id": legal_id(call.id),
            "name": legal_name(call.name),
            "arguments": plain(call.arguments),
        }
        for call in message.calls
    ]


def _tools(request: ModelRequest) -> bytes:
    """The definitions stay when tools are disabled: the prefix and its cache hang on them (L7)."""
    if not request.tools:
        return b""
    head = request.encoded.head
    if "tools" not in head:
        head["tools"] = b',"tools":' + _json.encode([_tool(tool) for tool in request.tools])
    return head["tools"] + (b',"tool_choice":"none"' if request.disable_tools else b"")


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    # Not strict: that takes only a part of JSON Schema, and ours are checked when the call comes (L10).
    return {
        "type": "function",
        "name": proper(tool.name),
        "description": plain(tool.description),
        "parameters": dict(tool.schema),
        "strict": False,
    }
