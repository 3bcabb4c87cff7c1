"""What is sent later begins with what was sent before: caches and signed thinking hang on it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.core.messages import Message, Notice, UserMessage, find_request_problems
from hummingbird.core.protocols.model import ModelRequest
from hummingbird.models.anthropic import encode_blocks, encode_request
from hummingbird.models.wire_format import ModelProfile, TurnFragment
from tests.wire.anthropic_types import check
from tests.wire.conversations import conversations
from tests.wire.dialogue import TOOLS

MODEL = "claude-opus-5-5"
PROFILES = st.booleans().map(lambda entries: ModelProfile(MODEL, 1, system_entries=entries))
TALKS = conversations("anthropic", MODEL)


def asked(messages: list[Message], cached: int = 0) -> ModelRequest:
    return ModelRequest("Be brief.", TOOLS, messages, "s", "c", cached)


def blocks(messages: list[Message], profile: ModelProfile) -> list[TurnFragment]:
    return list(encode_blocks(messages, profile))


def sendable(messages: list[Message]) -> bool:
    return next(find_request_problems(messages), None) is None


def withdrawn(messages: list[Message], sent: int) -> bool:
    """A notice that was last, was not answered, and now has the user's words after it."""
    after = next((m for m in messages[sent:] if not isinstance(m, Notice)), None)
    return isinstance(messages[sent - 1], Notice) and isinstance(after, UserMessage)


@given(TALKS, PROFILES)
def test_a_longer_conversation_begins_with_the_shorter_one(talk: list[Message], profile: ModelProfile) -> None:
    """Append-only, block by block."""
    whole = blocks(talk, profile)
    for sent in range(1, len(talk) + 1):
        if sendable(talk[:sent]) and not withdrawn(talk, sent):
            before = blocks(talk[:sent], profile)
            assert whole[: len(before)] == before


@pytest.mark.thorough
@given(TALKS)
def test_only_an_unanswered_notice_changes_its_form_when_the_user_speaks_after_it(talk: list[Message]) -> None:
    """No system entry may stand before a user message; nothing signed depends on it, nothing before it moves."""
    profile = ModelProfile(MODEL, 1, system_entries=True)
    whole = blocks(talk, profile)
    for sent in range(1, len(talk) + 1):
        if sendable(talk[:sent]) and withdrawn(talk, sent):
            before = blocks(talk[:sent], profile)
            run = sent
            while isinstance(talk[run - 1], Notice):
                run -= 1
            settled = [block for block in before if block.message < run]
            assert whole[: len(settled)] == settled


@pytest.mark.thorough
@given(TALKS, PROFILES, st.integers(0, 20))
def test_every_body_fits_the_sdks_types_and_has_few_breakpoints(
    talk: list[Message], profile: ModelProfile, cached: int
) -> None:
    if sendable(talk):
        body = json.loads(encode_request(asked(talk, cached), profile, stream=False))
        check({"model": MODEL, **body})
        marked = [b for turn in body["messages"] for b in turn["content"] if "cache_control" in b]
        assert 1 <= len(marked) <= 2
        assert "cache_control" in [turn for turn in body["messages"] if turn["role"] != "assistant"][-1]["content"][-1]
