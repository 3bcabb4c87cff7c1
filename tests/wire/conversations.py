"""Hypothesis strategies: conversations as the loop makes them, valid at every point where a call may happen.

The model's own answers are read by its own wire out of what its provider would have sent, so their echoes are real.
"""

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from hummingbird.core.messages import AssistantMessage, Message, Notice, NoticeKind, ToolCall, ToolMessage, UserMessage
from hummingbird.models.anthropic import anthropic_wire
from hummingbird.models.gemini import gemini_wire
from hummingbird.models.openai_chat import openai_chat_wire
from hummingbird.models.openai_responses import openai_responses_wire
from hummingbird.models.wire_format import ModelProfile, WireFormat
from tests.wire.asked import asked

# One step of a conversation: what is said or called, and whether an answer is this model's own.
_texts = st.sampled_from(["", " ", "words", "mehr Wörter ✓", "line\nline", '"quoted" \\ {}'])
_arguments = st.sampled_from(['{"path":"a"}', "{}", "{broken", ""])
_steps = st.lists(
    st.one_of(
        st.tuples(st.just("user"), _texts, st.just(True)),
        st.tuples(st.just("notice"), _texts, st.just(True)),
        st.tuples(st.just("say"), st.sampled_from(["words", "cut o"]), st.booleans()),
        st.tuples(st.just("call"), st.lists(_arguments, min_size=1, max_size=3), st.booleans()),
    ),
    max_size=14,
)
_WIRES: dict[str, WireFormat] = {
    "anthropic": anthropic_wire(),
    "gemini": gemini_wire(),
    "openai_chat": openai_chat_wire("OpenAI"),
    "openai_responses": openai_responses_wire(),
}


def conversations(wire: str, model: str) -> st.SearchStrategy[list[Message]]:
    """Answers may be this model's own (with an echo) or from elsewhere, in one conversation."""
    return _steps.map(lambda steps: _told(steps, wire, model))


def _told(steps: Sequence[tuple[str, object, bool]], wire: str, model: str) -> list[Message]:
    messages: list[Message] = [UserMessage("Why did it fail?")]
    for number, (kind, what, own) in enumerate(steps):
        may_speak = not isinstance(messages[-1], AssistantMessage)
        if kind == "user":
            messages.append(UserMessage(str(what)))
        elif kind == "notice":
            messages.append(Notice(NoticeKind.SOFT_BUDGET, str(what)))
        elif kind == "say" and may_speak:
            messages.append(own_answer(wire, model, number, str(what)) if own else AssistantMessage(str(what)))
        elif kind == "call" and may_speak and isinstance(what, list):
            foreign = AssistantMessage(
                "", "", tuple(ToolCall(f"c{number}x{at}", "read", t) for at, t in enumerate(what))
            )
            answer = own_answer(wire, model, number, "", what) if own else foreign
            messages.append(answer)
            results = enumerate(answer.calls)
            messages.extend(ToolMessage(call.id, "read", "result", is_error=at == 1) for at, call in results)
    return messages


def own_answer(wire: str, model: str, number: int, text: str, calls: Sequence[str] = ()) -> AssistantMessage:
    """With thinking, and an echo that holds what the provider wants back."""
    profile = ModelProfile(model, 1, echo_keys=("reasoning_content",))
    request = asked([UserMessage("go")], call_id=f"call-{number}")
    message = _WIRES[wire].decode(_ANSWERS[wire](number, text, list(calls)), request, profile).message
    assert message.echo is not None
    assert len(message.calls) == len(calls)
    return message


def _anthropic(number: int, text: str, calls: list[str]) -> dict[str, Any]:
    content: list[Any] = [
        {"type": "text", "text": "\n"},
        {"type": "thinking", "thinking": "hm", "signature": f"sig{number}"},
        {"type": "redacted_thinking", "data": f"data{number}"},
    ]
    content += [{"type": "text", "text": text}] if text else []
    content += [
        {"type": "tool_use", "id": f"toolu_{number}x{at}", "name": "read", "input": _object(given)}
        for at, given in enumerate(calls)
    ]
    return {"content": content, "stop_reason": "tool_use" if calls else "end_turn"}


def _gemini(number: int, text: str, calls: list[str]) -> dict[str, Any]:
    parts: list[Any] = [{"text": "hm", "thought": True}]
    parts += [{"text": text, "thoughtSignature": "c2ln"}] if text else []
    parts += [
        # Gemini names some calls, and signs the first one
        {"functionCall": {"name": "read", "args": _object(given), **({"id": f"g{number}x{at}"} if at else {})}}
        | ({} if at else {"thoughtSignature": "c2ln"})
        for at, given in enumerate(calls)
    ]
    return {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}


def _chat(number: int, text: str, calls: list[str]) -> dict[str, Any]:
    asking = [{"id": "x", "type": "function", "function": {"name": "read", "arguments": given}} for given in calls]
    message = {"role": "assistant", "content": text or None, "reasoning_content": f"hm {number}", "tool_calls": asking}
    return {"choices": [{"message": message, "finish_reason": "stop"}]}


def _responses(number: int, text: str, calls: list[str]) -> dict[str, Any]:
    summary = [{"type": "summary_text", "text": "hm"}]
    output: list[Any] = [
        {"id": f"rs_{number}", "type": "reasoning", "summary": summary, "encrypted_content": f"sealed{number}"}
    ]
    part = {"type": "output_text", "text": text, "annotations": []}
    said = {"id": f"msg_{number}", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    output += [said] if text else []
    output += [
        {"id": f"fc_{number}{at}", "type": "function_call", "call_id": f"call_{number}x{at}", "name": "read"}
        | {"arguments": given, "status": "completed"}
        for at, given in enumerate(calls)
    ]
    return {"status": "completed", "output": output}


def _object(given: str) -> Any:
    """What a provider that parses arguments itself makes of them; broken ones it sends as they are."""
    try:
        return json.loads(given or "{}")
    except ValueError:
        return given


_ANSWERS = {"anthropic": _anthropic, "gemini": _gemini, "openai_chat": _chat, "openai_responses": _responses}
