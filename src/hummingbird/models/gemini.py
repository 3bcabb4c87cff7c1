"""Encode requests for Google's Gemini API and decode its answers, streams and errors.

The format is the same with an API key and on Vertex. URLs and credentials belong to the endpoints.
"""

from collections.abc import Iterator, Sequence
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
from hummingbird.core.text import replace_surrogates
from hummingbird.core.tool_spec import ToolDefinition
from hummingbird.core.usage import TokenUsage
from hummingbird.models.response_json import (
    ErrorDetails,
    ReplyUsage,
    has_error,
    list_or_empty,
    parse_error_details,
    reply_usage,
    text_or_empty,
    token_count,
)
from hummingbird.models.wire_format import (
    ModelProfile,
    TurnFragment,
    WireFormat,
    arguments_to_object,
    arguments_to_text,
    assign_call_ids,
    extend_prefix,
    join_turns,
    split_images,
    to_legal_name,
)

# Errors

_STATUSES = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "ABORTED": 409,
    "RESOURCE_EXHAUSTED": 429,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}
_PASSING = frozenset({408, 409, 429, 499})


def classify_error(status: int, answer: Any) -> HummingbirdError:
    """Return our error for a status and a body; where Google only says INVALID_ARGUMENT, the message decides."""
    said = parse_error_details(answer)
    what = f"({status} {said.kind})" if said.kind else f"({status})"
    if _is_out_of_credit(status, said):
        return CreditExhausted(
            f"The account for Gemini has no credit or billing {what}: set it up or choose another model.{said.quoted}"
        )
    # Google answers 400 to a key that was never issued
    if status in {401, 403} or said.reason == "API_KEY_INVALID" or said.mentions("api key not valid"):
        return CredentialRefused(
            f"Google refused the credential {what}: check the key, or for Vertex the login and its rights.{said.quoted}"
        )
    if status in _PASSING or status >= 500:
        return ProviderUnavailable(
            f"Gemini cannot answer now {what}: try again later.{said.quoted}", said.retry_after_s
        )
    if status == 413 or _is_overflow(said):
        return ContextOverflow(f"The conversation is too long for this Gemini model {what}.{said.quoted}")
    if said.mentions("thought signature") or said.mentions("thought_signature"):
        return ThinkingRefused(f"Gemini refused a replayed thought signature {what}.{said.quoted}")
    return ProviderRequestRefused(f"Gemini refused the request {what}: it would fail again.{said.quoted}")


def error_from_body(answer: Any) -> HummingbirdError:
    """Return the error that came with status 200, for example in a stream."""
    said = parse_error_details(answer)
    return classify_error(said.code or _STATUSES.get(said.kind, 500), answer)


def _is_out_of_credit(status: int, said: ErrorDetails) -> bool:
    """Tell whether the account has no credit. A 429 that mentions plan and billing may be a mere rate limit."""
    return status == 402 or said.reason == "BILLING_DISABLED" or said.mentions("credits are depleted")


def _is_overflow(said: ErrorDetails) -> bool:
    return said.mentions("input token count", "exceeds") or said.mentions("input token count", "only supports up to")


# Requests: the conversation becomes a flat list of parts, each encoded to bytes once. Roles and brackets are added at
# the end. Gemini has no system entries within the conversation, so a notice is a text part marked as such.

WIRE = "gemini"
# Replaces the signature of a call that another model made; Google documents it for moved or compacted histories.
FOREIGN_SIGNATURE = "skip_thought_signature_validator"
_json = msgspec.json.encode


def encode_request(request: ModelRequest, profile: ModelProfile) -> bytes:
    """Encode a request. The body is the same with and without streaming: the URL decides."""

    def render(messages: Sequence[Message], before: Message | None) -> bytes:
        return join_turns(encode_parts(messages, profile, before), "parts")

    talk = extend_prefix(request, "Gemini", render)
    if type(request.messages[-1]) is AssistantMessage:
        raise InvalidRequest("The conversation ends with a paused answer, which Gemini cannot continue.")
    members = []
    if request.system.strip():
        members.append(b'"systemInstruction":{"parts":[%s]}' % _encode_system(request))
    if request.tools:
        members.append(b'"tools":[{"functionDeclarations":%s}]' % _encode_declarations(request))
    if request.tools and request.disable_tools:
        members.append(b'"toolConfig":{"functionCallingConfig":{"mode":"NONE"}}')
    members.append(b'"generationConfig":%s' % _json(_generation_config(request, profile)))
    rest = render(talk.rest, talk.before)
    return b"".join((b"{", b",".join(members), b',"contents":[', talk.prefix, rest, b"]}"))


