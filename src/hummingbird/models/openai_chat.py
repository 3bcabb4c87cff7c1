"""Encode requests for the Chat Completions API and decode its answers and streams.

OpenAI defined this API, and many other servers offer it. They refuse keys that they do not know, so a request contains
only keys that all of them accept. They also leave out parts of an answer, so decoding is tolerant.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec

from hummingbird.core.errors import ProviderReplyUnreadable
from hummingbird.core.events import CallDelta, Delta, ReasoningDelta, TextDelta
from hummingbird.core.journal import FinishReason
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
from hummingbird.core.text import replace_surrogates, shorten_line
from hummingbird.core.tool_spec import ToolDefinition
from hummingbird.models.openai_api import (
    check_last_message,
    check_tool_name,
    classify_openai_error,
    encode_sampling,
    encode_tools,
    error_in_answer,
)
from hummingbird.models.response_json import list_or_empty, reply_usage, text_or_empty, usage_from_openai
from hummingbird.models.wire_format import (
    ModelProfile,
    WireFormat,
    arguments_to_object,
    arguments_to_text,
    derive_call_id,
    extend_prefix,
    image_url,
    split_images,
    to_legal_name,
)

# Requests: many chat templates accept one system message, at the start. So a notice is user text marked as such.

WIRE = "openai_chat"
REASONING = "reasoning_content"
_ID = re.compile(r"[0-9A-Za-z]{9}")
_json = msgspec.json.Encoder()


def encode_request(request: ModelRequest, profile: ModelProfile, *, stream: bool) -> bytes:
    """Encode a request's body. Raises InvalidRequest if a server would refuse it."""

    def render(messages: Sequence[Message], _: Message | None) -> bytes:
        return b",".join(_encode_messages(messages, profile))

    talk = extend_prefix(request, "the model", render)
    check_last_message(request)
    parts: list[bytes | bytearray] = [
        b'{"model":',
        _json.encode(profile.model),
        b',"messages":[',
        _encode_system(request),
        talk.prefix,
        render(talk.rest, talk.before),
        b"]",
        encode_tools(request, _tool_definition),
        b',"%s":%d' % (profile.max_tokens_key.encode(), request.max_output_tokens),
    ]
    if profile.effort is not None:
        parts += [b',"reasoning_effort":', _json.encode(profile.effort)]
    parts.append(encode_sampling(request, profile))
    if stream:
        parts.append(b',"stream":true')
        if profile.include_usage:
            parts.append(b',"stream_options":{"include_usage":true}')
    parts.append(b"}")
    return b"".join(parts)


def _encode_system(request: ModelRequest) -> bytes:
    head = request.encoded.head
    if request.system and "system" not in head:
        head["system"] = _json.encode({"role": "system", "content": replace_surrogates(request.system)}) + b","
    return head["system"] if request.system else b""


def _encode_messages(messages: Sequence[Message], profile: ModelProfile) -> Iterator[bytes]:
    said: list[bytes] = []
    shown: list[ImagePart] = []
    for message in messages:
        piece = _encode_message(message, profile)
        if type(message) is UserMessage or type(message) is Notice:
            said.append(piece)
            if isinstance(message, UserMessage):
                shown += split_images(message, profile)[0]
            continue
        if said:
            yield _join_user_parts(said, shown)
            said, shown = [], []
        yield piece
    if said:
        yield _join_user_parts(said, shown)


def _join_user_parts(said: list[bytes], shown: list[ImagePart]) -> bytes:
    """Join adjacent user texts into one message: templates that require alternating roles refuse two."""
    text = b'"' + b"\\n\\n".join(said) + b'"'
    if shown:
        images = [_json.encode({"type": "image_url", "image_url": {"url": image_url(one)}}) for one in shown]
        text = b"[" + b",".join([b'{"type":"text","text":' + text + b"}", *images]) + b"]"
    return b'{"role":"user","content":' + text + b"}"


def _encode_message(message: Message, profile: ModelProfile) -> bytes:
    match message:
        case UserMessage():
            return _json.encode(split_images(message, profile)[1])[1:-1]
        case Notice(text=text):
            return _json.encode(f"<notice>\n{replace_surrogates(text)}\n</notice>")[1:-1]
        case ToolMessage(call_id=call_id, text=text):
            return _json.encode(
                {"role": "tool", "tool_call_id": to_chat_call_id(call_id), "content": replace_surrogates(text)}
            )
        case AssistantMessage():
            return _json.encode(_assistant_message(message, profile))


