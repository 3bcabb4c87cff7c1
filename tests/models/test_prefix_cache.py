"""The settled beginning of a conversation is proven and encoded once; nothing but the cost depends on that."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.core.errors import InvalidRequest
from hummingbird.core.messages import AssistantMessage, EncodedMessages, Message, ToolCall, ToolMessage, UserMessage
from hummingbird.core.protocols.model import ModelRequest
from hummingbird.models.anthropic import anthropic_wire
from hummingbird.models.gemini import gemini_wire
from hummingbird.models.openai_chat import openai_chat_wire
from hummingbird.models.openai_responses import openai_responses_wire
from hummingbird.models.wire_format import ModelProfile, WireFormat, extend_prefix
from tests.wire.asked import asked
from tests.wire.conversations import conversations

MODEL = "the-model"
PROFILE = ModelProfile(MODEL, 100_000, system_entries=True)
WIRES: dict[str, Callable[[], WireFormat]] = {
    "anthropic": anthropic_wire,
    "gemini": gemini_wire,
    "openai_chat": lambda: openai_chat_wire("OpenAI"),
    "openai_responses": lambda: openai_responses_wire("OpenAI"),
}


def sendable(messages: Sequence[Message]) -> list[int]:
    """The lengths at which a request may be made: after something to answer, with every call answered."""
    ends, owed = [], 0
    for index, message in enumerate(messages, 1):
        owed += len(message.calls) if isinstance(message, AssistantMessage) else 0
        owed -= isinstance(message, ToolMessage)
        if not owed and not isinstance(message, AssistantMessage):
            ends.append(index)
    return ends


@pytest.mark.parametrize("wire", WIRES)
@given(picked=st.data())
def test_a_request_is_the_same_bytes_with_and_without_what_was_kept(wire: str, picked: st.DataObject) -> None:
    """The memo is a cache and nothing else, also when a call was not answered and its end moves."""
    messages = picked.draw(conversations(wire, MODEL))
    encoder, memo, cached = WIRES[wire](), EncodedMessages(), 0
    for end in sendable(messages):
        kept = asked(messages[:end], cached_messages=cached, encoded=memo)
        fresh = asked(messages[:end], cached_messages=cached)
        assert encoder.encode(kept, PROFILE, stream=False) == encoder.encode(fresh, PROFILE, stream=False)
        assert b"cache_control" not in memo.body
        cached = end if picked.draw(st.booleans()) else cached


def turn(number: int) -> list[Message]:
    call = ToolCall(f"c{number}", "read", "{}")
    return [AssistantMessage(calls=(call,)), ToolMessage(call.id, "read", f"result {number}")]


def count(request: ModelRequest, seen: list[Message]) -> None:
    def render(messages: Sequence[Message], before: Message | None) -> bytes:
        seen.extend(messages)
        return b"x"

    seen.extend(extend_prefix(request, "anyone", render).rest)


def test_a_turn_costs_what_is_new_however_long_the_conversation_is() -> None:
    """Of 200 turns, only the last two answers and what came with them are touched."""
    messages, memo = [UserMessage("go"), *turn(0)], EncodedMessages()
    cached = 1
    for number in range(1, 200):
        count(asked(messages, cached_messages=cached, encoded=memo), [])
        cached = len(messages)
        messages += turn(number)
    touched: list[Message] = []
    count(asked(messages, cached_messages=cached, encoded=memo), touched)
    assert 0 < len(touched) <= 5
    assert memo.count >= len(messages) - 4


def test_another_conversation_is_not_taken_for_the_one_that_was_kept() -> None:
    memo = EncodedMessages()
    first: list[Message] = [UserMessage("go"), *turn(0), *turn(1)]
    other: list[Message] = [UserMessage("stay"), *turn(0), *turn(1)]
    wire = openai_chat_wire("OpenAI")
    wire.encode(asked(first, cached_messages=3, encoded=memo), PROFILE, stream=False)
    assert memo.count
    sent = wire.encode(asked(other, cached_messages=3, encoded=memo), PROFILE, stream=False)
    assert b"stay" in sent
    assert b'"go"' not in sent


def test_what_is_new_is_proven_against_what_was_kept() -> None:
    """A call id of the kept part cannot come again, and its last calls must still be answered."""
    memo = EncodedMessages()
    messages: list[Message] = [UserMessage("go"), *turn(0), *turn(1), *turn(2)]
    wire = openai_chat_wire("OpenAI")
    wire.encode(asked(messages, cached_messages=5, encoded=memo), PROFILE, stream=False)
    assert memo.count == 4
    with pytest.raises(InvalidRequest, match="id twice"):
        wire.encode(asked([*messages, *turn(0)], cached_messages=5, encoded=memo), PROFILE, stream=False)
    with pytest.raises(InvalidRequest, match="comes before the results of c1"):
        wire.encode(asked([*messages[:4], UserMessage("?")], cached_messages=5, encoded=memo), PROFILE, stream=False)
