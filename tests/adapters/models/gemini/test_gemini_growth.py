"""What is sent later begins with what was sent before: implicit caches hang on it (M4, L8)."""

import json

import pytest
from hypothesis import given

from hummingbird.adapters.models.gemini.encode import encode, parts_of
from hummingbird.adapters.models.wire import Profile
from hummingbird.domain.history import unsendable
from hummingbird.domain.messages import Message
from hummingbird.ports.model import ModelRequest
from tests.wire.conversations import conversations
from tests.wire.dialogue import TOOLS
from tests.wire.gemini_types import check

MODEL = "gemini-3.8-flash"
PROFILE = Profile(MODEL, 1, signs_calls=True)


def asked(messages: list[Message]) -> ModelRequest:
    return ModelRequest("Be brief.", TOOLS, messages, "s", "c")


@given(conversations("gemini", MODEL))
def test_a_longer_conversation_begins_with_the_shorter_one(talk: list[Message]) -> None:
    """L8: append-only, part by part."""
    whole = list(parts_of(talk, PROFILE))
    for sent in range(1, len(talk) + 1):
        before = list(parts_of(talk[:sent], PROFILE))
        assert whole[: len(before)] == before


@pytest.mark.thorough
@given(conversations("gemini", MODEL))
def test_every_body_fits_the_sdks_types(talk: list[Message]) -> None:
    """M2, L4"""
    if next(unsendable(talk), None) is None:
        made = json.loads(encode(asked(talk), PROFILE))
        check(made)
        roles = [turn["role"] for turn in made["contents"]]
        assert roles == ["user", "model"] * (len(roles) // 2) + ["user"]