def _assistant_message(message: AssistantMessage, profile: ModelProfile) -> dict[str, object]:
    chat: dict[str, object] = {"role": "assistant", "content": replace_surrogates(message.text)}
    if message.calls:
        chat["tool_calls"] = [_tool_call(call) for call in message.calls]
    echo = message.echo
    if echo is not None and echo.wire == WIRE and echo.model == profile.model:
        chat.update(echo.content)
    if message.calls and REASONING in profile.echo_keys and not isinstance(chat.get(REASONING), str):
        # While thinking is on, DeepSeek and similar servers refuse a past call without this key, even if there was no
        # thinking or another model wrote the message.
        chat[REASONING] = replace_surrogates(message.reasoning)
    return chat


def _tool_call(call: ToolCall) -> dict[str, object]:
    # Arguments that are not a JSON object are not sent back as the model wrote them: vLLM and llama.cpp parse the
    # arguments of old calls, and would answer 400 to every later request of the conversation (vllm#43995, vllm#48922).
    arguments = _json.encode(arguments_to_object(call.arguments)).decode()
    function = {"name": to_legal_name(call.name), "arguments": arguments}
    return {"id": to_chat_call_id(call.id), "type": "function", "function": function}


def to_chat_call_id(call_id: str) -> str:
    """Return the id in the one form that every server accepts; ids of other APIs are converted to it."""
    return call_id if _ID.fullmatch(call_id) else derive_call_id(call_id, 0)


def _tool_definition(tool: ToolDefinition) -> dict[str, object]:
    function = {
        "name": check_tool_name(tool.name),
        "description": replace_surrogates(tool.description),
        "parameters": dict(tool.schema),
    }
    return {"type": "function", "function": function}


# Answers

# Any other finish reason counts as a stop: text and calls show what to do next. OpenRouter says `error` when a provider
# failed in the middle of an answer.
_FINISH = {
    "length": FinishReason.LENGTH,
    "max_tokens": FinishReason.LENGTH,
    "content_filter": FinishReason.REFUSAL,
    "error": FinishReason.MALFORMED,
}


@dataclass(slots=True)
class _ChatReplyParts:
    """The parts of an answer. `usable` is False if there is an unknown part or call."""

    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    usable: bool = True


def decode_reply(answer: Any, request: ModelRequest, profile: ModelProfile, server: str) -> ModelReply:
    """Turn an answer into a reply.

    `finish_reason` may be null or empty, usage and ids may be missing, and arguments may already be an object. An
    unknown part or call cannot be acted on, but the answer was billed. It becomes a malformed reply that keeps the
    usage. Raises ProviderReplyUnreadable if this is no answer, or the error that it reports.
    """
    if error := error_in_answer(server, answer):
        raise error
    seen = shorten_line(str(answer), 120)
    if not isinstance(answer, dict):
        raise ProviderReplyUnreadable(f"The model's answer has no choices in it; it begins with: {seen}")
    raw = answer.get("usage")
    bill = reply_usage(
        usage_from_openai(raw, "prompt_tokens", "completion_tokens"), raw, "prompt_tokens", "completion_tokens"
    )
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return bill.unusable_reply(f"The model's answer has no choices in it; it begins with: {seen}")
    if error := error_in_answer(server, choices[0]):
        raise error
    said = choices[0].get("message")
    if not isinstance(said, dict):
        return bill.unusable_reply(f"The answer of {server} has no message in its first choice.")
    read = _ChatReplyParts()
    _read_content(said.get("content"), read)
    _read_calls(said, request.call_id, read)
    if not read.usable:
        return bill.to_reply(AssistantMessage(*_join_texts(said, read)), FinishReason.MALFORMED)
    return bill.to_reply(
        AssistantMessage(*_join_texts(said, read), tuple(read.calls), _create_echo(said, profile)),
        _finish_reason(choices[0]),
    )


def _join_texts(said: dict[str, Any], read: _ChatReplyParts) -> tuple[str, str]:
    reasoning = (
        text_or_empty(said.get("reasoning"))
        or text_or_empty(said.get("reasoning_content"))
        or text_or_empty("".join(read.thoughts))
    )
    return text_or_empty("".join(read.texts)) or text_or_empty(said.get("refusal")), reasoning


def _read_content(content: Any, read: _ChatReplyParts) -> None:
    """Read text and thinking. Most servers send a string or null, Mistral a list of parts."""
    if isinstance(content, str):
        read.texts.append(content)
    elif isinstance(content, list):
        for part in content:
            _read_part(part, read)
    elif content is not None:
        read.usable = False


