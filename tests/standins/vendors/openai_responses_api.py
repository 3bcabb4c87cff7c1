"""OpenAI's Responses API as a surface: output items, their events, and what the server keeps when asked to store.

Refusing is the business of the rules.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.standins.vendors.cache_automatic import FreeCache, MarkedCache, PrefixReading
from tests.standins.vendors.models import Gpt, gpt
from tests.standins.vendors.openai_errors import error_body, failed, invalid
from tests.standins.vendors.openai_prompt import OpenAICaches, response_units
from tests.standins.vendors.openai_responses_events import response_events
from tests.standins.vendors.openai_responses_rules import Shelf, check, reasoning_seal
from tests.standins.vendors.refusals import Raw, Refusal
from tests.standins.vendors.script import Call, Fault, Turn
from tests.standins.vendors.surfaces import Answer, Asked, Conduct, Numbers, frame
from tests.standins.vendors.tokens import text_tokens

_CREATED = 1_794_700_000
# facts/llm.md 3: incomplete_details.reason for the stops that leave a response incomplete
_INCOMPLETE = frozenset({"max_output_tokens", "content_filter"})
_ECHOED = ("instructions", "max_output_tokens", "previous_response_id", "prompt_cache_key", "reasoning", "text")


class ResponsesSurface:
    def __init__(self, conduct: Conduct, clock: Callable[[], float], numbers: Numbers) -> None:
        self._conduct = conduct
        self._numbers = numbers
        self._caches = OpenAICaches(clock)
        self._shelf = Shelf()

    def admit(self, asked: Asked) -> "ResponsesPending":
        model = gpt(asked.model)
        if model is None:
            text = f"The requested model '{asked.model}' does not exist."
            # from memory, not in the facts: an unknown model is a 400 model_not_found here
            raise Refusal(400, "invalid_request_error", text, code="model_not_found", param="model")
        items = check(asked, model, self._shelf)
        cache, reading = self._caches.read(asked, model, response_units(asked.body, items))
        if reading.total > (self._conduct.window_tokens or model.window):
            # facts/llm.md 3: context_length_exceeded is a 400 with that code
            text = "Your input exceeds the context window of this model. Please adjust your input and try again."
            raise invalid(text, param="input", code="context_length_exceeded")
        return ResponsesPending(asked, model, items, cache, reading, self._numbers, self._shelf)

    def refused(self, refusal: Refusal) -> Raw | str:
        return error_body(refusal, Conduct())

    def failed(self, fault: Fault) -> Refusal:
        return failed(fault)

    def error_frame(self, fault: Fault) -> bytes:
        code = fault.code or fault.type or "server_error"
        event = {"type": "error", "code": code, "message": fault.message, "param": None, "sequence_number": 99}
        return frame(event, "error")


@dataclass(slots=True)
class ResponsesPending:
    asked: Asked
    model: Gpt
    items: list[Raw]
    cache: FreeCache | MarkedCache
    reading: PrefixReading
    numbers: Numbers
    shelf: Shelf

    def started(self) -> None:
        self.cache.commit(self.reading)

    def unscripted(self) -> Answer | None:
        return None

    def answer(self, turn: Turn) -> Answer:
        calls = turn.calls if self._may_call() else ()
        output = list(self._output(turn, calls))
        usage = self._usage(turn, calls)
        response = self._response(turn.stop, output, usage)
        self.shelf.link(output)
        if self.asked.body.get("store", True):
            self.shelf.keep(response["id"], self.items, output)
        return Answer(response, tuple(response_events(response)), usage)

    def _may_call(self) -> bool:
        return bool(self.asked.body.get("tools")) and self.asked.body.get("tool_choice") != "none"

    def _output(self, turn: Turn, calls: tuple[Call, ...]) -> Iterator[Raw]:
        if turn.thinking and (self.asked.body.get("reasoning") or {}).get("effort") != "none":
            yield self._reasoning(turn.thinking)
        if turn.text:
            yield self._message(turn, bool(calls))
        yield from (self._call(call, turn.stop in _INCOMPLETE) for call in calls)

    def _reasoning(self, thinking: str) -> Raw:
        name = self.numbers.take("rs_")
        summarised = (self.asked.body.get("reasoning") or {}).get("summary")
        summary = [{"type": "summary_text", "text": thinking}] if summarised else []
        # facts/llm.md 3: encrypted_content is populated by default
        sealed = reasoning_seal(name, self.model)
        return {"id": name, "type": "reasoning", "summary": summary, "encrypted_content": sealed}

    def _message(self, turn: Turn, commentary: bool) -> Raw:
        part: Raw = {"type": "output_text", "text": turn.text, "annotations": [], "logprobs": []}
        if turn.stop == "refusal":
            part = {"type": "refusal", "refusal": turn.text}
        status = "incomplete" if turn.stop in _INCOMPLETE else "completed"
        item = {
            "id": self.numbers.take("msg_"),
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": [part],
        }
        if self.model.sends_phase:
            item["phase"] = "commentary" if commentary else "final_answer"
        return item

    def _call(self, call: Call, incomplete: bool) -> Raw:
        return {
            "id": self.numbers.take("fc_"),
            "type": "function_call",
            "call_id": call.id or self.numbers.take("call_"),
            "name": call.name,
            "arguments": call.arguments_text,
            "status": "incomplete" if incomplete else "completed",
        }

    def _response(self, stop: str | None, output: list[Raw], usage: Raw) -> Raw:
        status = "incomplete" if stop in _INCOMPLETE else "failed" if stop == "failed" else "completed"
        error = {"code": "server_error", "message": "the script fails this response"} if stop == "failed" else None
        body = self.asked.body
        return {
            "id": self.numbers.take("resp_"),
            "object": "response",
            "created_at": _CREATED,
            "status": status,
            "error": error,
            "incomplete_details": {"reason": stop} if stop in _INCOMPLETE else None,
            "model": self.asked.model,
            "output": output,
            "parallel_tool_calls": body.get("parallel_tool_calls", True),
            "store": body.get("store", True),
            "tool_choice": body.get("tool_choice", "auto"),
            "tools": body.get("tools") or [],
            "truncation": body.get("truncation", "disabled"),
            "metadata": body.get("metadata") or {},
            **{key: body.get(key) for key in _ECHOED},
            "usage": usage,
        }

    def _usage(self, turn: Turn, calls: tuple[Call, ...]) -> Raw:
        # facts/llm.md 3: input_tokens includes cached, output_tokens includes reasoning
        thought = text_tokens(turn.thinking)
        said = text_tokens(turn.text) + sum(text_tokens(call.name + call.arguments_text) for call in calls)
        out = turn.output_tokens if turn.output_tokens is not None else max(1, said + thought)
        details = {"cached_tokens": self.reading.cached, "cache_write_tokens": self.reading.written}
        return {
            "input_tokens": self.reading.total,
            "input_tokens_details": details,
            "output_tokens": out,
            "output_tokens_details": {"reasoning_tokens": min(thought, out)},
            "total_tokens": self.reading.total + out,
        }
