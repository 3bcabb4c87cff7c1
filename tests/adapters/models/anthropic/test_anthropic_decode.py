"""Anthropic's answers as replies."""

from typing import Any

import msgspec
import pytest

from hummingbird.adapters.models.anthropic.decode import decode
from hummingbird.adapters.models.wire import Profile
from hummingbird.domain.errors import ContextOverflow, ReplyUnreadable, Unavailable
from hummingbird.domain.journal import Finish
from hummingbird.domain.messages import AssistantMessage, Echo, ToolCall, UserMessage
from hummingbird.domain.usage import Usage
from hummingbird.ports.model import ModelRequest

MODEL = "claude-opus-5-5"
PROFILE = Profile(MODEL, 1)
REQUEST = ModelRequest("", (), [UserMessage("go")], "s", "call-7")
TEXT = {"type": "text", "text": "It is the disk."}
THOUGHT = {"type": "thinking", "thinking": "Look at the log.", "signature": "sig"}
USE = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "ü"}, "caller": {"type": "direct"}}


def answer(*content: Any, stop: str | None = "end_turn", **more: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": list(content), "stop_reason": stop, **more}


def test_text_thinking_and_calls_are_read_and_the_whole_is_kept_for_replay() -> None:
    """M3"""
    content = [THOUGHT, {"type": "redacted_thinking", "data": "x"}, TEXT, USE]
    reply = decode(answer(*content, stop="tool_use"), REQUEST, PROFILE)
    assert reply.message == AssistantMessage(
        "It is the disk.",
        "Look at the log.",
        (ToolCall("toolu_1", "read", '{"path":"ü"}'),),
        Echo("anthropic", MODEL, content),
    )
    assert reply.finish is Finish.STOP
    assert msgspec.json.decode(msgspec.json.encode(reply.message), type=AssistantMessage) == reply.message


@pytest.mark.parametrize(
    ("stop", "finish"),
    [
        ("end_turn", Finish.STOP),
        ("stop_sequence", Finish.STOP),
        ("tool_use", Finish.STOP),
        ("max_tokens", Finish.LENGTH),
        ("pause_turn", Finish.PAUSE),
        ("refusal", Finish.REFUSAL),
        ("model_context_window_exceeded", Finish.WINDOW_FULL),
        ("something_new", Finish.STOP),
        (None, Finish.STOP),
    ],
)
def test_stop_reasons_are_understood(stop: str | None, finish: Finish) -> None:
    """M3, L9"""
    reply = decode(answer(TEXT, stop=stop), REQUEST, PROFILE)
    assert reply.finish is finish
    assert reply.message.paused is (finish is Finish.PAUSE)


def test_what_was_said_before_a_refusal_is_discarded() -> None:
    """L9"""
    assert decode(answer(TEXT, USE, stop="refusal"), REQUEST, PROFILE).message == AssistantMessage()


def test_a_cut_off_call_is_told_as_it_is() -> None:
    """L9: the loop never runs it."""
    reply = decode(answer(TEXT, USE, stop="max_tokens"), REQUEST, PROFILE)
    assert (reply.finish, len(reply.message.calls)) == (Finish.LENGTH, 1)


def test_usage_counts_do_not_overlap() -> None:
    """M7"""
    raw = {
        "input_tokens": 3,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 20,
        "output_tokens": 9,
        "output_tokens_details": {"thinking_tokens": 4},
        "service_tier": "standard",
    }
    reply = decode(answer(TEXT, usage=raw), REQUEST, PROFILE)
    assert reply.usage == Usage(fresh=3, cache_read=100, cache_write=20, output=9, reasoning=4)
    assert reply.raw_usage == raw
    sparse = {"input_tokens": 3, "output_tokens": 1, "cache_read_input_tokens": None, "output_tokens_details": None}
    assert decode(answer(TEXT, usage=sparse), REQUEST, PROFILE).usage == Usage(fresh=3, output=1)


def test_empty_text_blocks_are_not_kept_because_they_may_not_be_sent_back() -> None:
    """L4"""
    reply = decode(answer(THOUGHT, {"type": "text", "text": ""}, USE), REQUEST, PROFILE)
    assert reply.message.echo == Echo("anthropic", MODEL, [THOUGHT, USE])
    assert decode(answer({"type": "text", "text": ""}), REQUEST, PROFILE).message == AssistantMessage()


@pytest.mark.parametrize("own", [None, "", "used", "has space", 5])
def test_an_id_that_is_missing_used_or_illegal_is_replaced_in_call_and_echo(own: Any) -> None:
    """L4: ids are unique in the conversation."""
    request = ModelRequest("", (), [UserMessage("x")], "s", "call-7", call_ids={"used"})
    first, second = (decode(answer({**USE, "id": own}), request, PROFILE).message for _ in range(2))
    assert first == second, "derived, not drawn"
    assert first.calls[0].id not in {"used", own}
    assert first.echo is not None
    assert first.echo.content[0]["id"] == first.calls[0].id


def test_two_calls_with_one_id_become_two_ids() -> None:
    """L4"""
    ids = [call.id for call in decode(answer(USE, USE), REQUEST, PROFILE).message.calls]
    assert ids[0] == "toolu_1"
    assert len(set(ids)) == 2


@pytest.mark.parametrize("odd", [{"type": "hologram"}, {"type": "text"}, {"type": "tool_use", "name": 5}, "x", None])
def test_an_unknown_part_makes_the_answer_malformed_and_its_bill_stays(odd: Any) -> None:
    """M2, L9, L15: it was paid for, and cannot be acted on or replayed."""
    reply = decode(answer(THOUGHT, TEXT, USE, odd, usage={"input_tokens": 3, "output_tokens": 9}), REQUEST, PROFILE)
    assert (reply.finish, reply.usage, reply.counted) == (Finish.MALFORMED, Usage(3, output=9), True)
    assert reply.message == AssistantMessage("It is the disk.", "Look at the log.")


def test_a_billed_answer_without_content_is_malformed() -> None:
    """L15"""
    reply = decode({"content": None, "usage": {"input_tokens": 3}}, REQUEST, PROFILE)
    assert (reply.finish, reply.usage) == (Finish.MALFORMED, Usage(3))


@pytest.mark.parametrize(("given", "written"), [([1], "[1]"), ("text", '"text"'), (5, "5"), ([], "[]"), (None, "{}")])
def test_an_input_that_is_no_object_is_kept_as_text_and_can_be_sent_back(given: Any, written: str) -> None:
    """L10, L4"""
    message = decode(answer({**USE, "input": given}), REQUEST, PROFILE).message
    assert message.calls[0].arguments == written
    assert message.echo is not None
    assert isinstance(message.echo.content[0]["input"], dict)


def test_a_name_that_no_tool_can_have_is_made_legal_in_the_echo_alone() -> None:
    """L4, L10: the loop shows the model what it wrote."""
    message = decode(answer({**USE, "name": "no such tool!"}), REQUEST, PROFILE).message
    assert message.calls[0].name == "no such tool!"
    assert message.echo is not None
    assert message.echo.content[0]["name"] == "no_such_tool_"


@pytest.mark.parametrize("raw", [None, {}, "x", {"input_tokens": "many"}, {"input_tokens": -1}])
def test_an_answer_without_usage_is_not_counted(raw: Any) -> None:
    """M7, L15: unknown is not nothing."""
    assert not decode(answer(TEXT, usage=raw), REQUEST, PROFILE).counted
    assert decode(answer(TEXT, usage={"input_tokens": 0}), REQUEST, PROFILE).counted


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
    """M3, L4: white space stays where thinking follows; text of no length is never sent back."""
    message = decode(answer(*content), REQUEST, PROFILE).message
    assert (message.echo.content if message.echo else None) == kept
    assert message.text in {"", "It is the disk."}
    assert len(message.calls) == 1


@pytest.mark.parametrize("odd", [None, [], "text", {}, {"content": "text"}, {"content": {}}])
def test_what_is_no_message_is_unreadable(odd: Any) -> None:
    """M2: total."""
    with pytest.raises(ReplyUnreadable):
        decode(odd, REQUEST, PROFILE)


def test_an_error_with_status_200_is_raised_by_its_type() -> None:
    """L13"""
    with pytest.raises(Unavailable, match="busy"):
        decode({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}, REQUEST, PROFILE)
    with pytest.raises(ContextOverflow):
        decode(
            {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 3 > 2"}},
            REQUEST,
            PROFILE,
        )