def _read_part(part: Any, read: _ChatReplyParts) -> None:
    match part:
        case {"type": "text", "text": str(words)}:
            read.texts.append(words)
        case {"type": "thinking", "thinking": str() | list()}:
            read.thoughts.append(thinking_text(part))
        case _:
            read.usable = False


def thinking_text(part: dict[str, Any]) -> str:
    """Return the text of a thinking part, which contains a string or a list of text parts."""
    thinking = part.get("thinking")
    if not isinstance(thinking, list):
        return text_or_empty(thinking)
    return "".join(text_or_empty(inner.get("text")) for inner in thinking if isinstance(inner, dict))


def _read_calls(said: dict[str, Any], call_id: str, read: _ChatReplyParts) -> None:
    calls = said.get("tool_calls") or []
    if not calls and said.get("function_call"):
        calls = [{"function": said["function_call"]}]  # the older form; llama-cpp-python sends it beside the newer one
    if not isinstance(calls, list):
        read.usable = False
        return
    for index, call in enumerate(calls):
        match call:
            case {"function": {"name": str(name), **function}} if name:
                # Do not use the server's ids: some give none, some repeat one, some give the same ones every turn.
                identity = derive_call_id(call_id, index)
                read.calls.append(ToolCall(identity, text_or_empty(name), _arguments_text(function.get("arguments"))))
            case _:
                read.usable = False


def _arguments_text(arguments: Any) -> str:
    if isinstance(arguments, str):
        return text_or_empty(arguments) if arguments.strip() else "{}"
    return arguments_to_text({} if arguments is None else arguments)


def _create_echo(said: dict[str, Any], profile: ModelProfile) -> ProviderEcho | None:
    kept = {key: said[key] for key in profile.echo_keys if said.get(key)}
    return ProviderEcho(WIRE, profile.model, kept) if kept else None


def _finish_reason(choice: dict[str, Any]) -> FinishReason:
    if text_or_empty(choice["message"].get("refusal")):
        return FinishReason.REFUSAL
    return _FINISH.get(text_or_empty(choice.get("finish_reason")), FinishReason.STOP)


# Streams

_DELTA_TYPES: dict[str, type[TextDelta] | type[ReasoningDelta]] = {
    "content": TextDelta,
    "refusal": TextDelta,
    "reasoning": ReasoningDelta,
    "reasoning_content": ReasoningDelta,
}


