"""Gemini's generateContent as a surface, for API keys and for Vertex: answers whole and as events.

Refusing is the business of the rules.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.standins.vendors.cache_automatic import FreeCache, PrefixReading
from tests.standins.vendors.gemini_fields import field_of
from tests.standins.vendors.gemini_rules import check, thought_seal
from tests.standins.vendors.models import Gemini, gemini
from tests.standins.vendors.refusals import Raw, Refusal
from tests.standins.vendors.script import Call, Fault, Turn
from tests.standins.vendors.surfaces import Answer, Asked, Conduct, Numbers, frame, pieces
from tests.standins.vendors.tokens import text_tokens

ERROR_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


class GeminiSurface:
    def __init__(self, conduct: Conduct, clock: Callable[[], float], numbers: Numbers) -> None:
        self._conduct = conduct
        self._numbers = numbers
        self._cache = FreeCache(clock)

    def admit(self, asked: Asked) -> "GeminiPending":
        model = gemini(asked.model)
        if model is None:
            version = asked.path.split("/")[2]
            text = f"models/{asked.model} is not found for API version {version}, or is not supported"
            # from memory, not in the facts: an unknown model is NOT_FOUND
            raise Refusal(404, "NOT_FOUND", text)
        check(asked, model)
        minimum = self._conduct.cache_minimum or model.cache_minimum
        scope = asked.path.partition("/publishers/")[0]
        reading = self._cache.read([scope, model.id], _units(asked.body), minimum)
        window = self._conduct.window_tokens or model.window
        if reading.total > window:
            # from memory, not in the facts: the text of Gemini's overflow
            text = f"The input token count ({reading.total}) exceeds the maximum number of tokens allowed ({window})."
            raise Refusal(400, "INVALID_ARGUMENT", text)
        return GeminiPending(asked, model, self._cache, reading, self._numbers)

    def refused(self, refusal: Refusal) -> Raw:
        error: Raw = {"code": refusal.status, "message": refusal.message, "status": refusal.type}
        if refusal.code:
            kind = "type.googleapis.com/google.rpc.ErrorInfo"
            error["details"] = [{"@type": kind, "reason": refusal.code, "domain": "googleapis.com"}]
        return {"error": error}

    def failed(self, fault: Fault) -> Refusal:
        return Refusal(fault.status, fault.type or ERROR_STATUSES.get(fault.status, "UNKNOWN"), fault.message)

    def error_frame(self, fault: Fault) -> bytes:
        error = {"code": 503, "message": fault.message, "status": fault.type or "UNAVAILABLE"}
        return frame({"error": error})


@dataclass(slots=True)
class GeminiPending:
    asked: Asked
    model: Gemini
    cache: FreeCache
    reading: PrefixReading
    numbers: Numbers

    def started(self) -> None:
        self.cache.commit(self.reading)

    def unscripted(self) -> Answer | None:
        return None

    def answer(self, turn: Turn) -> Answer:
        if turn.stop and turn.stop.startswith("block:"):
            return self._blocked(turn.stop.removeprefix("block:"))
        stop = turn.stop or self._stop(turn)
        parts = list(self._parts(turn, stop))
        usage = self._usage(turn, parts)
        body = self._response(parts, stop, usage)
        if self._listed():
            # from memory, not in the facts: without alt=sse a stream is one JSON array
            return Answer([body], (), usage)
        return Answer(body, tuple(self._events(parts, stop, usage)), usage)

    def _listed(self) -> bool:
        return self.asked.path.endswith(":streamGenerateContent") and not self.asked.stream

    def _stop(self, turn: Turn) -> str:
        if turn.calls and not self._may_call():
            # facts/llm.md 2: what a tool-hungry model returns when tools are off
            return "UNEXPECTED_TOOL_CALL"
        if any(call.arguments_object is None for call in turn.calls):
            return "MALFORMED_FUNCTION_CALL"
        return "STOP"

    def _may_call(self) -> bool:
        config = field_of(field_of(self.asked.body, "toolConfig") or {}, "functionCallingConfig") or {}
        declared = any(field_of(tool, "functionDeclarations") for tool in self.asked.body.get("tools") or ())
        return declared and field_of(config, "mode") != "NONE"

    def _parts(self, turn: Turn, stop: str) -> Iterator[Raw]:
        if turn.thinking and self._includes_thoughts():
            yield {"text": turn.thinking, "thought": True}
        calls = [call for call in turn.calls if call.arguments_object is not None] if self._may_call() else []
        if turn.text:
            part: Raw = {"text": turn.text}
            if self.model.signs_thoughts and not calls and stop == "STOP":
                part["thoughtSignature"] = self._seal("")
            yield part
        for at, call in enumerate(calls):
            part = {"functionCall": _call(call)}
            # facts/llm.md 2: of parallel calls only the first carries the signature
            if self.model.signs_thoughts and at == 0:
                part["thoughtSignature"] = self._seal(call.name)
            yield part

    def _seal(self, function: str) -> str:
        return thought_seal(self.asked.surface, self.model, function)

    def _includes_thoughts(self) -> bool:
        config = field_of(field_of(self.asked.body, "generationConfig") or {}, "thinkingConfig") or {}
        return bool(field_of(config, "includeThoughts"))

    def _response(self, parts: list[Raw], stop: str | None, usage: Raw) -> Raw:
        # facts/llm.md 2: malformed and unexpected calls often come with empty content
        candidate: Raw = {"content": {"role": "model", "parts": parts} if parts else {}, "index": 0}
        if stop:
            candidate["finishReason"] = stop
        if stop == "MALFORMED_FUNCTION_CALL":
            candidate["finishMessage"] = "Malformed function call"
        return {
            "candidates": [candidate],
            "usageMetadata": usage,
            "modelVersion": self.model.id,
            "responseId": self.numbers.take("resp"),
        }

    def _blocked(self, reason: str) -> Answer:
        # facts/llm.md 2: promptFeedback.blockReason may leave candidates empty
        usage = {"promptTokenCount": self.reading.total, "totalTokenCount": self.reading.total}
        body = {
            "promptFeedback": {"blockReason": reason},
            "usageMetadata": usage,
            "modelVersion": self.model.id,
            "responseId": self.numbers.take("resp"),
        }
        return Answer(body, (frame(body),), usage)

    def _events(self, parts: list[Raw], stop: str, usage: Raw) -> Iterator[bytes]:
        early = {key: value for key, value in usage.items() if key.startswith(("prompt", "cached"))}
        early["totalTokenCount"] = usage["promptTokenCount"]
        for part in parts:
            for piece in _part_pieces(part):
                yield frame(self._response([piece], None, early))
        yield frame(self._response([], stop, usage))

    def _usage(self, turn: Turn, parts: list[Raw]) -> Raw:
        # facts/llm.md 2: prompt includes cached, candidates exclude thoughts, total is the sum
        calls = turn.calls if any("functionCall" in part for part in parts) else ()
        said = text_tokens(turn.text) + sum(text_tokens(call.name + call.arguments_text) for call in calls)
        said = said if turn.output_tokens is None else turn.output_tokens
        thought = text_tokens(turn.thinking)
        usage = {
            "promptTokenCount": self.reading.total,
            "candidatesTokenCount": said,
            "totalTokenCount": self.reading.total + said + thought,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": self.reading.total}],
        }
        if self.reading.cached:
            usage["cachedContentTokenCount"] = self.reading.cached
        if thought:
            usage["thoughtsTokenCount"] = thought
        return usage


def _call(call: Call) -> Raw:
    found: Raw = {"name": call.name, "args": call.arguments_object}
    return {"id": call.id, **found} if call.id else found


def _part_pieces(part: Raw) -> Iterator[Raw]:
    """Text in pieces; a signature on text arrives last, in a part of its own."""
    if "text" not in part:
        yield part
        return
    rest = {key: value for key, value in part.items() if key not in {"text", "thoughtSignature"}}
    yield from ({"text": piece, **rest} for piece in pieces(part["text"]))
    if "thoughtSignature" in part:
        # facts/llm.md 2: a part may consist of a signature only
        yield {"text": "", "thoughtSignature": part["thoughtSignature"]}


def _units(body: Raw) -> list[object]:
    head: list[object] = [{"tools": body.get("tools")}] if body.get("tools") else []
    system = field_of(body, "systemInstruction")
    if system:
        head.append({"systemInstruction": system})
    for content in body.get("contents") or ():
        head.extend({"role": content.get("role", "user"), "part": part} for part in content.get("parts") or ())
    return head
