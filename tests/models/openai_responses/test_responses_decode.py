"""Responses answers and their streams as replies."""

from collections.abc import Iterable
from typing import Any

import pytest

from hummingbird.core.errors import (
    CreditExhausted,
    ProviderReplyUnreadable,
    ProviderRequestRefused,
    ProviderUnavailable,
)
from hummingbird.core.events import CallDelta, Delta, ReasoningDelta, TextDelta
from hummingbird.core.journal import FinishReason
from hummingbird.core.messages import UserMessage
from hummingbird.core.protocols.model import ModelReply
from hummingbird.core.usage import TokenUsage
from hummingbird.models.openai_responses import openai_responses_wire
from hummingbird.models.wire_format import ModelProfile
from tests.wire.asked import asked

WIRE = openai_responses_wire()
PROFILE = ModelProfile("gpt-6.1-sol", 1_050_000)
REQUEST = asked([UserMessage("why?")])
REASONING = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "First the log."}],
    "encrypted_content": "sealed",
}


def said(text: str, phase: str | None = None) -> dict[str, Any]:
    item = {"id": "msg_1", "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    return {**item, "phase": phase} if phase else item


def called(name: str, call_id: Any = "call_1", arguments: str = "{}") -> dict[str, Any]:
    return {"id": "fc_1", "type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def decoded(*items: Any, **fields: Any) -> ModelReply:
    return WIRE.decode({"status": "completed", "output": list(items), **fields}, REQUEST, PROFILE)


def test_items_become_text_reasoning_and_calls_and_stay_as_echo() -> None:
    items = [REASONING, said("I look.", "commentary"), called("read", arguments='{"path":"a"}')]
    message = decoded(*items).message
    assert (message.text, message.reasoning) == ("I look.", "First the log.")
    assert [(call.id, call.name, call.arguments) for call in message.calls] == [("call_1", "read", '{"path":"a"}')]
    assert message.echo is not None
    assert (message.echo.wire, message.echo.model) == ("openai_responses", "gpt-6.1-sol")
    assert message.echo.content == items


def test_commentary_beside_a_final_answer_is_not_part_of_it() -> None:
    message = decoded(said("I look.", "commentary"), said("The disk is full.", "final_answer")).message
    assert (message.text, message.reasoning) == ("The disk is full.", "I look.")


@pytest.mark.parametrize(
    ("fields", "finish"),
    [
        ({}, FinishReason.STOP),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, FinishReason.LENGTH),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, FinishReason.REFUSAL),
        ({"status": "incomplete", "incomplete_details": None}, FinishReason.LENGTH),
    ],
)
def test_why_the_model_stopped_is_understood(fields: dict[str, Any], finish: FinishReason) -> None:
    assert decoded(said("x"), **fields).finish is finish


def test_a_refusal_ends_as_one_with_its_words() -> None:
    reply = decoded({"type": "message", "content": [{"type": "refusal", "refusal": "I won't."}]})
    assert (reply.finish, reply.message.text) == (FinishReason.REFUSAL, "I won't.")
    blocked = decoded(status="failed", error={"code": "bio_policy", "message": "blocked by policy"})
    assert (blocked.finish, blocked.message.text) == (FinishReason.REFUSAL, "blocked by policy")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("server_error", ProviderUnavailable),
        ("rate_limit_exceeded", ProviderUnavailable),
        ("never_heard_of_it", ProviderUnavailable),
        ("invalid_prompt", ProviderRequestRefused),
        ("insufficient_quota", CreditExhausted),
    ],
)
def test_a_failed_response_is_the_error_that_its_code_says(code: str, expected: type[Exception]) -> None:
    with pytest.raises(expected, match="it broke"):
        decoded(status="failed", error={"code": code, "message": "it broke"})


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("plain text", "plain text"),
        ({}, "answer that is none"),
        ({"output": "x"}, "answer that is none"),
        ({"status": "in_progress", "output": []}, "'in_progress'"),
    ],
)
def test_what_is_no_answer_is_unreadable(answer: Any, words: str) -> None:
    with pytest.raises(ProviderReplyUnreadable, match=words):
        WIRE.decode(answer, REQUEST, PROFILE)


@pytest.mark.parametrize(
    "odd",
    [
        {"type": "web_search_call"},
        {"type": "message", "content": [{"type": "video"}]},
        {"type": "message", "content": [{"type": "output_text", "text": 5}]},
        {"type": "message", "content": 5},
        {"type": "function_call", "call_id": "c"},
        "x",
    ],
)
def test_an_unknown_part_makes_the_answer_malformed_and_its_bill_stays(odd: Any) -> None:
    """It was paid for, and cannot be acted on or replayed."""
    reply = decoded(said("x"), called("read"), odd, usage={"input_tokens": 7})
    assert (reply.finish, reply.usage, reply.usage_known) == (FinishReason.MALFORMED, TokenUsage(7), True)
    assert (reply.message.text, reply.message.calls, reply.message.echo) == ("x", (), None)


@pytest.mark.parametrize("fields", [{"status": "cancelled"}, {"status": 5}, {"output": None}])
def test_a_billed_answer_that_is_not_complete_is_malformed(fields: dict[str, Any]) -> None:
    reply = decoded(said("x"), **{"usage": {"input_tokens": 7}, **fields})
    assert (reply.finish, reply.usage) == (FinishReason.MALFORMED, TokenUsage(7))


