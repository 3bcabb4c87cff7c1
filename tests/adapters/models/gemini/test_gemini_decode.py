"""Gemini's answers as replies."""

from typing import Any

import msgspec
import pytest

from hummingbird.adapters.models.gemini.decode import decode
from hummingbird.adapters.models.wire import Profile
from hummingbird.domain.errors import ReplyUnreadable, Unavailable
from hummingbird.domain.journal import Finish
from hummingbird.domain.messages import AssistantMessage, Echo, UserMessage
from hummingbird.domain.usage import Usage
from hummingbird.ports.model import ModelRequest

MODEL = "gemini-3.8-flash"
PROFILE = Profile(MODEL, 1)
REQUEST = ModelRequest("", (), [UserMessage("go")], "s", "call-7")
CALL = {"functionCall": {"name": "read", "args": {"path": "ü"}}, "thoughtSignature": "c2ln"}


def answer(*parts: Any, finish: str | None = "STOP", **more: Any) -> dict[str, Any]:
    content = {"role": "model", "parts": list(parts)} if parts else {}
    return {"candidates": [{"content": content, "finishReason": finish, "index": 0}], **more}


def test_text_thoughts_and_calls_are_read_and_the_parts_kept_for_replay() -> None:
    """M4"""
    parts = [{"text": "Hm.", "thought": True}, {"text": "Look"}, {"text": "ing."}, CALL, {"thoughtSignature": "eA=="}]
    reply = decode(answer(*parts), REQUEST, PROFILE)
    message = reply.message
    assert (message.text, message.reasoning, reply.finish) == ("Looking.", "Hm.", Finish.STOP)
    assert [(call.name, call.arguments) for call in message.calls] == [("read", '{"path":"ü"}')]
    assert message.echo == Echo("gemini", MODEL, parts)
    assert msgspec.json.decode(msgspec.json.encode(message), type=AssistantMessage) == message


def test_ids_are_geminis_own_or_derived_from_the_call() -> None:
    """L4"""
    own = {"functionCall": {"name": "read", "args": {}, "id": "g1"}}
    first, second = (decode(answer(CALL, CALL, own), REQUEST, PROFILE).message.calls for _ in range(2))
    assert first == second, "derived, not drawn"
    ids = [call.id for call in first]
    assert ids[2] == "g1"
    assert len(set(ids)) == 3
    assert all(len(call_id) == 9 and call_id.isalnum() for call_id in ids[:2])
    other = ModelRequest("", (), [UserMessage("go")], "s", "call-8")
    assert decode(answer(CALL), other, PROFILE).message.calls[0].id not in ids


def test_an_id_that_was_used_before_is_replaced() -> None:
    """L4"""
    request = ModelRequest("", (), [UserMessage("x")], "s", "c", call_ids={"g1"})
    again = {"functionCall": {"name": "read", "id": "g1"}}
    (call,) = decode(answer(again), request, PROFILE).message.calls
    assert call.id != "g1"
    assert call.arguments == "{}"


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("STOP", Finish.STOP),
        ("MAX_TOKENS", Finish.LENGTH),
        ("MALFORMED_FUNCTION_CALL", Finish.MALFORMED),
        ("UNEXPECTED_TOOL_CALL", Finish.MALFORMED),
        ("MALFORMED_RESPONSE", Finish.MALFORMED),
        ("TOO_MANY_TOOL_CALLS", Finish.MALFORMED),
        ("SAFETY", Finish.REFUSAL),
        ("RECITATION", Finish.REFUSAL),
        ("PROHIBITED_CONTENT", Finish.REFUSAL),
        ("SPII", Finish.REFUSAL),
        ("MODEL_ARMOR", Finish.REFUSAL),
    ],
)
def test_finish_reasons_are_understood(reason: str, finish: Finish) -> None:
    """M4, L9"""
    reply = decode(answer({"text": "so far"}, finish=reason), REQUEST, PROFILE)
    assert reply.finish is finish
    assert reply.message.text == ("" if finish is Finish.REFUSAL else "so far"), "usable text is kept"


def test_a_malformed_call_often_comes_with_nothing() -> None:
    """M4, L9"""
    reply = decode(answer(finish="MALFORMED_FUNCTION_CALL"), REQUEST, PROFILE)
    assert (reply.message, reply.finish) == (AssistantMessage(), Finish.MALFORMED)


