"""Gemini's answers as replies."""

from typing import Any

import msgspec
import pytest

from hummingbird.core.errors import ProviderReplyUnreadable, ProviderUnavailable
from hummingbird.core.journal import FinishReason
from hummingbird.core.messages import AssistantMessage, ProviderEcho, UserMessage
from hummingbird.core.protocols.model import ModelRequest
from hummingbird.core.usage import TokenUsage
from hummingbird.models.gemini import decode_reply
from hummingbird.models.wire_format import ModelProfile

MODEL = "gemini-3.8-flash"
PROFILE = ModelProfile(MODEL, 1)
REQUEST = ModelRequest("", (), [UserMessage("go")], "s", "call-7")
CALL = {"functionCall": {"name": "read", "args": {"path": "ü"}}, "thoughtSignature": "c2ln"}


def answer(*parts: Any, finish: str | None = "STOP", **more: Any) -> dict[str, Any]:
    content = {"role": "model", "parts": list(parts)} if parts else {}
    return {"candidates": [{"content": content, "finishReason": finish, "index": 0}], **more}


def test_text_thoughts_and_calls_are_read_and_the_parts_kept_for_replay() -> None:
    parts = [{"text": "Hm.", "thought": True}, {"text": "Look"}, {"text": "ing."}, CALL, {"thoughtSignature": "eA=="}]
    reply = decode_reply(answer(*parts), REQUEST, PROFILE)
    message = reply.message
    assert (message.text, message.reasoning, reply.finish) == ("Looking.", "Hm.", FinishReason.STOP)
    assert [(call.name, call.arguments) for call in message.calls] == [("read", '{"path":"ü"}')]
    assert message.echo == ProviderEcho("gemini", MODEL, parts)
    assert msgspec.json.decode(msgspec.json.encode(message), type=AssistantMessage) == message


def test_ids_are_geminis_own_or_derived_from_the_call() -> None:
    own = {"functionCall": {"name": "read", "args": {}, "id": "g1"}}
    first, second = (decode_reply(answer(CALL, CALL, own), REQUEST, PROFILE).message.calls for _ in range(2))
    assert first == second, "derived, not drawn"
    ids = [call.id for call in first]
    assert ids[2] == "g1"
    assert len(set(ids)) == 3
    assert all(len(call_id) == 9 and call_id.isalnum() for call_id in ids[:2])
    other = ModelRequest("", (), [UserMessage("go")], "s", "call-8")
    assert decode_reply(answer(CALL), other, PROFILE).message.calls[0].id not in ids


def test_an_id_that_was_used_before_is_replaced() -> None:
    request = ModelRequest("", (), [UserMessage("x")], "s", "c", call_ids={"g1"})
    again = {"functionCall": {"name": "read", "id": "g1"}}
    (call,) = decode_reply(answer(again), request, PROFILE).message.calls
    assert call.id != "g1"
    assert call.arguments == "{}"


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("STOP", FinishReason.STOP),
        ("MAX_TOKENS", FinishReason.LENGTH),
        ("MALFORMED_FUNCTION_CALL", FinishReason.MALFORMED),
        ("UNEXPECTED_TOOL_CALL", FinishReason.MALFORMED),
        ("MALFORMED_RESPONSE", FinishReason.MALFORMED),
        ("TOO_MANY_TOOL_CALLS", FinishReason.MALFORMED),
        ("SAFETY", FinishReason.REFUSAL),
        ("RECITATION", FinishReason.REFUSAL),
        ("PROHIBITED_CONTENT", FinishReason.REFUSAL),
        ("SPII", FinishReason.REFUSAL),
        ("MODEL_ARMOR", FinishReason.REFUSAL),
    ],
)
def test_finish_reasons_are_understood(reason: str, finish: FinishReason) -> None:
    reply = decode_reply(answer({"text": "so far"}, finish=reason), REQUEST, PROFILE)
    assert reply.finish is finish
    assert reply.message.text == ("" if finish is FinishReason.REFUSAL else "so far"), "usable text is kept"


def test_a_malformed_call_often_comes_with_nothing() -> None:
    reply = decode_reply(answer(finish="MALFORMED_FUNCTION_CALL"), REQUEST, PROFILE)
    assert (reply.message, reply.finish) == (AssistantMessage(), FinishReason.MALFORMED)


@pytest.mark.parametrize("reason", ["OTHER", "LANGUAGE", "CONTINUATION", "NO_IMAGE", "BRAND_NEW", None, 5, ["STOP"]])
def test_an_unknown_reason_is_never_taken_for_a_stop_and_its_bill_stays(reason: Any) -> None:
    reply = decode_reply(answer({"text": "x"}, finish=reason, usageMetadata={"promptTokenCount": 7}), REQUEST, PROFILE)
    assert (reply.finish, reply.usage, reply.message.text) == (FinishReason.MALFORMED, TokenUsage(7), "x")


