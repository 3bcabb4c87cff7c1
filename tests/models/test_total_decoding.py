"""Whatever JSON a provider sends, a reply or a sentence comes of it, and the reply can be kept and sent back."""

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.core.errors import HummingbirdError, ProviderReplyUnreadable
from hummingbird.core.journal import FinishReason
from hummingbird.core.messages import Message, ToolMessage, UserMessage
from hummingbird.core.protocols.model import ModelReply
from hummingbird.models.anthropic import anthropic_wire
from hummingbird.models.gemini import gemini_wire
from hummingbird.models.openai_chat import openai_chat_wire
from hummingbird.models.openai_responses import openai_responses_wire
from hummingbird.models.wire_format import ModelProfile, WireFormat
from tests.wire import anthropic_types, gemini_types, openai_types
from tests.wire.asked import asked, reread

MODEL = "the-model"
PROFILE = ModelProfile(MODEL, 100_000, echo_keys=("reasoning_content", "reasoning_details"), signs_calls=True)
REQUEST = asked([UserMessage("why?")])
WIRES: dict[str, WireFormat] = {
    "anthropic": anthropic_wire(),
    "gemini": gemini_wire(),
    "openai_chat": openai_chat_wire("OpenAI"),
    "openai_responses": openai_responses_wire(),
}
CHECKS: dict[str, Callable[[dict[str, Any]], None]] = {
    "anthropic": lambda body: anthropic_types.check({"model": MODEL, **body}),
    "gemini": gemini_types.check,
    "openai_chat": lambda body: openai_types.check_chat({**body, "messages": [_known(m) for m in body["messages"]]}),
    "openai_responses": lambda body: openai_types.check_responses({**body, "input": list(map(_filled, body["input"]))}),
}
_TOOL = {"id": "toolu_1", "type": "tool_use", "name": "read", "input": {"path": "a"}}
_ITEM = {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "read", "arguments": '{"path":"a"}'}
_RS = {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "x"}
_MSG = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
}
_RESPONSE: dict[str, Any] = {
    "status": "completed",
    "output": [_RS, _MSG, _ITEM],
    "usage": {"input_tokens": 9, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 3},
    "incomplete_details": None,
}
_CALL = {"id": "x", "type": "function", "function": {"name": "read", "arguments": '{"path":"a"}'}}
ANSWERS: dict[str, dict[str, Any]] = {
    "anthropic": {
        "type": "message",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
            {"type": "redacted_thinking", "data": "x"},
            {"type": "text", "text": "I look."},
            _TOOL,
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 9, "output_tokens": 3, "output_tokens_details": {"thinking_tokens": 1}},
    },
    "gemini": {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [
                        {"text": "hm", "thought": True},
                        {"text": "I look."},
                        {
                            "functionCall": {"name": "read", "args": {"path": "a"}, "id": "g1"},
                            "thoughtSignature": "eA==",
                        },
                    ],
                },
                "finishReason": "STOP",
            }
        ],
        "usageMetadata": {"promptTokenCount": 9, "cachedContentTokenCount": 4, "candidatesTokenCount": 3},
    },
    "openai_chat": {
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": [{"text": "hm"}]},
                        {"type": "text", "text": "I look."},
                    ],
                    "reasoning_content": "hm",
                    "tool_calls": [_CALL],
                },
            }
        ],
        "usage": {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens": 3},
    },
    "openai_responses": _RESPONSE,
}
STREAMS: dict[str, list[dict[str, Any]]] = {
    "anthropic": [
        {"type": "message_start", "message": {"type": "message", "content": [], "usage": {"input_tokens": 9}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "sig"}},
        {"type": "content_block_start", "index": 1, "content_block": {**_TOOL, "input": {}}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"a":1}'}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    ],
    "gemini": [
        {"candidates": [{"content": {"parts": [{"text": "hm", "thought": True}]}}]},
        {"candidates": [{"content": {"parts": [{"text": "I "}, {"text": "look."}]}}]},
        {"candidates": [{"content": {"parts": [{"functionCall": {"name": "read", "args": {"path": "a"}}}]}}]},
        {"candidates": [{"content": {}, "finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 9}},
    ],
    "openai_chat": [
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "I "}, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {"content": [{"type": "text", "text": "look."}]}}]},
        {"choices": [{"index": 0, "delta": {"reasoning_details": [{"type": "reasoning.text", "text": "hm"}]}}]},
        {"choices": [{"index": 0, "delta": {"reasoning_details": [{"type": "reasoning.text", "text": "hm"}]}}]},
        {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, **_CALL}]}}]},
        {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": "x"}}]}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
        {"choices": [], "usage": {"prompt_tokens": 9}},
    ],
    "openai_responses": [
        {"type": "response.output_item.added", "output_index": 0, "item": _RS},
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "hm"},
        {"type": "response.output_item.done", "output_index": 0, "item": _RS},
        {"type": "response.output_item.added", "output_index": 1, "item": {**_ITEM, "arguments": ""}},
        {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": "{}"},
        {"type": "response.output_item.done", "output_index": 1, "item": _ITEM},
        {"type": "response.completed", "response": {**_RESPONSE, "output": [_RS, _ITEM]}},
    ],
}
_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([10**30, -1, float("inf"), float("-inf"), float("nan"), 0.5]),
    st.text(max_size=8),
    st.sampled_from(["{}", "[1]", "text", "function_call", "no such tool!", " \n", "thinking", "reasoning"]),
)
_anything = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
)


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield way
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, found in inner:
        yield from places(found, (*way, key))


