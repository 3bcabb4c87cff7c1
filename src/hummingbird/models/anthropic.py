"""Encode requests for Anthropic's Messages API and decode its answers, streams and errors.

The format is the same on Anthropic's own host and on Vertex. URLs, credentials, the model's name and the API version
belong to the endpoints.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from hummingbird.core.errors import (
    ContextOverflow,
    CredentialRefused,
    CreditExhausted,
    HummingbirdError,
    InvalidRequest,
    ProviderReplyUnreadable,
    ProviderRequestRefused,
    ProviderUnavailable,
    ThinkingRefused,
)
from hummingbird.core.events import CallDelta, Delta, ReasoningDelta, TextDelta
from hummingbird.core.journal import FinishReason
from hummingbird.core.json_codec import decode_json_object
from hummingbird.core.messages import (
    AssistantMessage,
    ImagePart,
    Message,
    Notice,
    ProviderEcho,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from hummingbird.core.protocols.model import ModelReply, ModelRequest
from hummingbird.core.text import replace_surrogates
from hummingbird.core.tool_spec import ToolDefinition
from hummingbird.core.usage import TokenUsage
from hummingbird.models.response_json import (
    ErrorDetails,
    ReplyUsage,
    has_error,
    parse_error_details,
    reply_usage,
    text_or_empty,
    token_count,
)
from hummingbird.models.wire_format import (
    MALFORMED,
    ModelProfile,
    TurnFragment,
    WireFormat,
    arguments_to_object,
    arguments_to_text,
    assign_call_ids,
    extend_prefix,
    join_turns,
    split_images,
    to_legal_id,
    to_legal_name,
)

# Errors

# The status of an error in an answer with status 200, by its type; an unknown type counts as 500 and is retried.
_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
    # Vertex may also answer itself, with Google's status words.
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "RESOURCE_EXHAUSTED": 429,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}
_PASSING = frozenset({408, 409, 429})


def classify_error(status: int, answer: Any) -> HummingbirdError:
    """Return our error for a status and a body; where the status is only 400, the message's words decide."""
    said = parse_error_details(answer)
    what = f"({status} {said.kind})" if said.kind else f"({status})"
    if _is_out_of_credit(status, said):
        return CreditExhausted(
            f"The account for Claude has no credit left {what}: top it up or choose another model.{said.quoted}"
        )
    if status in {401, 403}:
        return CredentialRefused(
            f"Anthropic refused the credential {what}: check the key, or for Vertex the login and its rights."
            f"{said.quoted}"
        )
    if status in _PASSING or status >= 500:
        return ProviderUnavailable(
            f"Anthropic cannot answer now {what}: try again later.{said.quoted}", said.retry_after_s
        )
    if status == 413 or _is_overflow(said):
        return ContextOverflow(f"The conversation is too long for this Claude model {what}.{said.quoted}")
    if _rejects_thinking(said):
        return ThinkingRefused(
            f"Anthropic says that thinking was replayed where it does not belong {what}.{said.quoted}"
        )
    return ProviderRequestRefused(f"Anthropic refused the request {what}: it would fail again.{said.quoted}")


def error_from_body(answer: Any) -> HummingbirdError:
    """Return the error that came with status 200, in a stream or from a gateway."""
    said = parse_error_details(answer)
    return classify_error(said.code or _STATUSES.get(said.kind, 500), answer)


def _is_out_of_credit(status: int, said: ErrorDetails) -> bool:
    return status == 402 or said.mentions("credit balance", "too low") or said.reason == "BILLING_DISABLED"


def _is_overflow(said: ErrorDetails) -> bool:
    return said.mentions("prompt is too long") or said.mentions("exceed context limit")


def _rejects_thinking(said: ErrorDetails) -> bool:
    return (
        said.mentions("bound to a different conversation")
        or said.mentions("signature", "thinking")
        or said.mentions("thinking", "cannot be modified")
        # We never send blank text of our own. This is white space that the model wrote; we replay it only because the
        # thinking's signature covers it. Without thinking it is not replayed.
        or said.mentions("text content blocks must")
    )


# Requests: the conversation becomes a flat list of blocks, each encoded to bytes once. Roles, brackets and cache
# breakpoints are added at the end, because they depend on a block's position.

WIRE = "anthropic"
_CACHED = b',"cache_control":{"type":"ephemeral"}}'
_json = msgspec.json.encode


