"""Encode requests for OpenAI's Responses API and decode its answers and streams.

We use the API without state on OpenAI's side: `store` is off, and each request contains the whole conversation, with
encrypted reasoning replayed verbatim.
"""

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
    arguments_to_text,
    assign_call_ids,
    extend_prefix,
    image_url,
    split_images,
    to_legal_id,
    to_legal_name,
)

# Requests: prompt caching stays implicit, also on gpt-5.6 and later, which support explicit breakpoints. The implicit
# breakpoint is at the end of the input, and matching looks back without limit, so each turn reads what the previous one
# wrote. Explicit breakpoints would write the same prefix again, at 1.25 times the input price.

WIRE = "openai_responses"
_json = msgspec.json.Encoder()


def encode_request(request: ModelRequest, profile: ModelProfile, *, stream: bool) -> bytes:
    """Encode a request's body. Raises InvalidRequest if OpenAI would refuse it."""

    def render(messages: Sequence[Message], _: Message | None) -> bytes:
        return b",".join(_encode_items(messages, profile))

    talk = extend_prefix(request, "the model", render)
    check_last_message(request)
    parts: list[bytes | bytearray] = [
        b'{"model":',
        _json.encode(profile.model),
        _encode_instructions(request),
        b',"input":[',
        talk.prefix,
        render(talk.rest, talk.before),
        b"]",
        encode_tools(request, _tool_definition),
        b',"max_output_tokens":%d' % request.max_output_tokens,
        b',"store":false',
        b',"include":["reasoning.encrypted_content"]' if profile.encrypted_reasoning else b"",
        _encode_reasoning(profile),
    ]
    parts.append(encode_sampling(request, profile))
    if stream:
        parts.append(b',"stream":true')
    parts.append(b"}")
    return b"".join(parts)


def _encode_instructions(request: ModelRequest) -> bytes:
    if not request.system:
        return b""
    head = request.encoded.head
    if "system" not in head:
        head["system"] = b',"instructions":' + _json.encode(replace_surrogates(request.system))
    return head["system"]


def _encode_reasoning(profile: ModelProfile) -> bytes:
    wanted = {"summary": "auto"} if profile.summarised_thinking else {}
    if profile.effort is not None:
        wanted["effort"] = profile.effort
    return b',"reasoning":' + _json.encode(wanted) if wanted else b""


def _encode_items(messages: Sequence[Message], profile: ModelProfile) -> Iterator[bytes]:
    """Yield the encoded items of each message; a message may have several items or none."""
    for message in messages:
        if piece := _json.encode(_input_items(message, profile))[1:-1]:
            yield piece


def _input_items(message: Message, profile: ModelProfile) -> list[Any]:
    match message:
        case UserMessage():
            images, text = split_images(message, profile)
            shown = [{"type": "input_image", "image_url": image_url(one), "detail": "auto"} for one in images]
            return [{"role": "user", "content": [{"type": "input_text", "text": text}, *shown] if shown else text}]
        case Notice(text=text):
            return [{"role": "developer", "content": replace_surrogates(text)}]
        case ToolMessage(call_id=call_id, text=text):
            return [
                {"type": "function_call_output", "call_id": to_legal_id(call_id), "output": replace_surrogates(text)}
            ]
        case AssistantMessage(echo=echo):
            if echo is not None and echo.wire == WIRE and echo.model == profile.model:
                return list(echo.content)
            return _convert_message(message)


def _convert_message(message: AssistantMessage) -> list[Any]:
    """Convert an answer without an echo of this model, so without OpenAI's reasoning and item ids."""
    said: list[Any] = [{"role": "assistant", "content": replace_surrogates(message.text)}] if message.text else []
    return said + [
        {
            "type": "function_call",
            "call_id": to_legal_id(call.id),
            "name": to_legal_name(call.name),
            "arguments": replace_surrogates(call.arguments),
        }
        for call in message.calls
    ]


def _tool_definition(tool: ToolDefinition) -> dict[str, Any]:
    # Strict mode supports only a part of JSON Schema, and we validate the arguments of each call ourselves.
    return {
        "type": "function",
        "name": check_tool_name(tool.name),
        "description": replace_surrogates(tool.description),
        "parameters": dict(tool.schema),
        "strict": False,
    }


# Answers

_STATUSES = ("completed", "incomplete", "in_progress")
_POLICIES = ("bio_policy", "misalignment_policy_violation")


@dataclass(slots=True)
class _ResponseParts:
    """The content of the output items, sorted by type. `usable` is False if there is an unknown item or part."""

    texts: list[str] = field(default_factory=list)
    finals: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    usable: bool = True


