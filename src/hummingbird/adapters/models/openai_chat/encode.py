"""A request as a Chat Completions body.

Servers that imitate this API refuse what they don't know, so only the keys that all of them take are sent. Many
chat templates take one system message, at the start: notices are user text that says what it is.
"""

import re
from collections.abc import Iterator, Sequence

import msgspec

from hummingbird.adapters.models.calls import argument_object, derived_id, legal_name
from hummingbird.adapters.models.openai_rules import CACHE_KEY_CHARS, check_end, proper
from hummingbird.adapters.models.sealing import grown
from hummingbird.adapters.models.wire import Profile
from hummingbird.domain.messages import AssistantMessage, Message, Notice, ToolCall, ToolMessage, UserMessage
from hummingbird.domain.text import plain
from hummingbird.domain.tools import ToolDefinition
from hummingbird.ports.model import ModelRequest

WIRE = "openai_chat"
REASONING = "reasoning_content"
_ID = re.compile(r"[0-9A-Za-z]{9}")
_json = msgspec.json.Encoder()


def encode(request: ModelRequest, profile: Profile, *, stream: bool) -> bytes:
    def render(messages: Sequence[Message], _: Message | None) -> bytes:
        return b",".join(_messages(messages, profile))

    talk = grown(request, "the model", render)
    check_end(request)
    parts: list[bytes | bytearray] = [
        b'{"model":',
        _json.encode(profile.model),
        b',"messages":[',
        _system(request),
        talk.sealed,
        render(talk.rest, talk.before),
        b"]",
        _tools(request),
        b',"%s":%d' % (profile.max_tokens_key.encode(), request.max_output_tokens),
    ]
    if profile.effort is not None:
        parts += [b',"reasoning_effort":', _json.encode(profile.effort)]
    if profile.cache_key:
        parts += [b',"prompt_cache_key":', _json.encode(request.session_id[:CACHE_KEY_CHARS])]
    if stream:
        parts.append(b',"stream":true')
        if profile.include_usage:
            parts.append(b',"stream_options":{"include_usage":true}')
    parts.append(b"}")
    return b"".join(parts)


def _system(request: ModelRequest) -> bytes:
    head = request.encoded.head
    if request.system and "system" not in head:
        head["system"] = _json.encode({"role": "system", "content": plain(request.system)}) + b","
    return head["system"] if request.system else b""


def _messages(messages: Sequence[Message], profile: Profile) -> Iterator[bytes]:
    said: list[bytes] = []
    for message in messages:
        piece = _piece(message, profile)
        if type(message) is UserMessage or type(message) is Notice:
            said.append(piece)
            continue
        if said:
            yield _user(said)
            said = []
        yield piece
    if said:
        yield _user(said)


def _user(said: list[bytes]) -> bytes:
    """Neighbours are one message: templates that insist on turns taking turns refuse two."""
    return b'{"role":"user","content":"' + b"\\n\\n".join(said) + b'"}'


def _piece(message: Message, profile: Profile) -> bytes:
    match message:
        case UserMessage(text=text):
            return _json.encode(plain(text))[1:-1]
        case Notice(text=text):
            return _json.encode(f"<notice>\n{plain(text)}\n</notice>")[1:-1]
        case ToolMessage(call_id=call_id, text=text):
            return _json.encode({"role": "tool", "tool_call_id": fitting(call_id), "content": plain(text)})
        case AssistantMessage():
            return _json.encode(_assistant(message, profile))


def _assistant(message: AssistantMessage, profile: Profile) -> dict[str, object]:
    chat: dict[str, object] = {"role": "assistant", "content": plain(message.text)}
    if message.calls:
        chat["content"] = plain(message.text) or None
        chat["tool_calls"] = [_call(call) for call in message.calls]
    echo = message.echo
    if echo is not None and echo.wire == WIRE and echo.model == profile.model:
        chat.update(echo.content)
    if message.calls and REASONING in profile.echo_keys and not isinstance(chat.get(REASONING), str):
        # DeepSeek and its like refuse a call without it while they think, also where there was no thought, or where it
        # was another model's.
        chat[REASONING] = plain(message.reasoning)
    return chat


def _call(call: ToolCall) -> dict[str, object]:
    # Arguments that are no JSON object don't go back as the model wrote them: vLLM and llama.cpp parse those of old
    # calls and answer 400 to this and every later request of the conversation (vllm#43995, vllm#48922).
    arguments = _json.encode(argument_object(call.arguments)).decode()
    function = {"name": legal_name(call.name), "arguments": arguments}
    return {"id": fitting(call.id), "type": "function", "function": function}


def fitting(call_id: str) -> str:
    """The id itself if it has the one shape that every server takes; ids of other wires get it here."""
    return call_id if _ID.fullmatch(call_id) else derived_id(call_id, 0)


def _tools(request: ModelRequest) -> bytes:
    """The definitions stay when tools are disabled: the prefix and its cache hang on them (L7)."""
    if not request.tools:
        return b""
    head = request.encoded.head
    if "tools" not in head:
        head["tools"] = b',"tools":' + _json.encode([_tool(tool) for tool in request.tools])
    return head["tools"] + (b',"tool_choice":"none"' if request.disable_tools else b"")


def _tool(tool: ToolDefinition) -> dict[str, object]:
    function = {"name": proper(tool.name), "description": plain(tool.description), "parameters": dict(tool.schema)}
    return {"type": "function", "function": function}