def encode_request(request: ModelRequest, profile: ModelProfile, *, stream: bool) -> bytes:
    """Encode a request's body, without the model and the API version."""

    def render(messages: Sequence[Message], before: Message | None) -> bytes:
        return join_turns(encode_blocks(messages, profile, before), "content")

    talk = extend_prefix(request, "Anthropic", render)
    members = [b'"max_tokens":%d' % request.max_output_tokens]
    if stream:
        members.append(b'"stream":true')
    if profile.summarised_thinking:
        members.append(b'"thinking":{"type":"adaptive","display":"summarized"}')
    if profile.effort:
        members.append(b'"output_config":%s' % _json({"effort": profile.effort}))
    if profile.temperature is not None:
        members.append(b'"temperature":%s' % _json(profile.temperature))
    members.extend(_encode_tools(request))
    if request.system.strip():
        members.append(b'"system":[%s]' % _with_breakpoint(_encode_system(request)))
    blocks = list(encode_blocks(talk.rest, profile, talk.before))
    _add_breakpoints(blocks, request.cached_messages - talk.start)
    return b"".join((b"{", b",".join(members), b',"messages":[', talk.prefix, join_turns(blocks, "content"), b"]}"))


def encode_blocks(
    messages: Sequence[Message], profile: ModelProfile, before: Message | None = None
) -> Iterator[TurnFragment]:
    """Yield the conversation block by block. Later requests must begin with the same blocks, to hit the cache."""
    entry = False
    for index, message in enumerate(messages):
        if isinstance(message, Notice):
            previous = messages[index - 1] if index else before
            if not isinstance(previous, Notice):
                entry = profile.system_entries and _may_be_system_entry(messages, index, previous)
                if entry and isinstance(previous, ToolMessage):
                    # Without this text, Haiku 5.5 mostly reads a system entry after tool results as part of them.
                    # Sending it to all models costs a few tokens and saves a flag.
                    yield TurnFragment("user", _encode_text("[The tool results end here.]"), index)
            yield _encode_notice(message, index, entry=entry)
            continue
        yield TurnFragment(
            "assistant" if isinstance(message, AssistantMessage) else "user", _encode_message(message, profile), index
        )


def _may_be_system_entry(messages: Sequence[Message], index: int, previous: Message | None) -> bool:
    """Tell whether a notice can be sent as a system entry.

    The API allows one only after a user message, and only as the last message or before an assistant message. A notice
    may change its form when a user message follows it: no answer to it was kept, so no signature covers it.
    """
    if isinstance(previous, AssistantMessage):
        return False
    end = next((at for at in range(index, len(messages)) if not isinstance(messages[at], Notice)), None)
    return end is None or isinstance(messages[end], AssistantMessage)


def _encode_notice(notice: Notice, index: int, *, entry: bool) -> TurnFragment:
    if entry:
        return TurnFragment("system", _encode_text(notice.text), index)
    return TurnFragment("user", _encode_text(f"<notice>\n{notice.text}\n</notice>"), index)


def _encode_message(message: UserMessage | ToolMessage | AssistantMessage, profile: ModelProfile) -> bytes:
    match message:
        case UserMessage():
            images, text = split_images(message, profile)
            return b",".join([*map(_encode_image, images), _encode_text(text)])
        case ToolMessage():
            return _encode_tool_result(message)
        case AssistantMessage():
            return _json(_echo_content(message, profile) or _convert_message(message))[1:-1]


def _encode_text(text: str) -> bytes:
    return _json({"type": "text", "text": replace_surrogates(text) if text.strip() else "(empty message)"})


def _encode_image(image: ImagePart) -> bytes:
    source = {"type": "base64", "media_type": image.media_type, "data": image.data}
    return _json({"type": "image", "source": source})


def _encode_tool_result(message: ToolMessage) -> bytes:
    block: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": to_legal_id(message.call_id),
        "content": replace_surrogates(message.text) if message.text.strip() else "(no output)",
    }
    if message.is_error:
        block["is_error"] = True
    return _json(block)


def _echo_content(message: AssistantMessage, profile: ModelProfile) -> Any:
    """Return the model's own blocks, with thinking and signatures; None if another model wrote the message."""
    echo = message.echo
    return echo.content if echo is not None and echo.wire == WIRE and echo.model == profile.model else None


