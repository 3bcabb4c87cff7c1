"""A generateContent answer as a reply: text, thoughts, calls, and the parts to replay with their signatures."""

from typing import Any

from hummingbird.adapters.models.calls import argument_text, call_ids
from hummingbird.adapters.models.gemini.encode import WIRE
from hummingbird.adapters.models.gemini.errors import error_inside
from hummingbird.adapters.models.wire import Profile
from hummingbird.domain.errors import ReplyUnreadable
from hummingbird.domain.journal import Finish
from hummingbird.domain.messages import AssistantMessage, Echo, ToolCall
from hummingbird.domain.text import plain, shortened
from hummingbird.domain.usage import Usage
from hummingbird.ports.model import ModelReply, ModelRequest

# By their names: the list grows, and reasons that nobody listed have been seen. One that is not here is an error.
_FINISHES = {
    "STOP": Finish.STOP,
    "MAX_TOKENS": Finish.LENGTH,
    "MALFORMED_FUNCTION_CALL": Finish.MALFORMED,
    "UNEXPECTED_TOOL_CALL": Finish.MALFORMED,
    "TOO_MANY_TOOL_CALLS": Finish.MALFORMED,
    "MALFORMED_RESPONSE": Finish.MALFORMED,
    "SAFETY": Finish.REFUSAL,
    "RECITATION": Finish.REFUSAL,
    "LANGUAGE": Finish.REFUSAL,
    "BLOCKLIST": Finish.REFUSAL,
    "PROHIBITED_CONTENT": Finish.REFUSAL,
    "SPII": Finish.REFUSAL,
    "IMAGE_SAFETY": Finish.REFUSAL,
    "IMAGE_PROHIBITED_CONTENT": Finish.REFUSAL,
    "IMAGE_RECITATION": Finish.REFUSAL,
    "MODEL_ARMOR": Finish.REFUSAL,
    "JAILBREAK": Finish.REFUSAL,
}
_KNOWN = frozenset({"text", "thought", "thoughtSignature", "functionCall"})


def decode(answer: Any, request: ModelRequest, profile: Profile) -> ModelReply:
    if isinstance(answer, dict) and "error" in answer:
        raise error_inside(answer)
    if not isinstance(answer, dict):
        raise ReplyUnreadable("Gemini's answer is not an object.")
    raw = answer.get("usageMetadata")
    used = raw if isinstance(raw, dict) else {}
    candidate = _candidate(answer)
    finish = Finish.REFUSAL if candidate is None else _finish(candidate)
    if candidate is None or finish is Finish.REFUSAL:
        return ModelReply(AssistantMessage(), finish, _usage(used), used)
    return ModelReply(_message(_parts(candidate), request, profile), finish, _usage(used), used)


def _candidate(answer: dict[str, Any]) -> dict[str, Any] | None:
    """None: the prompt was blocked, there is nothing to read."""
    candidates = answer.get("candidates")
    if isinstance(candidates, list) and candidates and isinstance(candidates[0], dict):
        return candidates[0]
    feedback = answer.get("promptFeedback")
    if isinstance(feedback, dict) and feedback.get("blockReason"):
        return None
    raise ReplyUnreadable("Gemini's answer has no candidate and names no reason for it.")


def _finish(candidate: dict[str, Any]) -> Finish:
    reason = candidate.get("finishReason")
    finish = _FINISHES.get(reason) if isinstance(reason, str) else None
    if finish is None:
        said = shortened(str(candidate.get("finishMessage") or ""), 200)
        raise ReplyUnreadable(f"Gemini stopped for a reason we don't know: {reason or 'none given'}. {said}".rstrip())
    return finish


def _parts(candidate: dict[str, Any]) -> list[dict[str, Any]]:
    content = candidate.get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    if parts is None:
        return []
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise ReplyUnreadable("Gemini's answer has parts that are not objects.")
    for part in parts:
        for key in part.keys() - _KNOWN:
            raise ReplyUnreadable(f"Gemini's answer has a part of unknown type {shortened(str(key), 60)!r}.")
    return [part for part in parts if part.get("text") or part.keys() - {"text", "thought"}]


def _message(parts: list[dict[str, Any]], request: ModelRequest, profile: Profile) -> AssistantMessage:
    texts = [str(part["text"]) for part in parts if part.get("text") and not part.get("thought")]
    thoughts = [str(part["text"]) for part in parts if part.get("text") and part.get("thought")]
    asked = [_asked(part) for part in parts if "functionCall" in part]
    ids = call_ids(request, [call.get("id") for call in asked])
    return AssistantMessage(
        text=plain("".join(texts)),
        reasoning=plain("".join(thoughts)),
        calls=tuple(
            ToolCall(call_id, str(call["name"]), argument_text(call.get("args") or {}))
            for call_id, call in zip(ids, asked, strict=True)
        ),
        echo=Echo(WIRE, profile.model, parts) if parts else None,
    )


def _asked(part: dict[str, Any]) -> dict[str, Any]:
    call = part["functionCall"]
    if not isinstance(call, dict) or not call.get("name"):
        raise ReplyUnreadable("Gemini's answer has a function call without a name.")
    return call


def _usage(raw: dict[str, Any]) -> Usage:
    """The prompt count includes what came from the cache, the candidates' count excludes thoughts."""
    cached = raw.get("cachedContentTokenCount") or 0
    prompt = (raw.get("promptTokenCount") or 0) + (raw.get("toolUsePromptTokenCount") or 0)
    thoughts = raw.get("thoughtsTokenCount") or 0
    return Usage(
        fresh=max(prompt - cached, 0),
        cache_read=cached,
        output=(raw.get("candidatesTokenCount") or 0) + thoughts,
        reasoning=thoughts,
    )
