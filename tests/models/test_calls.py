"""Ids, names and arguments of tool calls, legal on every wire."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.core.limits import TOOL_NAME_CHARS
from hummingbird.core.messages import UserMessage
from hummingbird.core.protocols.model import ModelRequest
from hummingbird.models.wire_format import (
    arguments_to_object,
    arguments_to_text,
    assign_call_ids,
    derive_call_id,
    to_legal_id,
    to_legal_name,
)

ANYTHING = st.text(st.characters())  # lone surrogates included: models and journals have brought them


@given(ANYTHING, st.integers(0, 50))
def test_a_derived_id_is_nine_letters_or_digits_and_always_the_same(call_id: str, index: int) -> None:
    made = derive_call_id(call_id, index)
    assert made == derive_call_id(call_id, index)
    assert len(made) == 9
    assert made.isascii()
    assert made.isalnum()


@given(ANYTHING)
def test_names_and_ids_become_legal_and_legal_ones_stay(text: str) -> None:
    assert to_legal_name(to_legal_name(text)) == to_legal_name(text)
    assert to_legal_id(to_legal_id(text)) == to_legal_id(text)
    assert 1 <= len(to_legal_name(text)) <= TOOL_NAME_CHARS
    assert to_legal_name("read_file-2") == "read_file-2"
    assert to_legal_id("toolu_01-x") == "toolu_01-x"


@pytest.mark.thorough
@given(st.dictionaries(st.text(), st.none() | st.integers() | st.text() | st.lists(st.booleans())))
def test_arguments_survive_the_way_to_an_object_and_back(arguments: dict[str, object]) -> None:
    text = json.dumps(arguments)
    assert json.loads(msgspec.json.encode(arguments_to_object(text))) == arguments
    assert json.loads(arguments_to_text(arguments)) == arguments


@given(ANYTHING)
def test_whatever_a_model_wrote_can_be_sent_as_an_object(text: str) -> None:
    sent = msgspec.json.decode(msgspec.json.encode(arguments_to_object(text)))
    assert isinstance(sent, dict)


@pytest.mark.parametrize("written", ["", "{", "[1]", "null", "words"])
def test_malformed_arguments_come_back_as_they_were(written: str) -> None:
    assert arguments_to_text(msgspec.json.decode(msgspec.json.encode(arguments_to_object(written)))) == written


@given(st.lists(st.sampled_from(["a", "b", "", None, "no good", 7]), max_size=6))
def test_the_ids_of_one_reply_are_never_the_same(given_ids: list[object]) -> None:
    request = ModelRequest("", (), [UserMessage("x")], "s", "c")
    ids = assign_call_ids(request, given_ids)
    assert len(set(ids)) == len(ids) == len(given_ids)
