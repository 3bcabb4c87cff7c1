"""Thinking that comes in many pieces, and errors that Google puts into Claude's streams."""

from typing import Any

import pytest

from hummingbird.core.errors import (
    CredentialRefused,
    HummingbirdError,
    ProviderRequestRefused,
    ProviderUnavailable,
    ThinkingRefused,
)
from hummingbird.core.messages import AssistantMessage
from tests.standins.vendors.script import Call, Fault, Part, Script, Turn
from tests.standins.vendors.server import VendorLab
from tests.wire.asked import reread
from tests.wire.dialogue import Dialogue
from tests.wire.reached import reached

MODEL = "claude-opus-5-5"
THOUGHT, SECRET = Part("thinking", "hm"), Part("redacted_thinking", "secret")
SPACE, WORDS = Part("text", "\n\n"), Part("text", "I look.")
CALLS = (Call("read", {"path": "a"}),)
FOUND = Turn(text="The disk is full.", thinking="clear now")


def listener(streamed: bool) -> Any:
    return (lambda delta: None) if streamed else None


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("place", ["anthropic", "vertex-anthropic"])
@pytest.mark.parametrize(
    "parts",
    [
        (THOUGHT, SPACE),
        (SPACE, THOUGHT),
        (THOUGHT, SPACE, THOUGHT),
        (SPACE, SECRET, SPACE, THOUGHT, WORDS, THOUGHT, SPACE),
        (SECRET, WORDS, SECRET),
        (SPACE,),
    ],
)
async def test_whatever_stands_between_thinking_can_be_sent_back(
    parts: tuple[Part, ...], place: str, streamed: bool
) -> None:
    """Turn after turn, and in another process."""
    mixed = Turn(parts=parts, calls=CALLS)
    with VendorLab(Script([mixed, mixed, FOUND])) as lab:
        async with reached(lab, place, MODEL) as model:
            talk = Dialogue()
            for _ in range(2):
                await talk.ask(model, listener(streamed))
                talk.answer()
                talk.notice("go on")
            other = Dialogue(reread(talk.messages), calls=2)
            assert (await other.ask(model, listener(streamed))).message.text == "The disk is full."
        lab.script.assert_consumed()
    kinds = [part.kind for part in parts if part.kind != "text"]
    for message in talk.messages:
        if isinstance(message, AssistantMessage):
            assert message.echo is not None
            assert [block["type"] for block in message.echo.content if "thinking" in block["type"]] == kinds


async def test_white_space_that_is_refused_all_the_same_means_to_replay_without_thinking() -> None:
    """What is known of this is not certain, so there is a second way."""
    words = "messages.1.content.0: text content blocks must be non-empty"
    with VendorLab(Script([Fault("status", 400, message=words)])) as lab:
        async with reached(lab, "anthropic", MODEL) as model:
            with pytest.raises(ThinkingRefused):
                await Dialogue().ask(model)


@pytest.mark.parametrize(
    ("status", "word", "error"),
    [
        (429, "RESOURCE_EXHAUSTED", ProviderUnavailable),
        (503, "UNAVAILABLE", ProviderUnavailable),
        (403, "PERMISSION_DENIED", CredentialRefused),
        (400, "INVALID_ARGUMENT", ProviderRequestRefused),
        (0, "PERMISSION_DENIED", CredentialRefused),
        (7, "PERMISSION_DENIED", CredentialRefused),
    ],
)
async def test_an_error_of_googles_inside_a_stream_is_what_it_says(
    status: int, word: str, error: type[HummingbirdError]
) -> None:
    """By its status, or by its word where the number is none."""
    fault = Fault("error_in_stream", status, type=word, message="it broke", after=2)
    with VendorLab(Script([fault])) as lab:
        async with reached(lab, "vertex-anthropic", MODEL) as model:
            with pytest.raises(HummingbirdError, match="it broke") as raised:
                await Dialogue().ask(model, listener(True))
        lab.script.assert_consumed()
    assert type(raised.value) is error