def damaged(whole: Any, draw: st.DataObject) -> Any:
    """The same with up to three of its nodes replaced by anything, or taken away."""
    for _ in range(draw.draw(st.integers(1, 3))):
        way = draw.draw(st.sampled_from(list(places(whole))))
        whole = replaced(deepcopy(whole), way, draw.draw(st.just("cut") | _anything))
    return whole


def replaced(whole: Any, way: tuple[Any, ...], by: Any) -> Any:
    if not way:
        return by
    holder = whole
    for key in way[:-1]:
        holder = holder[key]
    if by == "cut":
        del holder[way[-1]]
    else:
        holder[way[-1]] = by
    return whole


def _known(message: dict[str, Any]) -> dict[str, Any]:
    """Without what only compatible servers have."""
    return {key: value for key, value in message.items() if key not in PROFILE.echo_keys}


def _filled(item: dict[str, Any]) -> dict[str, Any]:
    """With what OpenAI always sends: where it is missing, an imitator left it out, who does not want it back."""
    if item.get("type") != "message":
        return item
    parts = [{"annotations": [], **part} for part in item["content"]]
    return {"id": "msg_1", "status": "completed", **item, "content": parts}


def judged(wire: str, reply: ModelReply, check: Callable[[dict[str, Any]], None] | None = None) -> None:
    """It can be kept, counted, and sent back."""
    assert all(type(n) is int and n >= 0 for n in (reply.usage.fresh, reply.usage.cache_read, reply.usage.output))
    message = reply.message
    assert reread([message])
    if reply.finish in {FinishReason.MALFORMED, FinishReason.REFUSAL} or not (
        message.calls or message.text or message.echo
    ):
        return
    talk: list[Message] = [UserMessage("why?"), message if not message.paused else replace(message, paused=False)]
    talk += [ToolMessage(call.id, call.name, "done") for call in message.calls] or [UserMessage("go on")]
    body = json.loads(WIRES[wire].encode(asked(talk), PROFILE, stream=False))
    if check is not None:
        check(body)


def outcome(
    wire: str, read: Callable[[], ModelReply], check: Callable[[dict[str, Any]], None] | None = None
) -> HummingbirdError | None:
    try:
        judged(wire, read(), check)
    except HummingbirdError as error:
        return error
    return None


def streamed(wire: str, events: list[Any]) -> ModelReply:
    assembler = WIRES[wire].create_assembler()
    for content in events:
        list(assembler.feed("", content))
    list(assembler.feed("[DONE]", None))
    return WIRES[wire].decode(assembler.result(), REQUEST, PROFILE)