def encode_parts(
    messages: Sequence[Message], profile: ModelProfile, before: Message | None = None
) -> Iterator[TurnFragment]:
    """Yield the conversation part by part. Later requests must begin with the same parts, to hit the cache."""
    asking = before if isinstance(before, AssistantMessage) else None
    for index, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            asking = message
        yield TurnFragment("model" if message is asking else "user", _encode_message(message, asking, profile), index)


def _encode_message(message: Message, asking: AssistantMessage | None, profile: ModelProfile) -> bytes:
    match message:
        case UserMessage():
            images, text = split_images(message, profile)
            shown = [_json({"inlineData": {"mimeType": one.media_type, "data": one.data}}) for one in images]
            return b",".join([*shown, _encode_text(text)])
        case Notice(text=text):
            return _encode_text(f"<notice>\n{text}\n</notice>")
        case ToolMessage():
            return _encode_tool_response(message, asking, profile)
        case AssistantMessage():
            return _json(_echo_content(message, profile) or _convert_message(message, profile))[1:-1]


def _encode_text(text: str) -> bytes:
    return _json({"text": replace_surrogates(text) if text.strip() else "(empty message)"})


def _encode_tool_response(message: ToolMessage, asking: AssistantMessage | None, profile: ModelProfile) -> bytes:
    """Encode a tool result under the name and id of its call as the request contains it.

    The tool that ran may have a slightly different name than the model wrote, and our call id is not Gemini's if Gemini
    gave none.
    """
    call = _original_call(message, asking, profile)
    response: dict[str, Any] = {"name": call.get("name") or to_legal_function_name(message.name)}
    if call.get("id"):
        response["id"] = call["id"]
    response["response"] = {"error" if message.is_error else "output": replace_surrogates(message.text)}
    return _json({"functionResponse": response})


def _original_call(message: ToolMessage, asking: AssistantMessage | None, profile: ModelProfile) -> dict[str, Any]:
    if asking is None:
        return {}
    at = next((n for n, call in enumerate(asking.calls) if call.id == message.call_id), None)
    if at is None:
        return {}
    parts = _echo_content(asking, profile)
    if parts is None:
        return {"name": to_legal_function_name(asking.calls[at].name)}
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    found: dict[str, Any] = calls[at]
    return found


def _echo_content(message: AssistantMessage, profile: ModelProfile) -> Any:
    """Return the model's own parts, with their signatures; None if another model wrote the message."""
    echo = message.echo
    return echo.content if echo is not None and echo.wire == WIRE and echo.model == profile.model else None


def _convert_message(message: AssistantMessage, profile: ModelProfile) -> list[Any]:
    parts: list[Any] = [{"text": replace_surrogates(message.text)}] if message.text.strip() else []
    for at, call in enumerate(message.calls):
        part: dict[str, Any] = {
            "functionCall": {"name": to_legal_function_name(call.name), "args": arguments_to_object(call.arguments)}
        }
        if at == 0 and profile.signs_calls:
            part["thoughtSignature"] = FOREIGN_SIGNATURE
        parts.append(part)
    return parts or [{"text": "(no text)"}]


def to_legal_function_name(name: str) -> str:
    """Return a legal function name: Gemini's begin with a letter or an underscore."""
    cleaned = to_legal_name(name)
    return cleaned if cleaned[0].isalpha() or cleaned[0] == "_" else f"_{cleaned}"


def _generation_config(request: ModelRequest, profile: ModelProfile) -> dict[str, Any]:
    thinking: dict[str, Any] = {"includeThoughts": True} if profile.summarised_thinking else {}
    if profile.effort:
        thinking["thinkingLevel"] = profile.effort.upper()
    limit: dict[str, Any] = {"maxOutputTokens": request.max_output_tokens}
    if profile.temperature is not None:
        limit["temperature"] = profile.temperature
    return {**limit, "thinkingConfig": thinking} if thinking else limit


def _encode_system(request: ModelRequest) -> bytes:
    head = request.encoded.head
    if "system" not in head:
        head["system"] = _encode_text(request.system)
    return head["system"]


def _encode_declarations(request: ModelRequest) -> bytes:
    head = request.encoded.head
    if "tools" not in head:
        head["tools"] = _json([_tool_declaration(tool) for tool in request.tools])
    return head["tools"]


def _tool_declaration(tool: ToolDefinition) -> dict[str, Any]:
    if to_legal_function_name(tool.name) != tool.name:
        raise InvalidRequest(f"The tool name {tool.name!r} is not one that Gemini takes: rename the tool.")
    return {
        "name": tool.name,
        "description": replace_surrogates(tool.description),
        "parametersJsonSchema": dict(tool.schema),
    }


# Answers