def test_a_blocked_prompt_is_a_refusal() -> None:
    reply = decode_reply(
        {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 7}}, REQUEST, PROFILE
    )
    assert (reply.message, reply.finish, reply.usage) == (AssistantMessage(), FinishReason.REFUSAL, TokenUsage(fresh=7))


def test_usage_counts_do_not_overlap() -> None:
    """The prompt includes the cached part, the candidates exclude thoughts."""
    raw = {
        "promptTokenCount": 100,
        "cachedContentTokenCount": 60,
        "toolUsePromptTokenCount": 5,
        "candidatesTokenCount": 10,
        "thoughtsTokenCount": 4,
        "totalTokenCount": 119,
    }
    reply = decode_reply(answer({"text": "x"}, usageMetadata=raw), REQUEST, PROFILE)
    assert reply.usage == TokenUsage(fresh=45, cache_read=60, output=14, reasoning=4)
    assert reply.raw_usage == raw
    assert decode_reply(answer({"text": "x"}), REQUEST, PROFILE).usage == TokenUsage()


@pytest.mark.parametrize(
    "odd",
    [
        {"inlineData": {}},
        {"executableCode": {}},
        {"functionResponse": {}},
        {"toolCall": {}},
        {"text": 5},
        {"functionCall": {"args": {}}},
        {"functionCall": "read"},
        "x",
    ],
)
def test_an_unknown_part_makes_the_answer_malformed_and_its_bill_stays(odd: Any) -> None:
    """It was paid for, and cannot be acted on or replayed."""
    reply = decode_reply(answer({"text": "x"}, CALL, odd, usageMetadata={"promptTokenCount": 7}), REQUEST, PROFILE)
    assert (reply.finish, reply.usage, reply.usage_known) == (FinishReason.MALFORMED, TokenUsage(7), True)
    assert reply.message == AssistantMessage("x")


def test_a_billed_answer_without_a_candidate_is_malformed() -> None:
    reply = decode_reply({"candidates": [], "usageMetadata": {"promptTokenCount": 7}}, REQUEST, PROFILE)
    assert (reply.finish, reply.usage) == (FinishReason.MALFORMED, TokenUsage(7))
    odd = {"candidates": [{"content": {"parts": "x"}, "finishReason": "STOP"}]}
    assert decode_reply(odd, REQUEST, PROFILE).finish is FinishReason.MALFORMED


@pytest.mark.parametrize(("given", "written"), [([1], "[1]"), ("text", '"text"'), (5, "5"), (None, "{}")])
def test_arguments_that_are_no_object_are_kept_as_text_and_can_be_sent_back(given: Any, written: str) -> None:
    odd = {"functionCall": {"name": "2 read!", "args": given, "id": 5}, "thoughtSignature": "c2ln"}
    message = decode_reply(answer(odd), REQUEST, PROFILE).message
    assert (message.calls[0].name, message.calls[0].arguments) == ("2 read!", written)
    assert message.echo is not None
    sent = message.echo.content[0]
    assert sent["thoughtSignature"] == "c2ln"
    assert isinstance(sent["functionCall"].pop("args"), dict)
    assert sent["functionCall"] == {"name": "_2_read_"}


def test_a_signature_that_is_none_leaves_no_echo() -> None:
    """The dummy signature stands for it then."""
    assert decode_reply(answer({**CALL, "thoughtSignature": 5}), REQUEST, PROFILE).message.echo is None


def test_an_answer_without_usage_is_not_counted() -> None:
    """Unknown is not nothing."""
    assert not decode_reply(answer({"text": "x"}), REQUEST, PROFILE).usage_known
    assert not decode_reply(
        answer({"text": "x"}, usageMetadata={"trafficType": "ON_DEMAND"}), REQUEST, PROFILE
    ).usage_known
    assert decode_reply(answer({"text": "x"}, usageMetadata={"promptTokenCount": 0}), REQUEST, PROFILE).usage_known


@pytest.mark.parametrize("odd", [None, [], "text", {}, {"candidates": []}, {"candidates": ["x"]}])
def test_what_is_no_answer_is_unreadable(odd: Any) -> None:
    """total."""
    with pytest.raises(ProviderReplyUnreadable):
        decode_reply(odd, REQUEST, PROFILE)


def test_an_error_with_status_200_is_raised_by_its_code() -> None:
    with pytest.raises(ProviderUnavailable, match="busy"):
        decode_reply({"error": {"code": 503, "status": "UNAVAILABLE", "message": "busy"}}, REQUEST, PROFILE)