def _convert_message(message: AssistantMessage) -> list[Any]:
    blocks: list[Any] = [{"type": "text", "text": replace_surrogates(message.text)}] if message.text.strip() else []
    blocks.extend(
        {
            "type": "tool_use",
            "id": to_legal_id(call.id),
            "name": to_legal_name(call.name),
            "input": arguments_to_object(call.arguments),
        }
        for call in message.calls
    )
    return blocks or [{"type": "text", "text": "(no text)"}]


def _encode_system(request: ModelRequest) -> bytes:
    head = request.encoded.head
    if "system" not in head:
        head["system"] = _encode_text(request.system)
    return head["system"]


def _encode_tools(request: ModelRequest) -> Iterator[bytes]:
    if not request.tools:
        yield from _encode_past_tools(request)
        return
    head = request.encoded.head
    if "tools" not in head:
        head["tools"] = b'"tools":%s' % _json([_tool_definition(tool) for tool in request.tools])
    yield head["tools"]
    if request.disable_tools:
        yield b'"tool_choice":{"type":"none"}'


def _encode_past_tools(request: ModelRequest) -> Iterator[bytes]:
    """Define the tools of earlier calls if the request has none: without them the answer is a 400 or empty."""
    assistants = (m for m in request.messages if isinstance(m, AssistantMessage))
    names = dict.fromkeys(to_legal_name(call.name) for m in assistants for call in m.calls)
    if names:
        gone = [{"name": n, "description": "No longer available.", "input_schema": {"type": "object"}} for n in names]
        yield b'"tools":%s' % _json(gone)
        yield b'"tool_choice":{"type":"none"}'


def _tool_definition(tool: ToolDefinition) -> dict[str, Any]:
    if to_legal_name(tool.name) != tool.name:
        raise InvalidRequest(f"The tool name {tool.name!r} is not one that Anthropic takes: rename the tool.")
    return {
        "name": tool.name,
        "description": replace_surrogates(tool.description),
        "input_schema": {"type": "object", **tool.schema},
    }


def _add_breakpoints(blocks: list[TurnFragment], cached: int) -> None:
    """Set a cache breakpoint on the last block, and one where the last answered call had its last breakpoint.

    Assistant messages get none: thinking blocks allow no breakpoint, and a request ends with an assistant message only
    after a pause.
    """
    places = [at for at in range(len(blocks) - 1, -1, -1) if blocks[at].role != "assistant"]
    answered = [at for at in places if blocks[at].message < cached]
    for at in {places[0], *answered[:1]}:
        blocks[at] = blocks[at]._replace(body=_with_breakpoint(blocks[at].body))


def _with_breakpoint(block: bytes) -> bytes:
    return block[:-1] + _CACHED


# Answers

# Other stop reasons (end_turn, tool_use, stop_sequence, future ones) count as a normal stop.
_FINISHES = {
    "max_tokens": FinishReason.LENGTH,
    "pause_turn": FinishReason.PAUSE,
    "refusal": FinishReason.REFUSAL,
    "model_context_window_exceeded": FinishReason.WINDOW_FULL,
}
_THINKING = ("thinking", "redacted_thinking")


@dataclass(slots=True)
class _AnthropicBlocks:
    """The blocks of an answer, sorted by type. `usable` is False if there is a block of an unknown type."""

    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    call_indexes: list[int] = field(default_factory=list)
    usable: bool = True


def decode_reply(answer: Any, request: ModelRequest, profile: ModelProfile) -> ModelReply:
    """Turn an answer into a reply: text, readable thinking, calls, and the echo to replay.

    An answer with an unknown block cannot be replayed or acted on, but it was billed. It becomes a malformed reply that
    keeps the usage. Raises ProviderReplyUnreadable if the answer is not a message, or the error that it reports.
    """
    if has_error(answer) or (isinstance(answer, dict) and answer.get("type") == "error"):
        raise error_from_body(answer)
    if not isinstance(answer, dict):
        raise ProviderReplyUnreadable("Anthropic's answer is not an object.")
    bill = _read_usage(answer.get("usage"))
    content = answer.get("content")
    if not isinstance(content, list):
        return bill.unusable_reply("Anthropic's answer has no content; it is not a message.")
    finish = _FINISHES.get(text_or_empty(answer.get("stop_reason")), FinishReason.STOP)
    if finish is FinishReason.REFUSAL:
        # Anthropic's documentation says to discard the text before a classifier stopped the answer
        return bill.to_reply(AssistantMessage(), finish)
    read = _AnthropicBlocks()
    for at, block in enumerate(content):
        _sort_block(at, block, read)
    if not read.usable:
        return bill.to_reply(AssistantMessage(*_join_texts(read)), FinishReason.MALFORMED)
    return bill.to_reply(_build_message(list(content), read, request, profile, finish), finish)