# Any other finish reason (OTHER, LANGUAGE, MALFORMED_FUNCTION_CALL, UNEXPECTED_TOOL_CALL, …) makes the reply malformed:
# it is no refusal, and there is nothing to use. Google's list grows, and undocumented reasons have been seen.
_FINISHES = {
    "STOP": FinishReason.STOP,
    "MAX_TOKENS": FinishReason.LENGTH,
    "SAFETY": FinishReason.REFUSAL,
    "RECITATION": FinishReason.REFUSAL,
    "BLOCKLIST": FinishReason.REFUSAL,
    "PROHIBITED_CONTENT": FinishReason.REFUSAL,
    "SPII": FinishReason.REFUSAL,
    "IMAGE_SAFETY": FinishReason.REFUSAL,
    "IMAGE_PROHIBITED_CONTENT": FinishReason.REFUSAL,
    "IMAGE_RECITATION": FinishReason.REFUSAL,
    "MODEL_ARMOR": FinishReason.REFUSAL,
    "JAILBREAK": FinishReason.REFUSAL,
}
_KNOWN = frozenset({"text", "thought", "thoughtSignature", "functionCall"})


def decode_reply(answer: Any, request: ModelRequest, profile: ModelProfile) -> ModelReply:
    """Turn an answer into a reply: text, thoughts, calls, and the parts to replay with their signatures.

    An unknown part or finish reason never counts as a normal stop, but the answer was billed. It becomes a malformed
    reply that keeps the usage. Raises ProviderReplyUnreadable if this is no answer, or the error that it reports.
    """
    if has_error(answer):
        raise error_from_body(answer)
    if not isinstance(answer, dict):
        raise ProviderReplyUnreadable("Gemini's answer is not an object.")
    bill = _read_usage(answer.get("usageMetadata"))
    candidates = answer.get("candidates")
    if not isinstance(candidates, list) or not candidates or not isinstance(candidates[0], dict):
        if _is_blocked(answer):
            return bill.to_reply(AssistantMessage(), FinishReason.REFUSAL)
        return bill.unusable_reply("Gemini's answer has no candidate and names no reason for it.")
    finish = _FINISHES.get(text_or_empty(candidates[0].get("finishReason")), FinishReason.MALFORMED)
    if finish is FinishReason.REFUSAL:
        return bill.to_reply(AssistantMessage(), finish)
    parts = _candidate_parts(candidates[0])
    if not all(map(_is_usable, parts)):
        return bill.to_reply(AssistantMessage(*_join_texts(list(filter(_is_usable, parts)))), FinishReason.MALFORMED)
    return bill.to_reply(_build_message(parts, request, profile), finish)


def _is_blocked(answer: dict[str, Any]) -> bool:
    """Tell whether Google refused the prompt."""
    feedback = answer.get("promptFeedback")
    return isinstance(feedback, dict) and bool(feedback.get("blockReason"))


def _candidate_parts(candidate: dict[str, Any]) -> list[Any]:
    """Return the parts that are not empty. Content that is not a list of parts counts as one unknown part."""
    content = candidate.get("content")
    parts = content.get("parts") if isinstance(content, dict) else content
    if parts is None:
        return []
    if not isinstance(parts, list):
        return [None]
    return [
        part for part in parts if not isinstance(part, dict) or part.get("text") or part.keys() - {"text", "thought"}
    ]


def _is_usable(part: Any) -> bool:
    if not isinstance(part, dict) or part.keys() - _KNOWN or not isinstance(part.get("text") or "", str):
        return False
    call = part.get("functionCall")
    return "functionCall" not in part or (isinstance(call, dict) and bool(text_or_empty(call.get("name"))))


def _join_texts(parts: list[dict[str, Any]]) -> tuple[str, str]:
    said = (text_or_empty(part.get("text")) for part in parts if not part.get("thought"))
    thought = (text_or_empty(part.get("text")) for part in parts if part.get("thought"))
    return "".join(said), "".join(thought)


def _build_message(parts: list[dict[str, Any]], request: ModelRequest, profile: ModelProfile) -> AssistantMessage:
    asked = [part["functionCall"] for part in parts if "functionCall" in part]
    ids = assign_call_ids(request, [call.get("id") for call in asked])
    said, thought = _join_texts(parts)
    kept = [_repair_part(part) for part in parts]
    signed = all(isinstance(part.get("thoughtSignature", ""), str) for part in parts)
    return AssistantMessage(
        said,
        thought,
        tuple(_tool_call(call, call_id) for call_id, call in zip(ids, asked, strict=True)),
        ProviderEcho(WIRE, profile.model, kept) if kept and signed else None,
    )


def _tool_call(call: dict[str, Any], call_id: str) -> ToolCall:
    given = call.get("args")
    return ToolCall(call_id, text_or_empty(call["name"]), arguments_to_text({} if given is None else given))


