"""Canonical messages as the body of a Messages request (M3).

The conversation becomes one flat list of blocks, each made once and kept as bytes; roles, brackets and cache
breakpoints are put around them at the end, because those depend on where a block stands. Nothing of the model's
name or the API version is here: that is the endpoint's.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from hummingbird.adapters.models.calls import argument_object, legal_id, legal_name
from hummingbird.adapters.models.fragments import Fragment, turns
from hummingbird.adapters.models.sealing import grown
from hummingbird.adapters.models.wire import Profile
from hummingbird.domain.errors import InvalidRequest
from hummingbird.domain.messages import AssistantMessage, Message, Notice, ToolMessage, UserMessage
from hummingbird.domain.text import plain
from hummingbird.domain.tools import ToolDefinition
from hummingbird.ports.model import ModelRequest

WIRE = "anthropic"
_CACHED = b',"cache_control":{"type":"ephemeral"}}'
_json = msgspec.json.encode


def encode(request: ModelRequest, profile: Profile, *, stream: bool) -> bytes:
    def render(messages: Sequence[Message], before: Message | None) -> bytes:
        return turns(blocks_of(messages, profile, before), "content")

    talk = grown(request, "Anthropic", render)
    members = [b'"max_tokens":%d' % request.max_output_tokens]
    if stream:
        members.append(b'"stream":true')
    if profile.summarised_thinking:
        members.append(b'"thinking":{"type":"adaptive","display":"summarized"}')
    if profile.effort:
        members.append(b'"output_config":%s' % _json({"effort": profile.effort}))
    members.extend(_tools(request))
    if request.system.strip():
        members.append(b'"system":[%s]' % _marked(_system(request)))
    blocks = list(blocks_of(talk.rest, profile, talk.before))
    _mark(blocks, request.cached - talk.start)
    return b"".join((b"{", b",".join(members), b',"messages":[', talk.sealed, turns(blocks, "content"), b"]}"))


def blocks_of(messages: Sequence[Message], profile: Profile, before: Message | None = None) -> Iterator[Fragment]:
    """The conversation, block by block: what is sent later begins with what was sent before."""
    entry = False
    for index, message in enumerate(messages):
        if isinstance(message, Notice):
            previous = messages[index - 1] if index else before
            if not isinstance(previous, Notice):
                entry = profile.system_entries and _may_be_entry(messages, index, previous)
                if entry and isinstance(previous, ToolMessage):
                    # Without this Haiku 5.5 reads an entry after tool results as part of them in most cases; one
                    # form for all models costs a few tokens and no flag.
                    yield Fragment("user", _text("[The tool results end here.]"), index)
            yield _notice(message, index, entry=entry)
            continue
        yield Fragment("assistant" if isinstance(message, AssistantMessage) else "user", _body(message, profile), index)


def _may_be_entry(messages: Sequence[Message], index: int, previous: Message | None) -> bool:
    """A system entry stands right after a user message, and last or before an assistant message. A notice that a
    user message follows has no answer that was kept, so nothing signed depends on the form it had while it was last.
    """
    if isinstance(previous, AssistantMessage):
        return False
    end = next((at for at in range(index, len(messages)) if not isinstance(messages[at], Notice)), None)
    return end is None or isinstance(messages[end], AssistantMessage)


def _notice(notice: Notice, index: int, *, entry: bool) -> Fragment:
    if entry:
        return Fragment("system", _text(notice.text), index)
    return Fragment("user", _text(f"<notice>\n{notice.text}\n</notice>"), index)


def _body(message: UserMessage | ToolMessage | AssistantMessage, profile: Profile) -> bytes:
    match message:
        case UserMessage(text=text):
            return _text(text)
        case ToolMessage():
            return _result(message)
        case AssistantMessage():
            return _json(_replayed(message, profile) or _converted(message))[1:-1]


def _text(text: str) -> bytes:
    return _json({"type": "text", "text": plain(text) if text.strip() else "(empty message)"})


def _result(message: ToolMessage) -> bytes:
    block: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": legal_id(message.call_id),
        "content": plain(message.text) if message.text.strip() else "(no output)",
    }
    if message.is_error:
        block["is_error"] = True
    return _json(block)


def _replayed(message: AssistantMessage, profile: Profile) -> Any:
    """What the model itself sent, thinking and signatures included, if it was this model."""
    echo = message.echo
    return echo.content if echo is not None and echo.wire == WIRE and echo.model == profile.model else None


def _converted(message: AssistantMessage) -> list[Any]:
    blocks: list[Any] = [{"type": "text", "text": plain(message.text)}] if message.text.strip() else []
    blocks.extend(
        {
            "type": "tool_use",
            "id": legal_id(call.id),
            "name": legal_name(call.name),
            "input": argument_object(call.arguments),
        }
        for call in message.calls
    )
    return blocks or [{"type": "text", "text": "(no text)"}]


def _system(request: ModelRequest) -> bytes:
    head = request.encoded.head
    if "system" not in head:
        head["system"] = _text(request.system)
    return head["system"]


def _tools(request: ModelRequest) -> Iterator[bytes]:
    if not request.tools:
        yield from _remembered(request)
        return
    head = request.encoded.head
    if "tools" not in head:
        head["tools"] = b'"tools":%s' % _json([_tool(tool) for tool in request.tools])
    yield head["tools"]
    if request.disable_tools:
        yield b'"tool_choice":{"type":"none"}'


def _remembered(request: ModelRequest) -> Iterator[bytes]:
    """A history with calls needs tools to be defined: without them the answer is a 400 or empty."""
    assistants = (m for m in request.messages if isinstance(m, AssistantMessage))
    names = dict.fromkeys(legal_name(call.name) for m in assistants for call in m.calls)
    if names:
        gone = [{"name": n, "description": "No longer available.", "input_schema": {"type": "object"}} for n in names]
        yield b'"tools":%s' % _json(gone)
        yield b'"tool_choice":{"type":"none"}'


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    if legal_name(tool.name) != tool.name:
        raise InvalidRequest(f"The tool name {tool.name!r} is not one that Anthropic takes: rename the tool.")
    return {
        "name": tool.name,
        "description": plain(tool.description),
        "input_schema": {"type": "object", **tool.schema},
    }


def _mark(blocks: list[Fragment], cached: int) -> None:
    """B2 on the last block, B1 where the last answered call had its B2. Never inside an assistant message: thinking
    takes no breakpoint, and a call ends with one only after a pause."""
    places = [at for at in range(len(blocks) - 1, -1, -1) if blocks[at].role != "assistant"]
    answered = [at for at in places if blocks[at].message < cached]
    for at in {places[0], *answered[:1]}:
        blocks[at] = blocks[at]._replace(body=_marked(blocks[at].body))


def _marked(block: bytes) -> bytes:
    return block[:-1] + _CACHED