def decode_reply(answer: Any, request: ModelRequest, profile: ModelProfile, server: str) -> ModelReply:
    """Turn an answer into a reply; its output items become the echo, verbatim.

    An unknown item or part cannot be replayed or acted on, but the answer was billed. It becomes a malformed reply that
    keeps the usage. Raises ProviderReplyUnreadable if this is no response, or the error that it reports.
    """
    if not isinstance(answer, dict):
        raise ProviderReplyUnreadable(
            f"{server} gave an answer that is none; it begins with: {shorten_line(str(answer), 120)}"
        )
    bill = reply_usage(
        usage_from_openai(answer.get("usage"), "input_tokens", "output_tokens"),
        answer.get("usage"),
        "input_tokens",
        "output_tokens",
    )
    if policy := _policy_refusal(answer):
        return bill.to_reply(AssistantMessage(policy), FinishReason.REFUSAL)
    if error := error_in_answer(server, answer):
        raise error
    output = answer.get("output")
    if not isinstance(output, list):
        return bill.unusable_reply(
            f"{server} gave an answer that is none; it begins with: {shorten_line(str(answer), 120)}"
        )
    read = _ResponseParts()
    sent = _with_unique_ids(output, request)
    for item in sent:
        _sort_item(item, read)
    finish = _finish_reason(answer, read)
    if finish is None:
        return bill.unusable_reply(
            f"The answer of {server} has the status {answer.get('status')!r} instead of being complete."
        )
    if not read.usable:
        return bill.to_reply(AssistantMessage(*_join_texts(read)), FinishReason.MALFORMED)
    return bill.to_reply(_build_message(sent, read, profile), finish)


def _policy_refusal(answer: dict[str, Any]) -> str:
    """Return why OpenAI's policy stopped the model; empty if it did not. Such a failure counts as a refusal."""
    error = answer.get("error")
    if isinstance(error, dict) and error.get("code") in _POLICIES:
        return text_or_empty(error.get("message")) or text_or_empty(error["code"])
    return ""


def _with_unique_ids(output: list[Any], request: ModelRequest) -> list[Any]:
    """Return the items with unique call ids and with arguments as text.

    OpenAI's call ids are unique. Where those of a compatible server are not, our ids replace them, also in the echo.
    """
    ids = iter(assign_call_ids(request, [item.get("call_id") for item in output if _is_call(item)]))
    return [_normalize_call(item, next(ids)) if _is_call(item) else item for item in output]


def _is_call(item: Any) -> bool:
    return isinstance(item, dict) and item.get("type") == "function_call" and bool(text_or_empty(item.get("name")))


def _normalize_call(item: dict[str, Any], call_id: str) -> dict[str, Any]:
    given = item.get("arguments")
    written = given if isinstance(given, str) else arguments_to_text({} if given is None else given)
    return {**item, "call_id": call_id, "arguments": written if written.strip() else "{}"}


def _sort_item(item: Any, read: _ResponseParts) -> None:
    match item:
        case {"type": "message", "content": list(content)}:
            for part in content:
                _sort_part(part, read, final=item.get("phase") == "final_answer")
        case {"type": "function_call", "call_id": str(call_id), "name": str(name)} if name:
            read.calls.append(ToolCall(call_id, text_or_empty(name), text_or_empty(item["arguments"])))
        case {"type": "reasoning"}:
            parts = [*list_or_empty(item.get("summary")), *list_or_empty(item.get("content"))]
            read.thoughts += [text_or_empty(part.get("text")) for part in parts if isinstance(part, dict)]
        case _:
            read.usable = False


def _sort_part(part: Any, read: _ResponseParts, *, final: bool) -> None:
    match part:
        case {"type": "output_text", "text": str(said)}:
            (read.finals if final else read.texts).append(said)
        case {"type": "refusal", "refusal": str(said)}:
            read.refusals.append(said)
        case _:
            read.usable = False


def _join_texts(read: _ResponseParts) -> tuple[str, str]:
    """Return text and reasoning. Commentary beside a final answer counts as reasoning, not as part of the answer."""
    said, aloud = (read.finals, read.texts) if read.finals else (read.texts, [])
    return (
        text_or_empty("\n\n".join(filter(None, said or read.refusals))),
        text_or_empty("\n\n".join(filter(None, [*read.thoughts, *aloud]))),
    )


def _build_message(sent: list[dict[str, Any]], read: _ResponseParts, profile: ModelProfile) -> AssistantMessage:
    kept = _replayable_items([_repair_item(item) for item in sent])
    echo = ProviderEcho(WIRE, profile.model, kept) if kept else None
    return AssistantMessage(*_join_texts(read), tuple(read.calls), echo)


def _repair_item(item: dict[str, Any]) -> dict[str, Any]:
    """Return the item unchanged, except for what the API would refuse in a request."""
    repaired = dict(item)
    if not isinstance(item.get("id", ""), str):
        del repaired["id"]
    if item.get("status", "completed") not in _STATUSES:
        del repaired["status"]
    if item["type"] == "function_call":
        repaired["name"] = to_legal_name(item["name"])
    if item["type"] == "message":
        repaired["role"] = "assistant"
        repaired["content"] = [_repair_part(part) for part in item["content"]]
    return repaired