@pytest.mark.parametrize("wire", WIRES)
@given(draw=st.data())
def test_an_answer_of_any_shape_is_a_reply_or_a_sentence(wire: str, draw: st.DataObject) -> None:
    """Total, never a crash of ours."""
    answer = damaged(ANSWERS[wire], draw)
    sentence = outcome(wire, lambda: WIRES[wire].decode(answer, REQUEST, PROFILE))
    assert sentence is None or type(sentence) is ProviderReplyUnreadable or "error" in json.dumps(answer)


@pytest.mark.thorough
@pytest.mark.parametrize("wire", WIRES)
@given(draw=st.data())
def test_a_stream_of_any_shape_is_a_reply_or_a_sentence(wire: str, draw: st.DataObject) -> None:
    """Total, never a crash of ours."""
    events = damaged(STREAMS[wire], draw)
    sentence = outcome(wire, lambda: streamed(wire, events if isinstance(events, list) else [events]))
    assert sentence is None or type(sentence) is ProviderReplyUnreadable or "error" in json.dumps(events)


ODD: list[Any] = ["cut", None, True, -1, 0.5, 10**30, float("inf"), "eA==", "", [], [1], {}, {"x": 1}]


@pytest.mark.thorough
@pytest.mark.parametrize("wire", WIRES)
def test_any_node_may_be_anything(wire: str) -> None:
    """Each node of an answer and of a stream, replaced by each kind of JSON; what is sent back is valid."""
    seen = 0
    for way in places(ANSWERS[wire]):
        for odd in ODD if way else ODD[1:]:
            answer = replaced(deepcopy(ANSWERS[wire]), way, odd)
            error = outcome(wire, partial(WIRES[wire].decode, answer, REQUEST, PROFILE), CHECKS[wire])
            assert error is None or type(error) is ProviderReplyUnreadable, (way, odd)
            seen += error is None
    for way in places(STREAMS[wire]):
        for odd in ODD if way else ():
            events = replaced(deepcopy(STREAMS[wire]), way, odd)
            error = outcome(wire, partial(streamed, wire, events), CHECKS[wire])
            assert error is None or type(error) is ProviderReplyUnreadable, (way, odd)
            seen += error is None
    assert seen > len(ODD), "most damage leaves a reply"


_ERROR = {
    "type": "error",
    "error": {
        "type": "overloaded_error",
        "code": 503,
        "status": "UNAVAILABLE",
        "message": "busy",
        "details": [{"reason": "X", "retryDelay": "3s"}],
    },
}


@pytest.mark.thorough
@pytest.mark.parametrize("wire", WIRES)
@given(draw=st.data())
def test_an_error_of_any_shape_is_a_sentence(wire: str, draw: st.DataObject) -> None:
    """In an answer and in a stream."""
    answer = damaged(_ERROR, draw)
    for read in (lambda: WIRES[wire].decode(answer, REQUEST, PROFILE), lambda: streamed(wire, [answer])):
        error = outcome(wire, read)
        assert error is not None
        assert str(error)


@pytest.mark.parametrize("wire", WIRES)
def test_the_answers_that_are_damaged_here_are_good_ones(wire: str) -> None:
    reply = WIRES[wire].decode(ANSWERS[wire], REQUEST, PROFILE)
    assert (reply.finish, reply.message.text, reply.message.reasoning) == (FinishReason.STOP, "I look.", "hm")
    assert reply.usage_known
    assert len(reply.message.calls) == 1
    judged(wire, reply)


@pytest.mark.parametrize("wire", ["anthropic", "gemini", "openai_responses"])
@pytest.mark.parametrize("odd", [[1], "text", 5, None])
def test_arguments_that_are_no_object_go_back_in_a_request_that_is_valid(wire: str, odd: Any) -> None:
    answer = deepcopy(ANSWERS[wire])
    match wire:
        case "anthropic":
            answer["content"][3]["input"] = odd
        case "gemini":
            answer["candidates"][0]["content"]["parts"][2]["functionCall"]["args"] = odd
        case _:
            answer["output"][2]["arguments"] = odd
    message = WIRES[wire].decode(answer, REQUEST, PROFILE).message
    talk: list[Message] = [UserMessage("why?"), message, ToolMessage(message.calls[0].id, "read", "no", is_error=True)]
    CHECKS[wire](json.loads(WIRES[wire].encode(asked(talk), PROFILE, stream=False)))
    assert message.echo is not None