def _sort_block(at: int, block: Any, read: _AnthropicBlocks) -> None:
    match block:
        case {"type": "text", "text": str(said)}:
            read.texts.append(said)
        case {"type": "thinking"} if isinstance(block.get("thinking", ""), str | None):
            read.thoughts.append(text_or_empty(block.get("thinking")))
        case {"type": "redacted_thinking"}:
            pass
        case {"type": "tool_use", "name": str()}:
            read.call_indexes.append(at)
        case _:
            read.usable = False


def _join_texts(read: _AnthropicBlocks) -> tuple[str, str]:
    return text_or_empty("\n\n".join(t for t in read.texts if t.strip())), text_or_empty(
        "\n\n".join(filter(None, read.thoughts))
    )


def _build_message(
    content: list[Any], read: _AnthropicBlocks, request: ModelRequest, profile: ModelProfile, finish: FinishReason
) -> AssistantMessage:
    ids = assign_call_ids(request, [content[at].get("id") for at in read.call_indexes])
    calls = [_tool_call(content[at], call_id) for at, call_id in zip(read.call_indexes, ids, strict=True)]
    for at, call in zip(read.call_indexes, calls, strict=True):
        content[at] = _repair_call(content[at], call)
    kept = _replayable_blocks(content)
    said, thought = _join_texts(read)
    return AssistantMessage(
        said,
        thought,
        tuple(calls),
        ProviderEcho(WIRE, profile.model, kept) if kept else None,
        paused=finish is FinishReason.PAUSE,
    )


def _tool_call(block: dict[str, Any], call_id: str) -> ToolCall:
    given = block.get("input")
    return ToolCall(call_id, text_or_empty(block["name"]), arguments_to_text({} if given is None else given))


def _repair_call(block: dict[str, Any], call: ToolCall) -> dict[str, Any]:
    """Return the call unchanged, except for an id, a name or an input that the API would refuse in a request."""
    repaired: dict[str, Any] = {"id": call.id, "name": to_legal_name(call.name)}
    if not isinstance(block.get("input"), dict):
        repaired["input"] = {} if block.get("input") is None else arguments_to_object(call.arguments)
    return block if all(block.get(key) == value for key, value in repaired.items()) else {**block, **repaired}