def _repair_part(part: dict[str, Any]) -> dict[str, Any]:
    notes = part.get("annotations", [])
    sound = isinstance(notes, list) and all(isinstance(note, dict) for note in notes)
    return part if sound else {**part, "annotations": []}


def _replayable_items(sent: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the items that OpenAI accepts back.

    It accepts reasoning only with its encrypted content, and followed by the item that it led to.
    """
    while sent and sent[-1]["type"] == "reasoning":
        sent.pop()
    if all(_is_complete(item) for item in sent if item["type"] == "reasoning"):
        return sent
    # OpenAI requires the reasoning of an item that has an id. We drop the reasoning, so we drop the ids too.
    bare = [item for item in sent if item["type"] != "reasoning"]
    return [{key: value for key, value in item.items() if key != "id"} for item in bare]


def _is_complete(item: dict[str, Any]) -> bool:
    match item:
        case {"id": str(), "encrypted_content": str(sealed), "summary": list(summary)}:
            return bool(sealed) and all(map(_is_summary, summary))
    return False


def _is_summary(part: Any) -> bool:
    match part:
        case {"type": "summary_text", "text": str()}:
            return True
    return False


def _finish_reason(answer: dict[str, Any], read: _ResponseParts) -> FinishReason | None:
    """Return the finish reason; None if the answer is not complete or its status is unknown."""
    match answer.get("status"):
        case "completed" | None:
            return FinishReason.REFUSAL if read.refusals and not read.calls else FinishReason.STOP
        case "incomplete":
            details = answer.get("incomplete_details")
            reason = details.get("reason") if isinstance(details, dict) else None
            return FinishReason.REFUSAL if reason == "content_filter" else FinishReason.LENGTH
    return None


# Streams

_DELTA_TYPES: dict[str, type[TextDelta] | type[ReasoningDelta]] = {
    "response.output_text.delta": TextDelta,
    "response.refusal.delta": TextDelta,
    "response.reasoning_summary_text.delta": ReasoningDelta,
    "response.reasoning_text.delta": ReasoningDelta,
}
_LAST = frozenset({"response.completed", "response.incomplete", "response.failed"})


class ResponsesAssembler:
    """Assemble the events of a stream into the response that a call without streaming would have returned.

    The last event contains the whole response, but the items are taken from `output_item.done`: only there is the
    encrypted reasoning certain to be complete.
    """

    def __init__(self, server: str) -> None:
        self._server = server
        self._done: dict[int, Any] = {}
        self._calls: dict[int, tuple[int, str]] = {}
        self._response: Mapping[str, Any] | None = None

    def feed(self, event: str, content: Any) -> Iterator[Delta]:
        if event == "[DONE]":
            return
        if not isinstance(content, Mapping):
            raise ProviderReplyUnreadable(f"The stream of {self._server} has an event that is none.")
        kind = text_or_empty(content.get("type"))
        if kind == "error" or ("type" not in content and "error" in content):
            raise error_in_answer(self._server, content) or ProviderReplyUnreadable(
                f"The stream of {self._server} broke."
            )
        if kind in _DELTA_TYPES:
            if told := text_or_empty(content.get("delta")):
                yield _DELTA_TYPES[kind](told)
        elif kind in _LAST and isinstance(content.get("response"), Mapping):
            self._response = content["response"]
        else:
            yield from self._handle_item_event(kind, content)

    def result(self) -> dict[str, Any]:
        if self._response is None:
            raise ProviderReplyUnreadable(f"The stream of {self._server} ended in the middle of the answer.")
        if not self._done:
            return dict(self._response)
        return {**self._response, "output": [self._done[index] for index in sorted(self._done)]}

    def _handle_item_event(self, kind: str, content: Mapping[str, Any]) -> Iterator[Delta]:
        place, item = content.get("output_index"), content.get("item")
        if not isinstance(place, int):
            return
        if kind == "response.output_item.done":
            self._done[place] = item
        elif kind == "response.output_item.added" and isinstance(item, Mapping):
            if item.get("type") == "function_call":
                self._calls[place] = (len(self._calls), text_or_empty(item.get("name")))
                yield CallDelta(*self._calls[place], part="")
        elif kind == "response.function_call_arguments.delta" and place in self._calls:
            yield CallDelta(*self._calls[place], part=text_or_empty(content.get("delta")))


def openai_responses_wire(server: str = "OpenAI") -> WireFormat:
    """Return the format of the Responses API. `server` is the name in error messages: OpenAI, or the host."""
    return WireFormat(
        WIRE,
        encode_request,
        partial(decode_reply, server=server),
        partial(ResponsesAssembler, server),
        partial(classify_openai_error, server),
    )
