"""A streamed answer is the answer that a plain call returns."""

from typing import Any

import pytest

from hummingbird.core.errors import CredentialRefused, HummingbirdError, ProviderReplyUnreadable, ProviderUnavailable
from hummingbird.core.events import CallDelta, Delta, ReasoningDelta, TextDelta
from hummingbird.core.journal import FinishReason
from hummingbird.core.messages import UserMessage
from hummingbird.core.protocols.model import ModelRequest
from hummingbird.models.gemini import GeminiAssembler, decode_reply
from hummingbird.models.wire_format import ModelProfile

CALL = {"functionCall": {"name": "read", "args": {"path": "ü"}}, "thoughtSignature": "c2ln"}
SECOND = {"functionCall": {"name": "wait", "args": {}}}
REQUEST, PROFILE = ModelRequest("", (), [UserMessage("go")], "s", "c"), ModelProfile("gemini-3.8-flash", 1)


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


def fed(*chunks: Any) -> tuple[GeminiAssembler, list[Delta]]:
    assembler = GeminiAssembler()
    told: list[Delta] = []
    for content in chunks:
        told.extend(assembler.feed("", content))
    return assembler, told


def test_the_stream_gives_the_very_answer_of_a_plain_call() -> None:
    assembler, _ = fed(*CHUNKS)
    assert assembler.result() == WHOLE
    assert decode_reply(assembler.result(), REQUEST, PROFILE) == decode_reply(WHOLE, REQUEST, PROFILE)


def test_deltas_are_told_as_they_come() -> None:
    assert fed(*CHUNKS)[1] == [
        ReasoningDelta("Look "),
        ReasoningDelta("first."),
        TextDelta("Look"),
        TextDelta("ing."),
        CallDelta(0, "read", '{"path":"ü"}'),
        CallDelta(1, "wait", "{}"),
    ]


def test_a_signature_stays_on_the_part_it_came_with() -> None:
    """Parts with a signature are never joined to others."""
    signed, empty = {"text": "b", "thoughtSignature": "MQ=="}, {"text": "", "thoughtSignature": "Mg=="}
    assembler, _ = fed(
        chunk({"text": "a"}), chunk(signed), chunk({"text": "c"}, {"text": "d"}), chunk(empty), chunk(finish="STOP")
    )
    message = decode_reply(assembler.result(), REQUEST, PROFILE).message
    assert message.text == "abcd"
    assert message.echo is not None
    assert message.echo.content == [{"text": "a"}, signed, {"text": "cd"}, empty]


def test_a_stream_that_ends_anywhere_before_its_end_is_unreadable() -> None:
    """Nothing of it enters history."""
    for end in range(len(CHUNKS)):
        assembler, _ = fed(*CHUNKS[:end])
        with pytest.raises(ProviderReplyUnreadable):
            assembler.result()


def test_a_blocked_prompt_is_a_whole_answer() -> None:
    assembler, told = fed({"promptFeedback": {"blockReason": "OTHER"}})
    assert told == []
    assert decode_reply(assembler.result(), REQUEST, PROFILE).finish is FinishReason.REFUSAL


def test_a_malformed_call_may_leave_the_parts_empty() -> None:
    assembler, _ = fed(chunk(finish="MALFORMED_FUNCTION_CALL"))
    assert decode_reply(assembler.result(), REQUEST, PROFILE).finish is FinishReason.MALFORMED


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ({"error": {"code": 503, "status": "UNAVAILABLE", "message": "it broke"}}, ProviderUnavailable),
        ({"error": {"status": "UNAUTHENTICATED", "message": "it broke"}}, CredentialRefused),
        ([{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "it broke"}}], ProviderUnavailable),
    ],
)
def test_an_error_inside_the_stream_is_known_by_its_code(content: Any, error: type[HummingbirdError]) -> None:
    with pytest.raises(error, match="it broke"):
        fed(CHUNKS[0], content)


@pytest.mark.parametrize("odd", ["text", 5, None, []])
def test_what_is_no_chunk_is_unreadable(odd: Any) -> None:
    """total."""
    with pytest.raises(ProviderReplyUnreadable):
        fed(odd)