def _replayable_blocks(content: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the blocks that can be sent back; empty if the message must be rebuilt without its thinking.

    The API refuses blank text in a request, but the signature of thinking covers the text before it. So white space
    stays where thinking follows, as the API itself sent it, and is removed elsewhere. Empty text can stay nowhere. If
    thinking follows it, or if thinking has no signature, the message is rebuilt from our own fields instead.
    """
    if not all(map(_is_complete, content)):
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


def _is_complete(block: dict[str, Any]) -> bool:
    match block["type"]:
        case "thinking":
            return isinstance(block.get("thinking"), str) and isinstance(block.get("signature"), str)
        case "redacted_thinking":
            return isinstance(block.get("data"), str)
    return True


def _read_usage(raw: Any) -> ReplyUsage:
    """Read the usage. `input_tokens` excludes tokens read from or written to the cache; output includes thinking."""
    counts = raw if isinstance(raw, dict) else {}
    usage = TokenUsage(
        fresh=token_count(counts, "input_tokens"),
        cache_read=token_count(counts, "cache_read_input_tokens"),
        cache_write=token_count(counts, "cache_creation_input_tokens"),
        output=token_count(counts, "output_tokens"),
        reasoning=token_count(counts.get("output_tokens_details"), "thinking_tokens"),
    )
    return reply_usage(usage, raw, "input_tokens", "output_tokens")


# Streams

_GROWS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


class AnthropicAssembler:
    """Assemble the events of a stream into the message that a call without streaming would have returned.

    Unknown events are skipped, as Anthropic asks of its clients. An unknown delta makes its block unknown, because the
    block would be incomplete.
    """

    def __init__(self) -> None:
        self._message: dict[str, Any] | None = None
        self._blocks: dict[int, dict[str, Any]] = {}
        self._pieces: dict[tuple[int, str], list[str]] = {}
        self._stopped = False

    def feed(self, event: str, content: Any) -> Iterator[Delta]:
        if event == "[DONE]":  # sent by some gateways
            return
        kind = content.get("type") if isinstance(content, dict) else None
        # On Vertex there are also Google's own errors, which have no type.
        if (kind or event) == "error" or (kind is None and has_error(content)):
            raise error_from_body(content)
        if not isinstance(content, dict):
            raise ProviderReplyUnreadable("Anthropic's stream has an event that is not an object.")
        match kind or event:
            case "message_start":
                self._message = dict(_get_object(content, "message"))
            case "content_block_start":
                self._blocks[_get_index(content)] = dict(_get_object(content, "content_block"))
            case "content_block_delta":
                yield from self._apply_delta(_get_index(content), _get_object(content, "delta"))
            case "message_delta":
                self._finish_message(content)
            case "message_stop":
                self._stopped = True

    def result(self) -> dict[str, Any]:
        if self._message is None or not self._stopped:
            raise ProviderReplyUnreadable("Anthropic's stream ended before the message did.")
        blocks = [self._complete_block(index, block) for index, block in sorted(self._blocks.items())]
        return {**self._message, "content": blocks}

    def _apply_delta(self, index: int, delta: dict[str, Any]) -> Iterator[Delta]:
        kind = text_or_empty(delta.get("type"))
        if index not in self._blocks:
            raise ProviderReplyUnreadable("Anthropic's stream continues a part that it never began.")
        if kind == "input_json_delta":
            piece = text_or_empty(delta.get("partial_json"))
            self._pieces.setdefault((index, "input"), []).append(piece)
            yield CallDelta(self._call_number(index), text_or_empty(self._blocks[index].get("name")), piece)
        elif kind in _GROWS:
            piece = text_or_empty(delta.get(_GROWS[kind]))
            self._pieces.setdefault((index, _GROWS[kind]), []).append(piece)
            if kind == "text_delta":
                yield TextDelta(piece)
            elif kind == "thinking_delta":
                yield ReasoningDelta(piece)
        else:
            self._blocks[index] = {"type": kind or "unknown"}

    def _call_number(self, index: int) -> int:
        return sum(1 for at, block in self._blocks.items() if at < index and block.get("type") == "tool_use")

    def _finish_message(self, content: dict[str, Any]) -> None:
        """Apply the final stop reason and usage. The counts are cumulative; those it leaves out keep their value."""
        if self._message is None:
            raise ProviderReplyUnreadable("Anthropic's stream ends a message that it never began.")
        first, last = self._message.get("usage"), content.get("usage")
        usage = dict(first) if isinstance(first, dict) else {}
        usage |= {key: value for key, value in last.items() if value is not None} if isinstance(last, dict) else {}
        self._message = {**self._message, **_get_object(content, "delta"), "usage": usage}

    def _complete_block(self, index: int, block: dict[str, Any]) -> dict[str, Any]:
        for key in _GROWS.values():
            pieces = self._pieces.get((index, key))
            if pieces is not None:
                block = {**block, key: text_or_empty(block.get(key)) + "".join(pieces)}
        written = "".join(self._pieces.get((index, "input"), ()))
        return {**block, "input": _parse_arguments(written)} if written.strip() else block


def _parse_arguments(written: str) -> Any:
    arguments = decode_json_object(written.encode("utf-8", "replace"))
    return {MALFORMED: written} if arguments is None else arguments


def _get_object(content: dict[str, Any], key: str) -> dict[str, Any]:
    part = content.get(key)
    if not isinstance(part, dict):
        raise ProviderReplyUnreadable(f"Anthropic's stream has an event without its {key}.")
    return part


def _get_index(content: dict[str, Any]) -> int:
    index = content.get("index")
    if not isinstance(index, int):
        raise ProviderReplyUnreadable("Anthropic's stream has an event without its index.")
    return index


def anthropic_wire() -> WireFormat:
    """Return the format of Anthropic's Messages API."""
    return WireFormat(WIRE, encode_request, decode_reply, AnthropicAssembler, classify_error)
