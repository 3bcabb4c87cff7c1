"""What is sent later begins with what was sent before: implicit caches hang on it."""

import json

import pytest
from hypothesis import given

from hummingbird.core.messages import Message, find_request_problems
from hummingbird.core.protocols.model import ModelRequest
from hummingbird.models.gemini import encode_parts, encode_request
from hummingbird.models.wire_format import ModelProfile
from tests.wire.conversations import conversations
from tests.wire.dialogue import TOOLS
from tests.wire.gemini_types import check

MODEL = "gemini-3.8-flash"
PROFILE = ModelProfile(MODEL, 1, signs_calls=True)


def asked(messages: list[Message]) -> ModelRequest:
    return ModelRequest("Be brief.", TOOLS, messages, "s", "c")


@given(conversations("gemini", MODEL))
def test_a_longer_conversation_begins_with_the_shorter_one(talk: list[Message]) -> None:
    """Append-only, part by part."""
    whole = list(encode_parts(talk, PROFILE))
    for sent in range(1, len(talk) + 1):
        before = list(encode_parts(talk[:sent], PROFILE))
        assert whole[: len(before)] == before


@pytest.mark.thorough
@given(conversations("gemini", MODEL))
def test_every_body_fits_the_sdks_types(talk: list[Message]) -> None:
    if next(find_request_problems(talk), None) is None:
        made = json.loads(encode_request(asked(talk), PROFILE))
        check(made)
        roles = [turn["role"] for turn in made["contents"]]
        assert roles == ["user", "model"] * (len(roles) // 2) + ["user"]