@pytest.mark.parametrize(("given", "written"), [([1], "[1]"), ({"a": 1}, '{"a":1}'), (None, "{}"), ("{", "{")])
def test_arguments_of_any_kind_are_kept_as_text_in_call_and_echo(given: Any, written: str) -> None:
    """A name that no tool can have is made legal in the echo."""
    message = decoded({**called("no such tool!"), "arguments": given}).message
    assert (message.calls[0].name, message.calls[0].arguments) == ("no such tool!", written)
    assert message.echo is not None
    assert (message.echo.content[0]["name"], message.echo.content[0]["arguments"]) == ("no_such_tool_", written)


def test_an_answer_without_usage_is_not_counted() -> None:
    """Unknown is not nothing."""
    assert not decoded(said("x")).usage_known
    assert not decoded(said("x"), usage={"input_tokens": "7"}).usage_known
    assert decoded(said("x"), usage={"output_tokens": 0}).usage_known


def test_reasoning_that_led_to_nothing_is_not_replayed() -> None:
    """The API refuses reasoning without the item that follows it."""
    reply = decoded(REASONING, status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    assert reply.message.echo is None
    assert reply.message.reasoning == "First the log."


def test_reasoning_without_its_secret_is_not_replayed_and_nothing_points_to_it() -> None:
    """What is not stored cannot be named."""
    echo = decoded({**REASONING, "encrypted_content": None}, said("I look.", "commentary")).message.echo
    assert echo is not None
    assert echo.content == [{k: v for k, v in said("I look.", "commentary").items() if k != "id"}]


def test_ids_that_are_not_unique_are_replaced_in_the_echo_too() -> None:
    reply = decoded(called("read"), called("wait"), called("wait", None))
    ids = [call.id for call in reply.message.calls]
    assert len(set(ids)) == 3
    assert reply.message.echo is not None
    assert [item["call_id"] for item in reply.message.echo.content] == ids


def test_an_id_that_the_conversation_has_already_is_replaced() -> None:
    """An imitator that counts from zero in every answer."""
    request = asked([UserMessage("why?")], call_ids={"call_1"})
    reply = WIRE.decode({"status": "completed", "output": [called("read")]}, request, PROFILE)
    assert reply.message.calls[0].id != "call_1"


def test_usage_is_normalised_and_kept_as_it_came() -> None:
    """input_tokens includes what was cached, output_tokens the reasoning."""
    raw = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 15},
        "total_tokens": 120,
    }
    reply = decoded(said("x"), usage=raw)
    assert (reply.usage, reply.raw_usage) == (TokenUsage(10, 60, 30, 20, 15), raw)
    assert (decoded(said("x")).usage, decoded(said("x"), usage=None).raw_usage) == (TokenUsage(), {})


def streamed(events: Iterable[dict[str, Any]]) -> tuple[ModelReply, list[Delta]]:
    assembler = WIRE.create_assembler()
    deltas = [delta for content in events for delta in assembler.feed("", content)]
    return WIRE.decode(assembler.result(), REQUEST, PROFILE), deltas


def test_a_stream_gives_the_very_reply_that_one_piece_gives() -> None:
    """Encrypted reasoning is taken from output_item.done."""
    items = [REASONING, said("I look."), called("read", arguments='{"path":"a"}')]
    half = {**REASONING, "encrypted_content": "half of it"}
    usage = {"input_tokens": 5, "output_tokens": 3}
    reply, deltas = streamed(
        [
            {"type": "response.created", "response": {"status": "in_progress", "output": []}},
            {"type": "response.output_item.added", "output_index": 0, "item": half},
            {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "First the log."},
            {"type": "response.output_item.done", "output_index": 0, "item": items[0]},
            {"type": "response.output_item.added", "output_index": 1, "item": said("")},
            {"type": "response.output_text.delta", "output_index": 1, "delta": "I "},
            {"type": "response.output_text.delta", "output_index": 1, "delta": "look."},
            {"type": "response.output_item.added", "output_index": 2, "item": called("read", arguments="")},
            {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": '{"path":"a"}'},
            {"type": "response.output_item.done", "output_index": 2, "item": items[2]},
            {"type": "response.output_item.done", "output_index": 1, "item": items[1]},
            {"type": "never.heard.of.it"},
            {
                "type": "response.completed",
                "response": {"status": "completed", "output": [half, *items[1:]], "usage": usage},
            },
        ]
    )
    assert reply == decoded(*items, usage=usage)
    assert deltas == [
        ReasoningDelta("First the log."),
        TextDelta("I "),
        TextDelta("look."),
        CallDelta(0, "read", ""),
        CallDelta(0, "read", '{"path":"a"}'),
    ]


def test_a_stream_that_ends_in_the_middle_is_unreadable() -> None:
    with pytest.raises(ProviderReplyUnreadable, match="in the middle"):
        streamed([{"type": "response.output_text.delta", "delta": "hal"}])
    with pytest.raises(ProviderReplyUnreadable):
        streamed([])


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ({"type": "error", "code": "rate_limit_exceeded", "message": "slow down"}, ProviderUnavailable),
        ({"type": "error", "code": "insufficient_quota", "message": "no money"}, CreditExhausted),
        ({"type": "error", "error": {"code": "server_error", "message": "oops"}}, ProviderUnavailable),
        ({"error": {"message": "bad", "code": 400}}, ProviderRequestRefused),
        (
            {
                "type": "response.failed",
                "response": {"status": "failed", "error": {"code": "server_error", "message": "oops"}, "output": []},
            },
            ProviderUnavailable,
        ),
    ],
)
def test_an_error_inside_a_stream_is_raised_by_its_code(event: dict[str, Any], expected: type[Exception]) -> None:
    with pytest.raises(expected):
        streamed([event])
