"""Conversations that come from elsewhere and go elsewhere, as chat dictionaries."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hummingbird.core.journal import HistoryImported, dump_entry, load_entry
from hummingbird.core.messages import (
    AssistantMessage,
    Message,
    Notice,
    NoticeKind,
    ProviderEcho,
    ToolCall,
    ToolMessage,
    UserMessage,
    find_problems,
    message_to_chat,
    messages_from_chat,
)
from tests.core.entries import chat_messages, json_values
from tests.thoroughly import tries

wild_texts = st.text(st.characters(), max_size=8)  # lone surrogates too: `json.loads` lets them in
garbage: st.SearchStrategy[Any] = st.recursive(
    json_values | wild_texts | st.floats() | st.binary(max_size=3) | st.just(object()),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(
            st.sampled_from(["role", "content", "tool_calls", "function", "id", "name", "arguments", "text"])
            | wild_texts,
            inner | st.sampled_from(["user", "assistant", "tool", "system"]),
            max_size=5,
        )
    ),
    max_leaves=12,
)


wild_ids = st.sampled_from(["a", "\ud83d", 1, None])
wild_calls = st.fixed_dictionaries(
    {
        "id": wild_ids,
        "function": st.fixed_dictionaries({"name": wild_texts | garbage, "arguments": wild_texts | garbage}),
    }
)
wild_messages = st.one_of(
    st.fixed_dictionaries({"role": st.just("user"), "content": wild_texts | garbage}),
    st.fixed_dictionaries(
        {"role": st.just("assistant"), "content": wild_texts | garbage, "tool_calls": st.lists(wild_calls, max_size=2)},
        optional={"reasoning": wild_texts | garbage},
    ),
    st.fixed_dictionaries(
        {"role": st.just("tool"), "tool_call_id": wild_ids, "content": wild_texts}, optional={"name": wild_texts}
    ),
)


@settings(max_examples=tries(250))
@given(st.lists(chat_messages | wild_messages | garbage, max_size=6))
def test_nothing_that_looks_like_json_makes_the_import_fail(chat: list[Any]) -> None:
    """What comes out is valid, can be stored, and comes out the same when it is read again."""
    messages, _ = messages_from_chat(chat)
    assert list(find_problems(messages)) == []
    stored = dump_entry(HistoryImported(messages=tuple(map(message_to_chat, messages))))
    again = load_entry(stored, 1)
    assert isinstance(again, HistoryImported)
    reread, notes = messages_from_chat(again.messages)
    assert (tuple(map(message_to_chat, reread)), notes) == (again.messages, [])


@pytest.mark.thorough
@settings(max_examples=tries(100))
@given(st.lists(chat_messages, max_size=8))
def test_an_import_loses_nothing_that_a_person_said(chat: list[dict[str, Any]]) -> None:
    said = [raw["content"] for raw in chat if raw["role"] == "user" and isinstance(raw["content"], str)]
    kept = "\n\n".join(m.text for m in messages_from_chat(chat)[0] if isinstance(m, UserMessage))
    position = 0
    for text in said:
        position = kept.index(text, position) + len(text)


@pytest.mark.thorough
def test_a_nested_horror_is_dropped_with_a_short_sentence() -> None:
    horror: Any = []
    for _ in range(100_000):
        horror = [horror]
    function = {"name": "look", "arguments": horror}
    chat = [
        horror,
        {"role": "user", "content": "x"},
        {"role": "assistant", "tool_calls": [{"id": 1, "function": function}]},
    ]
    messages, notes = messages_from_chat(chat)
    assert messages == [UserMessage("x")]
    assert notes[1].startswith("dropped calls of message 2")
    assert all(len(note) < 120 for note in notes)
    while horror:  # taken apart by hand: the destructor of so deep a list is slow to come back
        horror = horror.pop()


@pytest.mark.parametrize(
    "raw",
    [None, 1, "text", [], {}, {"role": "system", "content": "be nice"}, {"role": "developer", "content": "x"},
     {"role": "system", "name": "final", "content": "x"}, {"role": ["user"], "content": "x"}],
)  # fmt: skip
def test_what_is_no_chat_message_is_dropped_with_a_sentence(raw: Any) -> None:
    messages, notes = messages_from_chat([{"role": "user", "content": "hello"}, raw])
    assert messages == [UserMessage("hello")]
    assert len(notes) == 1
    assert notes[0].startswith("dropped message 1: ")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("plain", "plain"),
        ([{"type": "text", "text": "one"}, {"type": "image_url"}, {"type": "text", "text": "two"}], "one\ntwo"),
        (({"type": "text", "text": "one"},), "one"),
        (None, ""),
        ("half \ud83d pair", "half ? pair"),
        ([{"text": "half \ud83d pair"}], "half ? pair"),
    ],
)
def test_content_is_text_in_either_of_its_forms(content: Any, text: str) -> None:
    assert messages_from_chat([{"role": "user", "content": content}])[0] == [UserMessage(text)]


@pytest.mark.parametrize(
    "call",
    [None, {}, {"id": "a"}, {"id": "", "function": {"name": "x"}}, {"id": "a", "function": {"name": ""}},
     {"id": "a", "function": "x"}, {"id": "a", "function": {"name": "x", "arguments": {1, 2}}}],
)  # fmt: skip
def test_what_is_no_tool_call_is_dropped_with_a_sentence(call: Any) -> None:
    chat = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y", "tool_calls": [call]}]
    assert messages_from_chat(chat) == (
        [UserMessage("x"), AssistantMessage("y")],
        ["dropped calls of message 1 that have no id, no name or no arguments one could send"],
    )


def test_arguments_that_are_an_object_become_its_json() -> None:
    """Some libraries parse them."""
    function = {"name": "look", "arguments": {"path": "ü"}}
    chat = [{"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": [{"id": 7, "function": function}]}]
    answer = messages_from_chat(chat)[0][1]
    assert isinstance(answer, AssistantMessage)
    assert answer.calls[0].id == "7"
    assert json.loads(answer.calls[0].arguments) == {"path": "ü"}


def test_a_result_without_a_name_has_no_name() -> None:
    function = {"name": "look", "arguments": "{}"}
    chat = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "function": function}]},
        {"role": "tool", "tool_call_id": "a", "name": None, "content": "seen"},
    ]
    assert messages_from_chat(chat)[0][2] == ToolMessage("a", "", "seen")


@pytest.mark.parametrize(
    ("message", "chat"),
    [
        (UserMessage("x"), {"role": "user", "content": "x"}),
        (ToolMessage("a", "look", "seen"), {"role": "tool", "tool_call_id": "a", "name": "look", "content": "seen"}),
        (
            Notice(NoticeKind.FINAL, "last turn"),
            {"role": "system", "name": "notice_final", "content": "last turn"},
        ),
        (AssistantMessage("y", echo=ProviderEcho("wire", "m", 1)), {"role": "assistant", "content": "y"}),
        (
            AssistantMessage("y", "hm", (ToolCall("a", "look", "{}"),)),
            {
                "role": "assistant",
                "content": "y",
                "reasoning": "hm",
                "tool_calls": [{"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
            },
        ),
    ],
)
def test_each_kind_of_message_as_a_chat_dictionary(message: Message, chat: dict[str, Any]) -> None:
    """A notice says that it is one; an echo stays inside."""
    assert message_to_chat(message) == chat