class ChatAssembler:
    """Assemble the chunks of a stream into the answer that a call without streaming would have returned.

    A finish reason marks the end, or [DONE] from servers that give none. Unknown calls stay in the answer;
    `decode_reply` judges them.
    """

    def __init__(self, server: str) -> None:
        self._server = server
        self._message: dict[str, Any] = {}
        self._calls: list[dict[str, Any]] = []
        self._places: dict[int, int] = {}
        self._older_call: dict[str, str] = {}  # `function_call`, which counts only where there are no `tool_calls`
        self._finish = ""
        self._usage: Any = None
        self._ended = False

    def feed(self, event: str, content: Any) -> Iterator[Delta]:
        if event == "[DONE]":
            self._ended = True
            return
        if error := error_in_answer(self._server, content):
            raise error
        if not isinstance(content, Mapping):
            raise ProviderReplyUnreadable(f"The stream of {self._server} has an event that is not a chunk.")
        self._usage = content.get("usage") or self._usage
        for choice in list_or_empty(content.get("choices")):
            if isinstance(choice, Mapping) and not choice.get("index"):
                yield from self._add_choice(choice)

    def result(self) -> dict[str, Any]:
        if not (self._ended or self._finish):
            raise ProviderReplyUnreadable(f"The stream of {self._server} ended in the middle of the answer.")
        if not (self._message or self._calls or self._older_call or self._finish):
            return {"choices": []}
        message = {**self._message, "tool_calls": self._calls} if self._calls else self._message
        if self._older_call and not self._calls:
            message = {**message, "function_call": self._older_call}
        return {"choices": [{"message": message, "finish_reason": self._finish}], "usage": self._usage}

    def _add_choice(self, choice: Mapping[str, Any]) -> Iterator[Delta]:
        if error := error_in_answer(self._server, choice):
            raise error
        self._finish = text_or_empty(choice.get("finish_reason")) or self._finish
        delta = choice.get("delta")
        for key, value in delta.items() if isinstance(delta, Mapping) else ():
            if key == "tool_calls":
                for call in list_or_empty(value):
                    yield from self._add_call_piece(call)
            elif key == "function_call" and isinstance(value, Mapping):
                for part in ("name", "arguments"):
                    self._older_call[part] = self._older_call.get(part, "") + text_or_empty(value.get(part))
            elif value is not None and key != "role":
                self._message[key] = append_piece(key, self._message.get(key), value)
                yield from _value_deltas(key, value)

    def _add_call_piece(self, call: Any) -> Iterator[Delta]:
        function = (call.get("function") or {}) if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping):
            self._calls.append({"type": "unknown"})
            return
        place = self._find_call(call, function)
        slot = self._calls[place]
        part = function.get("arguments")
        part = text_or_empty(part) if isinstance(part, str) else "" if part is None else arguments_to_text(part)
        slot["function"]["name"] = slot["function"]["name"] or text_or_empty(function.get("name"))
        slot["function"]["arguments"] += part
        yield CallDelta(place, slot["function"]["name"], part)

    def _find_call(self, call: Mapping[str, Any], function: Mapping[str, Any]) -> int:
        """Find the call that a piece belongs to. Some servers give no index, some give every call the index 0."""
        index = call.get("index") if isinstance(call.get("index"), int) else None
        place = len(self._calls) - 1 if index is None else self._places.get(index)
        opens = bool(text_or_empty(function.get("name"))) and (index is None or self._is_other_call(place, call))
        if place is None or place < 0 or opens or "function" not in self._calls[place]:
            kind = call.get("type") or "function"
            self._calls.append({"id": call.get("id"), "type": kind, "function": {"name": "", "arguments": ""}})
            place = len(self._calls) - 1
        if index is not None:
            self._places[index] = place
        return place

    def _is_other_call(self, place: int | None, call: Mapping[str, Any]) -> bool:
        known = self._calls[place].get("id") if place is not None else None
        return bool(known and call.get("id") and call["id"] != known)


def _value_deltas(key: str, value: Any) -> Iterator[Delta]:
    if key in _DELTA_TYPES and isinstance(value, str) and value:
        yield _DELTA_TYPES[key](text_or_empty(value))
    for part in list_or_empty(value) if key == "content" else ():
        if not isinstance(part, Mapping):
            continue
        if part.get("type") == "text" and (said := text_or_empty(part.get("text"))):
            yield TextDelta(said)
        elif part.get("type") == "thinking" and (thought := thinking_text(dict(part))):
            yield ReasoningDelta(thought)


def append_piece(key: str, before: Any, piece: Any) -> Any:
    """Append a piece to a value. In one answer, Mistral sends thinking as parts and text as strings."""
    if key == "content" and (isinstance(before, list) or isinstance(piece, list)):
        before, piece = _as_parts(before), _as_parts(piece)
    return join_pieces(before, piece)


def _as_parts(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content if isinstance(content, list) else [] if content is None else [content]


def join_pieces(before: Any, piece: Any) -> Any:
    """Join a piece to what came before: concatenate texts, and merge list items that continue the last item.

    OpenRouter's `reasoning_details` come in pieces with the same type and index.
    """
    if isinstance(before, str) and isinstance(piece, str):
        return before + piece
    if not isinstance(piece, list):
        return piece
    whole = list(before) if isinstance(before, list) else []
    for item in piece:
        if whole and _continues(whole[-1], item):
            whole[-1] = {key: _extend_value(key, whole[-1].get(key), item.get(key)) for key in {**whole[-1], **item}}
        else:
            whole.append(item)
    return whole


def _continues(last: Any, item: Any) -> bool:
    if not isinstance(last, Mapping) or not isinstance(item, Mapping) or "type" not in item:
        return False
    return (last.get("type"), last.get("index")) == (item["type"], item.get("index"))


def _extend_value(key: str, before: Any, piece: Any) -> Any:
    if key in {"text", "summary", "data", "thinking"} and type(before) is type(piece) and isinstance(piece, str | list):
        return join_pieces(before, piece)
    return before if piece is None else piece


def openai_chat_wire(server: str = "The model server") -> WireFormat:
    """Return the format of Chat Completions. `server` is the name in error messages: OpenAI, or the host."""
    return WireFormat(
        WIRE,
        encode_request,
        partial(decode_reply, server=server),
        partial(ChatAssembler, server),
        partial(classify_openai_error, server),
    )
