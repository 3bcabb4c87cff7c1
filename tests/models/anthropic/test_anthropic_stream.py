"""A streamed message is the message that a plain call returns."""

from collections.abc import Iterator
from typing import Any

import pytest

from hummingbird.core.errors import (
    HummingbirdError,
    ProviderReplyUnreadable,
    ProviderRequestRefused,
    ProviderUnavailable,
)
from hummingbird.core.events import CallDelta, Delta, ReasoningDelta, TextDelta
from hummingbird.core.messages import UserMessage
from hummingbird.core.protocols.model import ModelRequest
from hummingbird.models.anthropic import AnthropicAssembler, decode_reply
from hummingbird.models.wire_format import ModelProfile

WHOLE: dict[str, Any] = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "model": "claude-opus-5-5",
    "content": [
        {"type": "thinking", "thinking": "Look first.", "signature": "sig=="},
        {"type": "redacted_thinking", "data": "zz"},
        {"type": "text", "text": "Looking."},
        {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "ü", "n": 1}},
        {"type": "tool_use", "id": "toolu_2", "name": "wait", "input": {}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 30, "service_tier": "standard"},
}


def events() -> Iterator[dict[str, Any]]:
    start_usage = {"input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 1, "service_tier": "standard"}
    opening = {**WHOLE, "content": [], "stop_reason": None, "usage": start_usage}
    yield {"type": "message_start", "message": opening}
    yield {"type": "ping"}
    starts: list[Any] = [
        {"type": "thinking", "thinking": "", "signature": ""},
        WHOLE["content"][1],
        {"type": "text", "text": ""},
        {**WHOLE["content"][3], "input": {}},
        WHOLE["content"][4],
    ]
    deltas: list[list[Any]] = [
        [
            {"type": "thinking_delta", "thinking": "Look "},
            {"type": "thinking_delta", "thinking": "first."},
            {"type": "signature_delta", "signature": "sig=="},
        ],
        [],
        [{"type": "text_delta", "text": "Look"}, {"type": "text_delta", "text": "ing."}],
        [
            {"type": "input_json_delta", "partial_json": ""},
            {"type": "input_json_delta", "partial_json": '{"path": "ü'},
            {"type": "input_json_delta", "partial_json": '", "n": 1}'},
        ],
        [],
    ]
    for index, start in enumerate(starts):
        yield {"type": "content_block_start", "index": index, "content_block": start}
        yield from ({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas[index])
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "invented_tomorrow", "index": 3}
    usage = {"output_tokens": 30, "input_tokens": None}
    yield {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": usage}
    yield {"type": "message_stop"}


def fed(*parts: dict[str, Any]) -> tuple[AnthropicAssembler, list[Delta]]:
    assembler = AnthropicAssembler()
    told: list[Delta] = []
    for part in parts:
        told.extend(assembler.feed(str(part.get("type")), part))
    return assembler, told


def test_the_stream_gives_the_very_message_of_a_plain_call() -> None:
    assembler, _ = fed(*events())
    assert assembler.result() == WHOLE
    request, profile = ModelRequest("", (), [UserMessage("go")], "s", "c"), ModelProfile("claude-opus-5-5", 1)
    assert decode_reply(assembler.result(), request, profile) == decode_reply(WHOLE, request, profile)


def test_deltas_are_told_as_they_come() -> None:
    _, told = fed(*events())
    assert told == [
        ReasoningDelta("Look "),
        ReasoningDelta("first."),
        TextDelta("Look"),
        TextDelta("ing."),
        CallDelta(0, "read", ""),
        CallDelta(0, "read", '{"path": "ü'),
        CallDelta(0, "read", '", "n": 1}'),
    ]


def test_a_stream_that_ends_anywhere_before_its_end_is_unreadable() -> None:
    """Nothing of it enters history."""
    parts = list(events())
    for end in range(len(parts)):
        assembler, _ = fed(*parts[:end])
        with pytest.raises(ProviderReplyUnreadable):
            assembler.result()


@pytest.mark.parametrize("written", ['{"path": "a', "[1]", "words"])
def test_arguments_that_are_no_object_reach_the_loop_as_they_were_written(written: str) -> None:
    parts = [part for part in events() if part.get("delta", {}).get("type") != "input_json_delta"]
    broken = {"type": "content_block_delta", "index": 3, "delta": {"type": "input_json_delta", "partial_json": written}}
    assembler, _ = fed(*parts[:-2], broken, *parts[-2:])
    request = ModelRequest("", (), [UserMessage("go")], "s", "c")
    message = decode_reply(assembler.result(), request, ModelProfile("claude-opus-5-5", 1)).message
    assert message.calls[0].arguments == written
    assert message.echo is not None
    assert message.echo.content[3]["input"] == {"_malformed": written}, "the API wants an object back"


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("overloaded_error", ProviderUnavailable),
        ("invalid_request_error", ProviderRequestRefused),
        ("new_error", ProviderUnavailable),
    ],
)
def test_an_error_inside_the_stream_is_known_by_its_type(kind: str, error: type[HummingbirdError]) -> None:
    with pytest.raises(error, match="it broke"):
        fed(*list(events())[:4], {"type": "error", "error": {"type": kind, "message": "it broke"}})


@pytest.mark.parametrize(
    "odd",
    [
        {"type": "content_block_delta", "index": 9, "delta": {"type": "text_delta", "text": "x"}},
        {"type": "content_block_delta", "delta": {}},
        {"type": "content_block_start", "index": 0},
        {"type": "message_start"},
    ],
)
def test_what_would_be_missing_from_the_answer_is_unreadable(odd: dict[str, Any]) -> None:
    """total."""
    with pytest.raises(ProviderReplyUnreadable):
        fed(*list(events())[:3], odd)
