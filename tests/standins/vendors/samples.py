"""One valid request for each surface, with a tool call in its history: to try a server by hand, or to break on purpose.

Every call returns fresh values, so that a test may change them.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from tests.standins.vendors.gemini_rules import DUMMY_SIGNATURE
from tests.standins.vendors.refusals import Raw
from tests.standins.vendors.surfaces import SurfaceName

_SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
_VERTEX = "/vertex/v1/projects/p/locations/europe-west4/publishers"


Change = Callable[[Raw], None]


@dataclass(frozen=True, slots=True)
class Sample:
    path: str
    headers: dict[str, str]
    body: Raw


def sample(surface: SurfaceName) -> Sample:
    return _SAMPLES[surface]()


def put(path: str, value: Any) -> Change:
    """Set what stands at a dotted path, numbers being positions in lists."""

    def change(body: Raw) -> None:
        holder, key = _holder(body, path)
        holder[key] = deepcopy(value)

    return change


def add(path: str, *values: Any) -> Change:
    """Append to the list at a dotted path."""

    def change(body: Raw) -> None:
        holder, key = _holder(body, path)
        holder[key].extend(deepcopy(values))

    return change


def cut(path: str) -> Change:
    """Take out what stands at a dotted path."""

    def change(body: Raw) -> None:
        holder, key = _holder(body, path)
        del holder[key]

    return change


def _holder(body: Raw, path: str) -> tuple[Any, Any]:
    *way, last = [int(step) if step.lstrip("-").isdigit() else step for step in path.split(".")]
    holder: Any = body
    for step in way:
        holder = holder[step]
    return holder, last


def _anthropic() -> Sample:
    headers = {"x-api-key": "any", "anthropic-version": "2026-10-21"}
    return Sample("/anthropic/v1/messages", headers, {"model": "claude-opus-5-5", **_messages()})


def _vertex_anthropic() -> Sample:
    path = f"{_VERTEX}/anthropic/models/claude-sonnet-5-5:rawPredict"
    return Sample(path, {"authorization": "Bearer any"}, {"anthropic_version": "vertex-2023-10-16", **_messages()})


def _messages() -> Raw:
    call = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a.log"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "error: disk full"}
    return {
        "max_tokens": 1000,
        "system": [{"type": "text", "text": "You read logs."}],
        "tools": [{"name": "read", "description": "Reads a file.", "input_schema": dict(_SCHEMA)}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Why did it fail?"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "Let me see."}, call]},
            {"role": "user", "content": [result, {"type": "text", "text": "Be brief."}]},
        ],
    }


def _gemini() -> Sample:
    path = "/gemini/v1beta/models/gemini-3.8-flash:generateContent"
    return Sample(path, {"x-goog-api-key": "any"}, _contents())


def _vertex_gemini() -> Sample:
    path = f"{_VERTEX}/google/models/gemini-3.8-flash:generateContent"
    return Sample(path, {"authorization": "Bearer any"}, _contents())


def _contents() -> Raw:
    call = {"functionCall": {"name": "read", "args": {"path": "a.log"}}, "thoughtSignature": DUMMY_SIGNATURE}
    result = {"functionResponse": {"name": "read", "response": {"output": "error: disk full"}}}
    declaration = {"name": "read", "description": "Reads a file.", "parametersJsonSchema": dict(_SCHEMA)}
    return {
        "systemInstruction": {"parts": [{"text": "You read logs."}]},
        "tools": [{"functionDeclarations": [declaration]}],
        "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
        "generationConfig": {"maxOutputTokens": 1000, "thinkingConfig": {"thinkingLevel": "LOW"}},
        "contents": [
            {"role": "user", "parts": [{"text": "Why did it fail?"}]},
            {"role": "model", "parts": [{"text": "Let me see."}, call]},
            {"role": "user", "parts": [result, {"text": "Be brief."}]},
        ],
    }


def _chat() -> Sample:
    call = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.log"}'}}
    body = {
        "model": "gpt-5.4",
        "max_completion_tokens": 1000,
        "tools": [{"type": "function", "function": {"name": "read", "parameters": dict(_SCHEMA)}}],
        "messages": [
            {"role": "system", "content": "You read logs."},
            {"role": "user", "content": "Why did it fail?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "error: disk full"},
        ],
    }
    return Sample("/openai/v1/chat/completions", {"authorization": "Bearer any"}, body)


def _responses() -> Sample:
    body = {
        "model": "gpt-6-sol",
        "store": False,
        "instructions": "You read logs.",
        "tools": [{"type": "function", "name": "read", "parameters": dict(_SCHEMA), "strict": False}],
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Why did it fail?"}]},
            {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": '{"path": "a.log"}'},
            {"type": "function_call_output", "call_id": "call_1", "output": "error: disk full"},
        ],
    }
    return Sample("/openai/v1/responses", {"authorization": "Bearer any"}, body)


_SAMPLES = {
    "anthropic": _anthropic,
    "vertex-anthropic": _vertex_anthropic,
    "gemini": _gemini,
    "vertex-gemini": _vertex_gemini,
    "openai-chat": _chat,
    "openai-responses": _responses,
}
