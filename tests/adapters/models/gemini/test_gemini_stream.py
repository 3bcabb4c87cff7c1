"""A streamed answer is the answer that a plain call returns (L16)."""

from typing import Any

import pytest

from hummingbird.adapters.models.gemini.decode import decode
from hummingbird.adapters.models.gemini.stream import Assembler
from hummingbird.adapters.models.wire import Profile
from hummingbird.domain.errors import CredentialRefused, HummingbirdError, ReplyUnreadable, Unavailable
from hummingbird.domain.events import CallDelta, Delta, ReasoningDelta, TextDelta
from hummingbird.domain.journal import Finish
from hummingbird.domain.messages import UserMessage
from hummingbird.ports.model import ModelRequest

CALL = {"functionCall": {"name": "read", "args": {"path": "ü"}}, "thoughtSignature": "c2ln"}
SECOND = {"functionCall": {"name": "wait", "args": {}}}
REQUEST, PROFILE = ModelRequest("", (), [UserMessage("go")], "s", "c"), Profile("gemini-3.8-flash", 1)


def chunk(*parts: Any, finish: str | None = None, **more: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)} if parts else {}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "modelVersion": "gemini-3.8-flash", **more}


CHUNKS = [
    chunk({"text": "Look ", "thought": True}, usageMetadata={"promptTokenCount": 5}),
    chunk({"text": "first.", "thought": True}),
    chunk({"text": "Look"}),
    chunk({"text": "ing."}, {"text": ""}),
    chunk(CALL),
    chunk(SECOND),
    chunk(finish="STOP", usageMetadata={"promptTokenCount": 5, "candidatesTokenCount": 9}),
]
WHOLE = chunk(
    {"text": "Look first.", "thought": True},
    {"text": "Looking."},
    CALL,
    SECOND,
    finish="STOP",
    usageMetadata={"promptTokenCount": 5, "candidatesTokenCount": 9},
)


def fed(*chunks: Any) -> tuple[Assembler, list[Delta]]:
    assembler = Assembler()
    told: list[Delta] = []
    for content in chunks:
        told.extend(assembler.feed("", content))
    return assembler, told


def test_the_stream_gives_the_very_answer_of_a_plain_call() -> None:
    """L16, M4"""
    assembler, _ = fed(*CHUNKS)
    assert assembler.result() == WHOLE
    assert decode(assembler.result(), REQUEST, PROFILE) == decode(WHOLE, REQUEST, PROFILE)


def test_deltas_are_told_as_they_come() -> None:
    """L16"""
    assert fed(*CHUNKS)[1] == [
        ReasoningDelta("Look "),
        ReasoningDelta("first."),
        TextDelta("Look"),
        TextDelta("ing."),
        CallDelta(0, "read", '{"path":"ü"}'),
        CallDelta(1, "wait", "{}"),
    ]


def test_a_signature_stays_on_the_part_it_came_with() -> None:
    """M4: parts with a signature are never joined to others."""
    signed, empty = {"text": "b", "thoughtSignature": "MQ=="}, {"text": "", "thoughtSignature": "Mg=="}
    assembler, _ = fed(
        chunk({"text": "a"}), chunk(signed), chunk({"text": "c"}, {"text": "d"}), chunk(empty), chunk(finish="STOP")
    )
    message = decode(assembler.result(), REQUEST, PROFILE).message
    assert message.text == "abcd"
    assert message.echo is not None
    assert message.echo.content == [{"text": "a"}, signed, {"text": "cd"}, empty]


def test_a_stream_that_ends_anywhere_before_its_end_is_unreadable() -> None:
    """L16: nothing of it enters history."""
    for end in range(len(CHUNKS)):
        assembler, _ = fed(*CHUNKS[:end])
        with pytest.raises(ReplyUnreadable):
            assembler.result()


def test_a_blocked_prompt_is_a_whole_answer() -> None:
    """M4"""
    assembler, told = fed({"promptFeedback": {"blockReason": "OTHER"}})
    assert told == []
    assert decode(assembler.result(), REQUEST, PROFILE).finish is Finish.REFUSAL


def test_a_malformed_call_may_leave_the_parts_empty() -> None:
    """M4"""
    assembler, _ = fed(chunk(finish="MALFORMED_FUNCTION_CALL"))
    assert decode(assembler.result(), REQUEST, PROFILE).finish is Finish.MALFORMED


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ({"error": {"code": 503, "status": "UNAVAILABLE", "message": "it broke"}}, Unavailable),
        ({"error": {"status": "UNAUTHENTICATED", "message": "it broke"}}, CredentialRefused),
        ([{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "it broke"}}], Unavailable),
    ],
)
def test_an_error_inside_the_stream_is_known_by_its_code(content: Any, error: type[HummingbirdError]) -> None:
    """L13"""
    with pytest.raises(error, match="it broke"):
        fed(CHUNKS[0], content)


@pytest.mark.parametrize("odd", ["text", 5, None, []])
def test_what_is_no_chunk_is_unreadable(odd: Any) -> None:
    """M2: total."""
    with pytest.raises(ReplyUnreadable):
        fed(odd)
