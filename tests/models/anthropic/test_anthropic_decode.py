"""Anthropic's answers as replies."""

from typing import Any

import msgspec
import pytest

from hummingbird.core.errors import ContextOverflow, ProviderReplyUnreadable, ProviderUnavailable
from hummingbird.core.journal import FinishReason
from hummingbird.core.messages import AssistantMessage, ProviderEcho, ToolCall, UserMessage
from hummingbird.core.protocols.model import ModelRequest
from hummingbird.core.usage import TokenUsage
from hummingbird.models.anthropic import decode_reply
from hummingbird.models.wire_format import ModelProfile

MODEL = "claude-opus-5-5"
PROFILE = ModelProfile(MODEL, 1)
REQUEST = ModelRequest("", (), [UserMessage("go")], "s", "call-7")
TEXT = {"type": "text", "text": "It is the disk."}
THOUGHT = {"type": "thinking", "thinking": "Look at the log.", "signature": "sig"}
USE = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "ü"}, "caller": {"type": "direct"}}


def answer(*content: Any, stop: str | None = "end_turn", **more: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": list(content), "stop_reason": stop, **more}


def test_text_thinking_and_calls_are_read_and_the_whole_is_kept_for_replay() -> None:
    content = [THOUGHT, {"type": "redacted_thinking", "data": "x"}, TEXT, USE]
    reply = decode_reply(answer(*content, stop="tool_use"), REQUEST, PROFILE)
    assert reply.message == AssistantMessage(
        "It is the disk.",
        "Look at the log.",
        (ToolCall("toolu_1", "read", '{"path":"ü"}'),),
        ProviderEcho("anthropic", MODEL, content),
    )
    assert reply.finish is FinishReason.STOP
    assert msgspec.json.decode(msgspec.json.encode(reply.message), type=AssistantMessage) == reply.message


@pytest.mark.parametrize(
    ("stop", "finish"),
    [
        ("end_turn", FinishReason.STOP),
        ("stop_sequence", FinishReason.STOP),
        ("tool_use", FinishReason.STOP),
        ("max_tokens", FinishReason.LENGTH),
        ("pause_turn", FinishReason.PAUSE),
        ("refusal", FinishReason.REFUSAL),
        ("model_context_window_exceeded", FinishReason.WINDOW_FULL),
        ("something_new", FinishReason.STOP),
        (None, FinishReason.STOP),
    ],
)
def test_stop_reasons_are_understood(stop: str | None, finish: FinishReason) -> None:
    reply = decode_reply(answer(TEXT, stop=stop), REQUEST, PROFILE)
    assert reply.finish is finish
    assert reply.message.paused is (finish is FinishReason.PAUSE)


def test_what_was_said_before_a_refusal_is_discarded() -> None:
    assert decode_reply(answer(TEXT, USE, stop="refusal"), REQUEST, PROFILE).message == AssistantMessage()


def test_a_cut_off_call_is_told_as_it_is() -> None:
    """The loop never runs it."""
    reply = decode_reply(answer(TEXT, USE, stop="max_tokens"), REQUEST, PROFILE)
    assert (reply.finish, len(reply.message.calls)) == (FinishReason.LENGTH, 1)


def test_usage_counts_do_not_overlap() -> None:
    raw = {
        "input_tokens": 3,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 20,
        "output_tokens": 9,
        "output_tokens_details": {"thinking_tokens": 4},
        "service_tier": "standard",
    }
    reply = decode_reply(answer(TEXT, usage=raw), REQUEST, PROFILE)
    assert reply.usage == TokenUsage(fresh=3, cache_read=100, cache_write=20, output=9, reasoning=4)
    assert reply.raw_usage == raw
    sparse = {"input_tokens": 3, "output_tokens": 1, "cache_read_input_tokens": None, "output_tokens_details": None}
    assert decode_reply(answer(TEXT, usage=sparse), REQUEST, PROFILE).usage == TokenUsage(fresh=3, output=1)


def test_empty_text_blocks_are_not_kept_because_they_may_not_be_sent_back() -> None:
    reply = decode_reply(answer(THOUGHT, {"type": "text", "text": ""}, USE), REQUEST, PROFILE)
    assert reply.message.echo == ProviderEcho("anthropic", MODEL, [THOUGHT, USE])
    assert decode_reply(answer({"type": "text", "text": ""}), REQUEST, PROFILE).message == AssistantMessage()


@pytest.mark.parametrize("own", [None, "", "used", "has space", 5])
def test_an_id_that_is_missing_used_or_illegal_is_replaced_in_call_and_echo(own: Any) -> None:
    """Ids are unique in the conversation."""
    request = ModelRequest("", (), [UserMessage("x")], "s", "call-7", call_ids={"used"})
    first, second = (decode_reply(answer({**USE, "id": own}), request, PROFILE).message for _ in range(2))
    assert first == second, "derived, not drawn"
    assert first.calls[0].id not in {"used", own}
    assert first.echo is not None
    assert first.echo.content[0]["id"] == first.calls[0].id


def test_two_calls_with_one_id_become_two_ids() -> None:
    ids = [call.id for call in decode_reply(answer(USE, USE), REQUEST, PROFILE).message.calls]
    assert ids[0] == "toolu_1"
    assert len(set(ids)) == 2


@pytest.mark.parametrize("odd", [{"type": "hologram"}, {"type": "text"}, {"type": "tool_use", "name": 5}, "x", None])
def test_an_unknown_part_makes_the_answer_malformed_and_its_bill_stays(odd: Any) -> None:
    """It was paid for, and cannot be acted on or replayed."""
    reply = decode_reply(
        answer(THOUGHT, TEXT, USE, odd, usage={"input_tokens": 3, "output_tokens": 9}), REQUEST, PROFILE
    )
    assert (reply.finish, reply.usage, reply.usage_known) == (FinishReason.MALFORMED, TokenUsage(3, output=9), True)
    assert reply.message == AssistantMessage("It is the disk.", "Look at the log.")


def test_a_billed_answer_without_content_is_malformed() -> None:
    reply = decode_reply({"content": None, "usage": {"input_tokens": 3}}, REQUEST, PROFILE)
    assert (reply.finish, reply.usage) == (FinishReason.MALFORMED, TokenUsage(3))


@pytest.mark.parametrize(("given", "written"), [([1], "[1]"), ("text", '"text"'), (5, "5"), ([], "[]"), (None, "{}")])
def test_an_input_that_is_no_object_is_kept_as_text_and_can_be_sent_back(given: Any, written: str) -> None:
    message = decode_reply(answer({**USE, "input": given}), REQUEST, PROFILE).message
    assert message.calls[0].arguments == written
    assert message.echo is not None
    assert isinstance(message.echo.content[0]["input"], dict)


def test_a_name_that_no_tool_can_have_is_made_legal_in_the_echo_alone() -> None:
    """The loop shows the model what it wrote."""
    message = decode_reply(answer({**USE, "name": "no such tool!"}), REQUEST, PROFILE).message
    assert message.calls[0].name == "no such tool!"
    assert message.echo is not None
    assert message.echo.content[0]["name"] == "no_such_tool_"


@pytest.mark.parametrize("raw", [None, {}, "x", {"input_tokens": "many"}, {"input_tokens": -1}])
def test_an_answer_without_usage_is_not_counted(raw: Any) -> None:
    """Unknown is not nothing."""
    assert not decode_reply(answer(TEXT, usage=raw), REQUEST, PROFILE).usage_known
    assert decode_reply(answer(TEXT, usage={"input_tokens": 0}), REQUEST, PROFILE).usage_known


BLANK = {"type": "text", "text": "\n\n"}
EMPTY = {"type": "text", "text": ""}


@pytest.mark.parametrize(
    ("content", "kept"),
    [
        ([THOUGHT, BLANK, USE], [THOUGHT, USE]),
        ([BLANK, USE], [USE]),
        ([THOUGHT, BLANK, THOUGHT, BLANK, USE], [THOUGHT, BLANK, THOUGHT, USE]),
        (
            [BLANK, {"type": "redacted_thinking", "data": "x"}, USE],
            [BLANK, {"type": "redacted_thinking", "data": "x"}, USE],
        ),
        ([THOUGHT, EMPTY, THOUGHT, USE], None),
        ([THOUGHT, TEXT, THOUGHT, EMPTY, USE], [THOUGHT, TEXT, THOUGHT, USE]),
    ],
)
def test_nothing_is_taken_from_under_signed_thinking(content: list[Any], kept: list[Any] | None) -> None:
    """White space stays where thinking follows; text of no length is never sent back."""
    message = decode_reply(answer(*content), REQUEST, PROFILE).message
    assert (message.echo.content if message.echo else None) == kept
    assert message.text in {"", "It is the disk."}
    assert len(message.calls) == 1


@pytest.mark.parametrize("odd", [None, [], "text", {}, {"content": "text"}, {"content": {}}])
def test_what_is_no_message_is_unreadable(odd: Any) -> None:
    """total."""
    with pytest.raises(ProviderReplyUnreadable):
        decode_reply(odd, REQUEST, PROFILE)


def test_an_error_with_status_200_is_raised_by_its_type() -> None:
    with pytest.raises(ProviderUnavailable, match="busy"):
        decode_reply({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}, REQUEST, PROFILE)
    with pytest.raises(ContextOverflow):
        decode_reply(
            {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 3 > 2"}},
            REQUEST,
            PROFILE,
        )
