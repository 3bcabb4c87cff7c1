"""OpenAI's Chat Completions as a surface, and the servers that imitate it with habits of their own.

Refusing is the business of the rules; the habits of other people's servers are switched on one by one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.standins.vendors.cache_automatic import FreeCache, MarkedCache, PrefixReading
from tests.standins.vendors.models import gpt
from tests.standins.vendors.openai_chat_rules import check
from tests.standins.vendors.openai_errors import error_body, error_object, failed, invalid
from tests.standins.vendors.openai_prompt import OpenAICaches, chat_units
from tests.standins.vendors.refusals import Raw, Refusal
from tests.standins.vendors.script import Call, Fault, Turn
from tests.standins.vendors.surfaces import Answer, Asked, Conduct, Numbers, frame, pieces
from tests.standins.vendors.tokens import text_tokens

COMPATIBLE_WINDOW = 131_072
_CREATED = 1_794_700_000


class ChatSurface:
    def __init__(self, conduct: Conduct, clock: Callable[[], float], numbers: Numbers) -> None:
        self._conduct = conduct
        self._numbers = numbers
        self._caches = OpenAICaches(clock)

    def admit(self, asked: Asked) -> "ChatPending":
        strict = self._conduct.openai == "strict"
        model = gpt(asked.model) if strict else None
        if strict and model is None:
            text = f"The model `{asked.model}` does not exist or you do not have access to it."
            # from memory, not in the facts: an unknown model is a 404 model_not_found
            raise Refusal(404, "invalid_request_error", text, code="model_not_found")
        check(asked, model, self._conduct)
        cache, reading = self._caches.read(asked, model, chat_units(asked.body))
        window = self._conduct.window_tokens or (model.window if model else COMPATIBLE_WINDOW)
        if reading.total > window:
            reading = self._overflow(reading, window)
        return ChatPending(asked, self._conduct, cache, reading, self._numbers)

    def refused(self, refusal: Refusal) -> Raw | str:
        return error_body(refusal, self._conduct)

    def failed(self, fault: Fault) -> Refusal:
        return failed(fault)

    def error_frame(self, fault: Fault) -> bytes:
        return frame({"error": error_object(fault)})

    def _overflow(self, reading: PrefixReading, window: int) -> PrefixReading:
        if self._conduct.has("front_cut"):
            # facts/llm.md 3, Ollama: the prompt is cut from the front without a word
            return PrefixReading(window, 0, 0, ())
        # facts/llm.md 3: code context_length_exceeded; on compatible servers only the text tells
        raise invalid(
            f"This model's maximum context length is {window} tokens. However, your messages resulted in "
            f"{reading.total} tokens. Please reduce the length of the messages.",
            param="messages",
            code="context_length_exceeded",
        )


@dataclass(slots=True)
class ChatPending:
    asked: Asked
    conduct: Conduct
    cache: FreeCache | MarkedCache
    reading: PrefixReading
    numbers: Numbers

    def started(self) -> None:
        self.cache.commit(self.reading)

    def unscripted(self) -> Answer | None:
        return None

    def answer(self, turn: Turn) -> Answer:
        if self.conduct.has("plain_text_body"):
            # facts/llm.md 3, compatible servers: 200 with plain text
            return Answer(turn.text, (turn.text.encode(),), None)
        if self.conduct.has("error_in_200"):
            # facts/llm.md 3, OpenRouter: errors inside a 200 with the HTTP status as code
            body = {"error": {"message": turn.text or "provider returned error", "code": 502}}
            return Answer(body, (frame(body), b"data: [DONE]\n\n"), None)
        calls = turn.calls if self._may_call() else ()
        stop = turn.stop or ("tool_calls" if calls else "stop")
        usage = self._usage(turn, calls)
        wired = [self._call(call) for call in calls]
        head: Raw = {
            "id": self.numbers.take("chatcmpl-"),
            "created": None if self.conduct.has("null_created") else _CREATED,
            "model": self.asked.model,
        }
        return Answer(
            self._whole(head, turn, wired, stop, usage),
            tuple(self._events(head, turn, wired, stop, usage)),
            usage,
        )

    def _whole(self, head: Raw, turn: Turn, calls: list[Raw], stop: str, usage: Raw | None) -> Raw:
        refused = stop == "refusal"
        blank = "" if self.conduct.has("empty_content") else None
        message: Raw = {"role": "assistant", "content": blank if refused else self._content(turn.text) or blank}
        message["refusal"] = turn.text if refused else None
        message |= self._reasoning(turn.thinking)
        if calls:
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self._finish(stop)}
        choices = [] if self.conduct.has("empty_choices") else [choice]
        body: Raw = {**head, "object": "chat.completion", "choices": choices}
        return body if usage is None else {**body, "usage": usage}

    def _events(self, head: Raw, turn: Turn, calls: list[Raw], stop: str, usage: Raw | None) -> Iterator[bytes]:
        def chunk(delta: Raw, finish: str | None = None) -> bytes:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
            return frame({**head, "object": "chat.completion.chunk", "choices": [choice]})

        yield chunk({"role": "assistant", "content": ""})
        for piece in pieces(turn.thinking):
            if reasoning := self._reasoning(piece):
                yield chunk(reasoning)
        for piece in pieces(turn.text):
            yield chunk({"refusal": piece} if stop == "refusal" else {"content": self._content(piece)})
        for index, call in enumerate(calls):
            yield from (chunk({"tool_calls": [delta]}) for delta in _call_deltas(index, call))
        yield chunk({}, self._finish(stop))
        if usage is not None and (self.asked.body.get("stream_options") or {}).get("include_usage"):
            # facts/llm.md 3: streamed usage only with stream_options.include_usage
            yield frame({**head, "object": "chat.completion.chunk", "choices": [], "usage": usage})
        yield b"data: [DONE]\n\n"

    def _may_call(self) -> bool:
        return bool(self.asked.body.get("tools")) and self.asked.body.get("tool_choice") != "none"

    def _finish(self, stop: str) -> str | None:
        # facts/llm.md 3, compatible servers: finish_reason null or ""
        if self.conduct.has("null_finish_reason"):
            return None
        if self.conduct.has("empty_finish_reason"):
            return ""
        return "stop" if stop == "refusal" else stop

    def _reasoning(self, thinking: str) -> Raw:
        # facts/llm.md 3, vLLM: `reasoning` on new versions, `reasoning_content` on old ones; OpenAI shows none here
        if thinking and self.conduct.has("reasoning"):
            return {"reasoning": thinking}
        if thinking and self.conduct.has("reasoning_content"):
            return {"reasoning_content": thinking}
        return {}

    def _call(self, call: Call) -> Raw:
        # facts/llm.md 3, compatible servers: ids missing or repeated, arguments "" or already an object
        arguments: Any = call.arguments_text
        if self.conduct.has("object_arguments"):
            arguments = call.arguments_object
        if self.conduct.has("empty_arguments") and not call.arguments_object:
            arguments = ""
        wired: Raw = {"type": "function", "function": {"name": call.name, "arguments": arguments}}
        if self.conduct.has("missing_call_ids"):
            return wired
        if self.conduct.has("strict_ids"):
            return {"id": self.numbers.take("")[-9:], **wired}
        repeated = "call_0" if self.conduct.has("duplicate_call_ids") else None
        return {"id": repeated or call.id or self.numbers.take("call_"), **wired}

    def _content(self, text: str) -> Any:
        # from memory of Mistral's API, not in the facts: content may be a list of parts
        return [{"type": "text", "text": text}] if text and self.conduct.has("content_parts") else text

    def _usage(self, turn: Turn, calls: tuple[Call, ...]) -> Raw | None:
        if self.conduct.has("no_usage"):
            return None
        # facts/llm.md 3: prompt_tokens includes cached, completion_tokens includes reasoning
        thought = text_tokens(turn.thinking)
        said = text_tokens(turn.text) + sum(text_tokens(call.name + call.arguments_text) for call in calls)
        out = turn.output_tokens if turn.output_tokens is not None else max(1, said + thought)
        usage: Raw = {
            "prompt_tokens": self.reading.total,
            "completion_tokens": out,
            "total_tokens": self.reading.total + out,
        }
        if self.conduct.openai == "strict":
            details = {"cached_tokens": self.reading.cached, "cache_write_tokens": self.reading.written}
            usage["prompt_tokens_details"] = {**details, "audio_tokens": 0}
            usage["completion_tokens_details"] = {"reasoning_tokens": min(thought, out), "audio_tokens": 0}
        return usage


def _call_deltas(index: int, call: Raw) -> Iterator[Raw]:
    """The first delta names the call, the rest bring its arguments."""
    arguments = call["function"]["arguments"]
    whole = not isinstance(arguments, str)
    opening = {"name": call["function"]["name"], "arguments": arguments if whole else ""}
    yield {**call, "index": index, "function": opening}
    for piece in [] if whole else pieces(arguments):
        yield {"index": index, "function": {"arguments": piece}}
