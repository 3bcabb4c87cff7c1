"""Anthropic's Messages API as a surface: what an admitted request is answered with, whole and as events.

Vertex is the same surface with the model in the path. Refusing is the business of the rules.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.standins.vendors.anthropic_rules import Memory, check
from tests.standins.vendors.anthropic_thinking import Replayed, conversation, replay, sign
from tests.standins.vendors.cache import AnthropicCache, Reading
from tests.standins.vendors.models import Claude, claude
from tests.standins.vendors.refusals import Raw, Refusal
from tests.standins.vendors.script import Call, Fault, Part, Turn
from tests.standins.vendors.surfaces import Answer, Asked, Conduct, Numbers, frame, pieces
from tests.standins.vendors.tokens import text_tokens

ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


class AnthropicSurface:
    def __init__(self, conduct: Conduct, clock: Callable[[], float], numbers: Numbers) -> None:
        self._conduct = conduct
        self._clock = clock
        self._numbers = numbers
        self._memory = Memory()
        self._caches: dict[str, AnthropicCache] = {}

    def admit(self, asked: Asked) -> "AnthropicPending":
        model = claude(asked.model)
        if model is None:
            # facts/llm.md 1: NotFound is 404; that an unknown model is one is from memory
            raise Refusal(404, "not_found_error", f"model: {asked.model}")
        mismatch = check(asked, model, self._conduct, self._memory)
        replayed = replay(asked.body, model, mismatch)
        cache = self._cache(asked)
        reading = cache.read(replayed.body, model.id)
        window = self._conduct.window_tokens or model.window
        if reading.total > window:
            # facts/llm.md 1: too long a prompt is a 400 invalid_request_error with this text
            text = f"prompt is too long: {reading.total} tokens > {window} maximum"
            raise Refusal(400, "invalid_request_error", text)
        return AnthropicPending(asked, model, replayed, cache, reading, self._numbers, self._memory)

    def refused(self, refusal: Refusal) -> Raw:
        body = {"type": refusal.type, "message": refusal.message}
        return {"type": "error", "error": body, "request_id": self._numbers.take("req_")}

    def failed(self, fault: Fault) -> Refusal:
        usual = ERROR_TYPES.get(fault.status, "api_error" if fault.status >= 500 else "invalid_request_error")
        return Refusal(fault.status, fault.type or usual, fault.message)

    def error_frame(self, fault: Fault) -> bytes:
        if fault.type and fault.type.isupper():
            # from memory, not in the facts: on Vertex Google itself may break a stream, with its own kind of error
            google = {"code": fault.status, "message": fault.message, "status": fault.type}
            return frame({"error": google})
        # facts/llm.md 1: an error inside a stream comes with HTTP 200 and is known by its type alone
        error = {"type": fault.type or "overloaded_error", "message": fault.message}
        return frame({"type": "error", "error": error}, "error")

    def _cache(self, asked: Asked) -> AnthropicCache:
        # facts/llm.md 1, prompt caching: caches are per workspace or project
        scope = asked.path.partition("/publishers/")[0]
        if scope not in self._caches:
            self._caches[scope] = AnthropicCache(
                self._clock,
                minimum=self._conduct.cache_minimum,
                tool_choice_invalidates=self._conduct.tool_choice_invalidates,
            )
        return self._caches[scope]


@dataclass(slots=True)
class AnthropicPending:
    asked: Asked
    model: Claude
    replayed: Replayed
    cache: AnthropicCache
    reading: Reading
    numbers: Numbers
    memory: Memory
    usage: Raw = field(default_factory=dict)

    def started(self) -> None:
        self.cache.commit(self.reading)

    def answer(self, turn: Turn) -> Answer:
        content = self._content(turn)
        stop = turn.stop or ("tool_use" if any(block["type"] == "tool_use" for block in content) else "end_turn")
        thought = text_tokens(turn.thinking) if self._thinks() else 0
        self.usage = {**self.reading.usage, **_output(turn, thought, content), "service_tier": "standard"}
        if stop == "pause_turn":
            self.memory.paused.add(conversation(self.asked.body, content))
        message = {
            "id": self.numbers.take("msg_"),
            "type": "message",
            "role": "assistant",
            "model": self.asked.model,
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
            "stop_details": _details(stop),
            "usage": self.usage,
        }
        if self.replayed.transformations:
            message["input_transformations"] = list(self.replayed.transformations)
        return Answer(message, tuple(self._events(message, turn.calls)), self.usage)

    def unscripted(self) -> Answer | None:
        # facts/llm.md 1: max_tokens 0 fills the cache and says nothing
        if self.asked.body["max_tokens"] != 0:
            return None
        return self.answer(Turn(stop="max_tokens", output_tokens=0))

    def _thinks(self) -> bool:
        asked = (self.asked.body.get("thinking") or {}).get("type")
        return self.model.thinks_unasked if asked is None else asked != "disabled"

    def _content(self, turn: Turn) -> list[Raw]:
        content: list[Raw] = []
        for part in turn.parts or (Part("thinking", turn.thinking), Part("text", turn.text)):
            if part.text and part.kind == "text":
                content.append({"type": "text", "text": part.text})
            elif part.text and self._thinks():
                content.append(self._thought(part, content))
        if self._may_call():
            content.extend(self._call(call) for call in turn.calls)
        return content

    def _thought(self, part: Part, before: list[Raw]) -> Raw:
        if part.kind == "redacted_thinking":
            return {"type": "redacted_thinking", "data": sign(self.asked.body, self.model, "", before)}
        display = (self.asked.body.get("thinking") or {}).get("display")
        hidden = display == "omitted" or (display is None and self.model.hides_thinking)
        shown = "" if hidden else part.text
        return {
            "type": "thinking",
            "thinking": shown,
            "signature": sign(self.asked.body, self.model, shown, before),
        }

    def _may_call(self) -> bool:
        choice = (self.asked.body.get("tool_choice") or {}).get("type")
        return bool(self.asked.body.get("tools")) and choice != "none"

    def _call(self, call: Call) -> Raw:
        name = call.id or self.numbers.take("toolu_")
        return {"type": "tool_use", "id": name, "name": call.name, "input": call.arguments_object or {}}

    def _events(self, message: Raw, calls: tuple[Call, ...]) -> Iterator[bytes]:
        opening = {**message, "content": [], "stop_reason": None, "stop_details": None}
        opening["usage"] = {**self.usage, "output_tokens": 1}
        opening.pop("input_transformations", None)
        yield frame({"type": "message_start", "message": opening}, "message_start")
        yield frame({"type": "ping"}, "ping")
        texts = iter(calls)
        for index, block in enumerate(message["content"]):
            raw = next(texts).arguments_text if block["type"] == "tool_use" else ""
            yield from _block_events(index, block, raw)
        delta = {key: message[key] for key in ("stop_reason", "stop_sequence", "stop_details")}
        closing: Raw = {"type": "message_delta", "delta": delta, "usage": _delta_usage(self.usage)}
        if self.replayed.transformations:
            closing["input_transformations"] = list(self.replayed.transformations)
        yield frame(closing, "message_delta")
        yield frame({"type": "message_stop"}, "message_stop")


def _block_events(index: int, block: Raw, raw_input: str) -> Iterator[bytes]:
    kind = block["type"]
    empty: Raw = {
        "text": {"type": "text", "text": ""},
        "thinking": {"type": "thinking", "thinking": "", "signature": ""},
        "redacted_thinking": block,
        "tool_use": {**block, "input": {}},
    }[kind]
    yield frame({"type": "content_block_start", "index": index, "content_block": empty}, "content_block_start")
    for delta in _deltas(block, raw_input):
        yield frame({"type": "content_block_delta", "index": index, "delta": delta}, "content_block_delta")
    yield frame({"type": "content_block_stop", "index": index}, "content_block_stop")


def _deltas(block: Raw, raw_input: str) -> Iterator[Raw]:
    if block["type"] == "text":
        yield from ({"type": "text_delta", "text": piece} for piece in pieces(block["text"]))
    elif block["type"] == "thinking":
        yield from ({"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"]))
        yield {"type": "signature_delta", "signature": block["signature"]}
    elif block["type"] == "tool_use":
        yield from ({"type": "input_json_delta", "partial_json": piece} for piece in pieces(raw_input))


def _output(turn: Turn, thought: int, content: list[Raw]) -> Raw:
    # facts/llm.md 1: output_tokens includes thinking
    calls = turn.calls if any(block["type"] == "tool_use" for block in content) else ()
    said = text_tokens(turn.text) + sum(text_tokens(call.name + call.arguments_text) for call in calls)
    total = turn.output_tokens if turn.output_tokens is not None else max(1, said + thought)
    return {"output_tokens": total, "output_tokens_details": {"thinking_tokens": min(thought, total)}}


def _delta_usage(usage: Raw) -> Raw:
    # facts/llm.md 1: the usage of message_delta is cumulative
    return {key: value for key, value in usage.items() if key not in {"cache_creation", "service_tier"}}


def _details(stop: str) -> Raw | None:
    if stop != "refusal":
        return None
    return {"type": "refusal", "category": "general_harms", "explanation": "the script refuses"}