def _repair_part(part: dict[str, Any]) -> dict[str, Any]:
    """Return the part unchanged, except for what the API would refuse in a request."""
    repaired: dict[str, Any] = {key: bool(value) if key == "thought" else value for key, value in part.items()}
    if repaired.get("text", "") is None:
        del repaired["text"]
    if "functionCall" in repaired:
        repaired["functionCall"] = _repair_call(repaired["functionCall"])
    return repaired


def _repair_call(call: dict[str, Any]) -> dict[str, Any]:
    repaired = {**call, "name": to_legal_function_name(text_or_empty(call["name"]))}
    if not isinstance(call.get("id", ""), str):
        del repaired["id"]
    if not isinstance(call.get("args", {}), dict):
        repaired["args"] = {} if call["args"] is None else arguments_to_object(arguments_to_text(call["args"]))
    return repaired


def _read_usage(raw: Any) -> ReplyUsage:
    """Read the usage. The prompt's count includes cached tokens; the candidates' count excludes thoughts."""
    cached = token_count(raw, "cachedContentTokenCount")
    prompt = token_count(raw, "promptTokenCount") + token_count(raw, "toolUsePromptTokenCount")
    thoughts = token_count(raw, "thoughtsTokenCount")
    usage = TokenUsage(
        fresh=max(prompt - cached, 0),
        cache_read=cached,
        output=token_count(raw, "candidatesTokenCount") + thoughts,
        reasoning=thoughts,
    )
    return reply_usage(usage, raw, "promptTokenCount", "candidatesTokenCount", "totalTokenCount")


# Streams

_PIECE = frozenset({"text", "thought"})


class GeminiAssembler:
    """Assemble the chunks of a stream into the answer that a call without streaming would have returned.

    Pieces of text are joined. A part with a signature is never joined to another one, because the signature is valid
    only at its position.
    """

    def __init__(self) -> None:
        self._answer: dict[str, Any] = {}
        self._candidate: dict[str, Any] = {}
        self._parts: list[Any] = []
        self._pieces: list[str] = []  # the pieces of the last part while that is plain text
        self._calls = 0

    def feed(self, event: str, content: Any) -> Iterator[Delta]:
        if event == "[DONE]":  # sent by some gateways
            return
        if has_error(content):
            raise error_from_body(content)
        if not isinstance(content, dict):
            raise ProviderReplyUnreadable("Gemini's stream has an event that is not an object.")
        self._answer.update(content)
        candidates = list_or_empty(content.get("candidates"))
        if not candidates or not isinstance(candidates[0], dict):
            return
        self._candidate.update({key: value for key, value in candidates[0].items() if value is not None})
        turn = candidates[0].get("content")
        parts = turn.get("parts") if isinstance(turn, dict) else turn
        for part in parts if isinstance(parts, list) else () if parts is None else (parts,):
            yield from self._add_part(part)

    def result(self) -> dict[str, Any]:
        feedback = self._answer.get("promptFeedback")
        blocked = isinstance(feedback, dict) and feedback.get("blockReason")
        if not self._candidate and blocked:
            return self._answer
        if not self._candidate.get("finishReason"):
            raise ProviderReplyUnreadable("Gemini's stream ended before the answer did.")
        self._close_text()
        turn = {"role": "model", "parts": self._parts}
        return {**self._answer, "candidates": [{**self._candidate, "content": turn}]}

    def _add_part(self, part: Any) -> Iterator[Delta]:
        """Add a part to the answer. Unknown parts are kept as they are; `decode_reply` judges them."""
        if isinstance(part, dict) and part.keys() <= _PIECE and isinstance(part.get("text") or "", str):
            if not part.get("text"):
                return
            if not self._pieces or self._parts[-1].get("thought") != part.get("thought"):
                self._close_text()
                self._parts.append(part)
            self._pieces.append(part["text"])
        else:
            self._close_text()
            self._parts.append(part)
        if isinstance(part, dict):
            yield from self._part_deltas(part)

    def _close_text(self) -> None:
        if self._pieces:
            self._parts[-1] = {**self._parts[-1], "text": "".join(self._pieces)}
            self._pieces = []

    def _part_deltas(self, part: dict[str, Any]) -> Iterator[Delta]:
        call = part.get("functionCall")
        if isinstance(call, dict):
            yield CallDelta(self._calls, text_or_empty(call.get("name")), arguments_to_text(call.get("args") or {}))
            self._calls += 1
        elif said := text_or_empty(part.get("text")):
            yield ReasoningDelta(said) if part.get("thought") else TextDelta(said)


def gemini_wire() -> WireFormat:
    """Return the format of the Gemini API, where the URL decides whether the answer is streamed."""
    return WireFormat(
        WIRE,
        lambda request, profile, **_: encode_request(request, profile),
        decode_reply,
        GeminiAssembler,
        classify_error,
    )