@pytest.mark.parametrize("reason", ["OTHER", "LANGUAGE", "CONTINUATION", "NO_IMAGE", "BRAND_NEW", None, 5, ["STOP"]])
def test_an_unknown_reason_is_never_taken_for_a_stop_and_its_bill_stays(reason: Any) -> None:
    """M4, L9, L15."""
    reply = decode(answer({"text": "x"}, finish=reason, usageMetadata={"promptTokenCount": 7}), REQUEST, PROFILE)
    assert (reply.finish, reply.usage, reply.message.text) == (Finish.MALFORMED, Usage(7), "x")


def test_a_blocked_prompt_is_a_refusal() -> None:
    """M4, L9"""
    reply = decode(
        {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 7}}, REQUEST, PROFILE
    )
    assert (reply.message, reply.finish, reply.usage) == (AssistantMessage(), Finish.REFUSAL, Usage(fresh=7))


def test_usage_counts_do_not_overlap() -> None:
    """M4, M7: the prompt includes the cached part, the candidates exclude thoughts."""
    raw = {
        "promptTokenCount": 100,
        "cachedContentTokenCount": 60,
        "toolUsePromptTokenCount": 5,
        "candidatesTokenCount": 10,
        "thoughtsTokenCount": 4,
        "totalTokenCount": 119,
    }
    reply = decode(answer({"text": "x"}, usageMetadata=raw), REQUEST, PROFILE)
    assert reply.usage == Usage(fresh=45, cache_read=60, output=14, reasoning=4)
    assert reply.raw_usage == raw
    assert decode(answer({"text": "x"}), REQUEST, PROFILE).usage == Usage()


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
    """M2, L9, L15: it was paid for, and cannot be acted on or replayed."""
    reply = decode(answer({"text": "x"}, CALL, odd, usageMetadata={"promptTokenCount": 7}), REQUEST, PROFILE)
    assert (reply.finish, reply.usage, reply.counted) == (Finish.MALFORMED, Usage(7), True)
    assert reply.message == AssistantMessage("x")


def test_a_billed_answer_without_a_candidate_is_malformed() -> None:
    """L15"""
    reply = decode({"candidates": [], "usageMetadata": {"promptTokenCount": 7}}, REQUEST, PROFILE)
    assert (reply.finish, reply.usage) == (Finish.MALFORMED, Usage(7))
    odd = {"candidates": [{"content": {"parts": "x"}, "finishReason": "STOP"}]}
    assert decode(odd, REQUEST, PROFILE).finish is Finish.MALFORMED


@pytest.mark.parametrize(("given", "written"), [([1], "[1]"), ("text", '"text"'), (5, "5"), (None, "{}")])
def test_arguments_that_are_no_object_are_kept_as_text_and_can_be_sent_back(given: Any, written: str) -> None:
    """L10, L4"""
    odd = {"functionCall": {"name": "2 read!", "args": given, "id": 5}, "thoughtSignature": "c2ln"}
    message = decode(answer(odd), REQUEST, PROFILE).message
    assert (message.calls[0].name, message.calls[0].arguments) == ("2 read!", written)
    assert message.echo is not None
    sent = message.echo.content[0]
    assert sent["thoughtSignature"] == "c2ln"
    assert isinstance(sent["functionCall"].pop("args"), dict)
    assert sent["functionCall"] == {"name": "_2_read_"}


def test_a_signature_that_is_none_leaves_no_echo() -> None:
    """L4: the dummy signature stands for it then."""
    assert decode(answer({**CALL, "thoughtSignature": 5}), REQUEST, PROFILE).message.echo is None


def test_an_answer_without_usage_is_not_counted() -> None:
    """M7, L15: unknown is not nothing."""
    assert not decode(answer({"text": "x"}), REQUEST, PROFILE).counted
    assert not decode(answer({"text": "x"}, usageMetadata={"trafficType": "ON_DEMAND"}), REQUEST, PROFILE).counted
    assert decode(answer({"text": "x"}, usageMetadata={"promptTokenCount": 0}), REQUEST, PROFILE).counted


@pytest.mark.parametrize("odd", [None, [], "text", {}, {"candidates": []}, {"candidates": ["x"]}])
def test_what_is_no_answer_is_unreadable(odd: Any) -> None:
    """M2: total."""
    with pytest.raises(ReplyUnreadable):
        decode(odd, REQUEST, PROFILE)


def test_an_error_with_status_200_is_raised_by_its_code() -> None:
    """L13"""
    with pytest.raises(Unavailable, match="busy"):
        decode({"error": {"code": 503, "status": "UNAVAILABLE", "message": "busy"}}, REQUEST, PROFILE)
