"""A generateContent answer as a reply: text, thoughts, calls, and the parts to replay with their signatures.

Total: an answer with a candidate becomes a reply, whatever is in it. A part or a finish reason that we don't know is
never taken for a stop, but it was billed: such an answer is malformed, and its usage is kept. (Encoding raises
instead: there nothing was spent yet.) Only what is no answer at all is unreadable.
"""

from typing import Any

from hummingbird.adapters.models.calls import argument_object, argument_text, call_ids
from hummingbird.adapters.models.gemini.encode import WIRE, legal_function
from hummingbird.adapters.models.gemini.errors import error_inside
from hummingbird.adapters.models.reading import Used, count, names_error, text, used
from hummingbird.adapters.models.wire import Profile
from hummingbird.domain.errors import ReplyUnreadable
from hummingbird.domain.journal import Finish
from hummingbird.domain.messages import AssistantMessage, Echo, ToolCall
from hummingbird.domain.usage import Usage
from hummingbird.ports.model import ModelReply, ModelRequest

# By their names: the list grows, and reasons that nobody listed have been seen. What is not here (OTHER, LANGUAGE,
# MALFORMED_FUNCTION_CALL, UNEXPECTED_TOOL_CALL, …) gave nothing that could be used, and nothing was forbidden.
_FINISHES = {
    "STOP": Finish.STOP,
    "MAX_TOKENS": Finish.LENGTH,
    "SAFETY": Finish.REFUSAL,
    "RECITATION": Finish.REFUSAL,
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
    if names_error(answer):
        raise error_inside(answer)
    if not isinstance(answer, dict):
        raise ReplyUnreadable("Gemini's answer is not an object.")
    bill = _used(answer.get("usageMetadata"))
    candidates = answer.get("candidates")
    if not isinstance(candidates, list) or not candidates or not isinstance(candidates[0], dict):
        if _blocked(answer):
            return bill.reply(AssistantMessage(), Finish.REFUSAL)
        return bill.unusable("Gemini's answer has no candidate and names no reason for it.")
    finish = _FINISHES.get(text(candidates[0].get("finishReason")), Finish.MALFORMED)
    if finish is Finish.REFUSAL:
        return bill.reply(AssistantMessage(), finish)
    parts = _parts(candidates[0])
    if not all(map(_usable, parts)):
        return bill.reply(AssistantMessage(*_words(list(filter(_usable, parts)))), Finish.MALFORMED)
    return bill.reply(_message(parts, request, profile), finish)


def _blocked(answer: dict[str, Any]) -> bool:
    """The prompt was refused, so there is nothing to read."""
    feedback = answer.get("promptFeedback")
    return isinstance(feedback, dict) and bool(feedback.get("blockReason"))


def _parts(candidate: dict[str, Any]) -> list[Any]:
    """Without those that say nothing. Content that is no list of parts is one part that nobody knows."""
    content = candidate.get("content")
    parts = content.get("parts") if isinstance(content, dict) else content
    if parts is None:
        return []
    if not isinstance(parts, list):
        return [None]
    return [
        part for part in parts if not isinstance(part, dict) or part.get("text") or part.keys() - {"text", "thought"}
    ]


def _usable(part: Any) -> bool:
    if not isinstance(part, dict) or part.keys() - _KNOWN or not isinstance(part.get("text") or "", str):
        return False
    call = part.get("functionCall")
    return "functionCall" not in part or (isinstance(call, dict) and bool(text(call.get("name"))))


def _words(parts: list[dict[str, Any]]) -> tuple[str, str]:
    said = (text(part.get("text")) for part in parts if not part.get("thought"))
    thought = (text(part.get("text")) for part in parts if part.get("thought"))
    return "".join(said), "".join(thought)


def _message(parts: list[dict[str, Any]], request: ModelRequest, profile: Profile) -> AssistantMessage:
    asked = [part["functionCall"] for part in parts if "functionCall" in part]
    ids = call_ids(request, [call.get("id") for call in asked])
    said, thought = _words(parts)
    kept = [_sendable(part) for part in parts]
    signed = all(isinstance(part.get("thoughtSignature", ""), str) for part in parts)
    return AssistantMessage(
        said,
        thought,
        tuple(_call(call, call_id) for call_id, call in zip(ids, asked, strict=True)),
        Echo(WIRE, profile.model, kept) if kept and signed else None,
    )


def _call(call: dict[str, Any], call_id: str) -> ToolCall:
    given = call.get("args")
    return ToolCall(call_id, text(call["name"]), argument_text({} if given is None else given))


def _sendable(part: dict[str, Any]) -> dict[str, Any]:
    """The part as it may be sent back: verbatim, but for what would be refused in a request."""
    mended: dict[str, Any] = {key: bool(value) if key == "thought" else value for key, value in part.items()}
    if mended.get("text", "") is None:
        del mended["text"]
    if "functionCall" in mended:
        mended["functionCall"] = _sendable_call(mended["functionCall"])
    return mended


def _sendable_call(call: dict[str, Any]) -> dict[str, Any]:
    mended = {**call, "name": legal_function(text(call["name"]))}
    if not isinstance(call.get("id", ""), str):
        del mended["id"]
    if not isinstance(call.get("args", {}), dict):
        mended["args"] = {} if call["args"] is None else argument_object(argument_text(call["args"]))
    return mended


def _used(raw: Any) -> Used:
    """The prompt count includes what came from the cache, the candidates' count excludes thoughts."""
    cached = count(raw, "cachedContentTokenCount")
    prompt = count(raw, "promptTokenCount") + count(raw, "toolUsePromptTokenCount")
    thoughts = count(raw, "thoughtsTokenCount")
    usage = Usage(
        fresh=max(prompt - cached, 0),
        cache_read=cached,
        output=count(raw, "candidatesTokenCount") + thoughts,
        reasoning=thoughts,
    )
    return used(usage, raw, "promptTokenCount", "candidatesTokenCount", "totalTokenCount")
