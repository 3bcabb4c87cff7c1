"""context.json, as it is written, and as a session begins that has nothing else."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hummingbird.core.context_json import encode_context_json, is_migrated, migrate_context_json
from hummingbird.core.conversation import Conversation
from hummingbird.core.errors import SessionUnreadable
from hummingbird.core.journal import (
    HistoryImported,
    JournalEntry,
    ModelAnswered,
    ModelSwitched,
    NoticeShown,
    RunStarted,
    SessionOpened,
    ToolFinished,
    UserSaid,
    dump_entry,
    load_entry,
)
from hummingbird.core.limits import JOURNAL_FORMAT
from hummingbird.core.messages import (
    MISSING_RESULT,
    AssistantMessage,
    Message,
    NoticeKind,
    ProviderEcho,
    ToolCall,
    ToolMessage,
    UserMessage,
    find_problems,
    message_to_chat,
)
from hummingbird.core.sessions import CONTEXT_BYTES
from tests.core.entries import MARK, json_values
from tests.core.journals import journals
from tests.core.test_chat import garbage, wild_messages
from tests.thoroughly import tries

SESSION: list[JournalEntry] = [
    SessionOpened(session_id="s-1", system="rules", format=JOURNAL_FORMAT),
    RunStarted(run_id="r", model="one:first"),
    UserSaid(text="why? ü😀"),
    ModelAnswered(
        call_id="m1",
        model="two:second",
        message=AssistantMessage(
            "", "hm", (ToolCall("a", "look", '{"at":"x"}'),), ProviderEcho("gemini", "m", "signed")
        ),
    ),
    ToolFinished(call_id="a", name="look", text="seen"),
    NoticeShown(notice=NoticeKind.FINAL, text=MARK, about="max_iterations"),
    ModelAnswered(call_id="m2", model="two:second", message=AssistantMessage("because")),
]
CALL = {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"at":"x"}'}}
CHAT: list[dict[str, Any]] = [
    {"role": "user", "content": "why? ü😀"},
    {"role": "assistant", "content": "", "reasoning": "hm", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "a", "name": "look", "content": "seen"},
    {"role": "assistant", "content": "because"},
]


def brought(content: Any, session_id: str = "s-1") -> tuple[list[Message], list[str]]:
    """The conversation that a session with this content begins with, and what is said about how it came to be."""
    made = migrate_context_json(content if isinstance(content, bytes) else json.dumps(content).encode(), session_id)
    assert tuple(load_entry(dump_entry(entry), 1) for entry in made) == made
    opened, imported = made
    assert isinstance(opened, SessionOpened)
    assert isinstance(imported, HistoryImported)
    assert (opened.session_id, opened.tools, opened.format) == (session_id, (), JOURNAL_FORMAT)
    assert is_migrated(imported)
    conversation = Conversation.from_entries(made)
    assert list(find_problems(conversation.view())) == []
    assert tuple(map(message_to_chat, conversation.view())) == imported.messages
    return conversation.view(), list(imported.repairs)


def refusal(content: bytes) -> str:
    with pytest.raises(SessionUnreadable) as refused:
        migrate_context_json(content, "s-1")
    return str(refused.value)


def test_the_envelope_holds_the_conversation_and_whose_it_is() -> None:
    """Reasoning is kept; notices and what only one provider can read are not."""
    assert json.loads(encode_context_json(SESSION)) == {
        "format_version": 2,
        "session_id": "s-1",
        "model": "two:second",
        "system": "rules",
        "messages": CHAT,
    }


def test_a_session_that_never_began_has_an_envelope_too() -> None:
    bare = {"format_version": 2, "session_id": "", "model": "", "system": "", "messages": []}
    assert json.loads(encode_context_json([])) == bare
    assert brought(encode_context_json([])) == ([], ["migrated from a context.json of format 2"])


def test_text_that_utf8_cannot_hold_is_written_as_text_that_it_can() -> None:
    entries = [SESSION[0], UserSaid(text="lone \ud83d half"), RunStarted(run_id="r", model="\udcff")]
    written = json.loads(encode_context_json(entries).decode())
    assert (written["messages"], written["model"]) == ([{"role": "user", "content": "lone ? half"}], "?")


def test_a_session_whose_journal_was_lost_begins_with_its_envelope() -> None:
    content = encode_context_json(SESSION)
    assert brought(content) == (
        [
            UserMessage("why? ü😀"),
            AssistantMessage("", "hm", (ToolCall("a", "look", '{"at":"x"}'),)),
            ToolMessage("a", "look", "seen"),
            AssistantMessage("because"),
        ],
        ["migrated from a context.json of format 2"],
    )
    assert Conversation.from_entries(migrate_context_json(content, "s-1")).system == "rules"


def test_a_session_keeps_the_id_under_which_it_was_found() -> None:
    """The envelope may be a copy of another one's."""
    assert Conversation.from_entries(migrate_context_json(encode_context_json(SESSION), "copy")).session_id == "copy"


@settings(max_examples=tries(150))
@given(journals)
def test_the_way_through_the_envelope_keeps_texts_calls_and_results(entries: list[JournalEntry]) -> None:
    """What comes back is what another model would have been shown had nothing been compacted, so the oracle is a
    switch to one."""
    content = encode_context_json(entries)
    assert content == encode_context_json(list(entries))
    assert MARK not in content.decode()
    switched = Conversation.from_entries([*entries, ModelSwitched(model="other", reason="")])
    back = Conversation.from_entries(migrate_context_json(content, "s"))
    assert list(map(message_to_chat, back.view())) == list(map(message_to_chat, switched.full_view()))
    assert back.system == switched.system
    assert encode_context_json(
        migrate_context_json(encode_context_json(migrate_context_json(content, "s")), "s")
    ) == encode_context_json(migrate_context_json(content, "s"))


@pytest.mark.parametrize("name", ["contents", "messages"])
def test_format_1_is_an_envelope_of_chat_messages(name: str) -> None:
    messages, notes = brought({"format_version": 1, name: CHAT})
    assert list(map(message_to_chat, messages)) == CHAT
    assert notes == ["migrated from a context.json of format 1"]


def test_format_1_may_bring_its_system_prompt() -> None:
    content = json.dumps({"format_version": 1, "system": "old \ud83d rules", "contents": []}).encode()
    assert Conversation.from_entries(migrate_context_json(content, "s-1")).system == "old ? rules"
    unusable = json.dumps({"format_version": 1, "system": ["x"], "contents": []}).encode()
    assert Conversation.from_entries(migrate_context_json(unusable, "s-1")).system == ""


def test_a_damaged_history_is_repaired_and_every_repair_is_said() -> None:
    chat = [
        {"role": "assistant", "content": "hello"},
        {"role": "user", "content": "a"},
        {"role": "user", "content": "b"},
    ]
    messages, notes = brought({"format_version": 1, "contents": chat})
    assert messages[1:] == [AssistantMessage("hello"), UserMessage("a\n\nb")]
    assert notes == [
        "migrated from a context.json of format 1",
        "message 0 had no user message before it: put a marker there",
        "merged message 2 into the user message before it",
    ]


def test_scaffolding_is_not_brought_along() -> None:
    """Neither system prompts nor notices of old are part of what was said."""
    scaffolding = [{"role": "system", "content": "be nice"}, {"role": "system", "name": "notice_final", "content": "x"}]
    messages, notes = brought([*scaffolding, {"role": "user", "content": "hi"}, 7, None])
    assert messages == [UserMessage("hi")]
    assert notes == [
        "migrated from a context.json without a version",
        "left out 4 items that are not messages of a user, the assistant or a tool",
    ]


def test_ids_that_were_counted_anew_in_every_turn_lose_no_call() -> None:
    """Of two calls with one id, the repair alone would keep the first."""
    turn = [
        {"role": "assistant", "content": None, "tool_calls": [CALL, CALL]},
        {"role": "tool", "tool_call_id": "a", "content": "first"},
        {"role": "tool", "tool_call_id": "a", "content": "second"},
    ]
    messages, notes = brought({"format_version": 1, "contents": [{"role": "user", "content": "x"}, *turn, *turn]})
    results = [(m.call_id, m.text) for m in messages if isinstance(m, ToolMessage)]
    assert results == [("a", "first"), ("past00001", "second"), ("past00002", "first"), ("past00003", "second")]
    assert notes[1:] == ["gave 3 calls an id: they had none, or one that was used before"]


def test_an_id_that_is_made_up_is_never_one_that_a_call_has() -> None:
    function = {"name": "look", "arguments": "{}"}
    asked = [{"id": own, "function": function} for own in ("past00001", None, "past00002")]
    results = [{"role": "tool", "tool_call_id": own, "content": str(own)} for own in ("past00002", "past00001")]
    chat = [{"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": asked}, *results]
    found = {m.call_id: m.text for m in brought(chat)[0] if isinstance(m, ToolMessage)}
    assert [found["past00001"], found["past00003"]] == ["past00001", "past00002"]


def test_an_id_means_the_last_turn_that_used_it() -> None:
    """A call that was left without a result does not take that of its successor."""
    ask = {"role": "user", "content": "x"}
    messages, _ = brought([ask, CHAT[1], ask, CHAT[1], CHAT[2]])
    results = [(m.call_id, m.text) for m in messages if isinstance(m, ToolMessage)]
    assert results == [("a", MISSING_RESULT), ("past00001", "seen")]


def test_a_result_with_the_id_of_no_call_is_none_of_a_call_with_another_id() -> None:
    messages, notes = brought([{"role": "user", "content": "x"}, CHAT[1], {**CHAT[2], "tool_call_id": "zz"}])
    assert [m.text for m in messages if isinstance(m, ToolMessage)] == [MISSING_RESULT]
    assert notes[1] == "left out 1 results that no call was waiting for"


def test_a_second_result_and_one_that_nobody_waits_for_are_left_out() -> None:
    results = [{"role": "tool", "tool_call_id": own, "name": "look", "content": own} for own in ("a", "a", "zz")]
    messages, notes = brought([{"role": "user", "content": "x"}, CHAT[1], *results])
    assert [m.text for m in messages if isinstance(m, ToolMessage)] == ["a"]
    assert notes[1:] == ["left out 2 results that no call was waiting for"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not JSON: restore it"),
        (b"hunter2 {", "is not JSON: restore it"),
        (b"\xff\xfehunter2", "is not JSON: restore it"),
        (b"[" + b"9" * 5_000 + b"]", "is not JSON: restore it"),
        (b'"hunter2"', "no format that Hummingbird ever wrote: restore it"),
        (b"null", "no format that Hummingbird ever wrote: restore it"),
        (b'{"hunter2": []}', "no format that Hummingbird ever wrote: restore it"),
        (b'{"messages": [{"role": "user", "content": "hunter2"}]}', "no format that Hummingbird ever wrote"),
        (b'{"format_version": 0, "contents": []}', "no format that Hummingbird ever wrote"),
        (b'{"format_version": true, "contents": []}', "no format that Hummingbird ever wrote"),
        (b'{"format_version": "hunter2", "contents": []}', "no format that Hummingbird ever wrote"),
        (b'{"format_version": 3, "messages": []}', "newer than 2: update Hummingbird to open it"),
        (b'{"format_version": 1, "contents": "hunter2"}', "no list of messages: restore it"),
        (b'{"format_version": 2, "contents": []}', "no list of messages: restore it"),
        (b'["hunter2", 1, {"role": "hunter2"}]', "Nothing in this session's context.json is a message: restore it"),
        (b'{"format_version": 2, "messages": [{}]}', "Nothing in this session's context.json is a message"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"format_version":1,"contents":' + b'{"a":' * 200_000, "nested too deeply"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_with_what_to_do_and_without_repeating_it(content: bytes, words: str) -> None:
    sentence = refusal(content)
    assert words in sentence
    assert "hunter2" not in sentence
    assert len(sentence) < 140


@pytest.mark.thorough
def test_depth_that_can_be_read_but_not_written_is_refused_too() -> None:
    """At every depth there is an answer, where reading gives up and where writing does."""
    answers: set[int | str] = set()
    for depth in (*range(0, 1_200, 7), 200_000):
        args = b'{"a":' * depth + b"1" + b"}" * depth
        turn = b'[{"role":"model","parts":[{"functionCall":{"name":"look","args":' + args + b"}}]}]"
        try:
            answers.add(len(Conversation.from_entries(migrate_context_json(turn, "s")).view()))
        except SessionUnreadable as error:
            answers.add(str(error))
    assert answers == {
        3,
        "This session's context.json is nested too deeply to be read: restore it from a copy, or start a new session.",
    }


@pytest.mark.thorough
def test_more_than_a_context_may_weigh_is_not_even_parsed() -> None:
    blank = b" " * (CONTEXT_BYTES - 2)
    assert brought(b"[]" + blank)[0] == []
    assert "larger than 64 MiB: start a new session" in refusal(b"[] " + blank)


gemini_parts = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "text": st.text(st.characters(), max_size=5) | json_values,
            "thought": st.booleans() | json_values,
            "thoughtSignature": st.text(max_size=3),
            **dict.fromkeys(
                ("functionCall", "function_call"),
                st.fixed_dictionaries(
                    {"name": st.sampled_from(["look", "", "\ud83d"])},
                    optional={"id": st.sampled_from(["a", "past00001", 1, None]) | garbage, "args": json_values},
                )
                | json_values,
            ),
            **dict.fromkeys(
                ("functionResponse", "function_response"),
                st.fixed_dictionaries(
                    {"name": st.sampled_from(["look", "", None])},
                    optional={"id": st.sampled_from(["a", "past00001", 1]), "response": json_values},
                )
                | json_values,
            ),
        },
    )
    | json_values,
    max_size=4,
)
turns = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "model", "tool", "function", "assistant", None]) | json_values},
    optional={"parts": gemini_parts | json_values},
)
histories = st.lists(turns | wild_messages | garbage, max_size=6)
envelopes = st.fixed_dictionaries(
    {"format_version": st.sampled_from([1, 2, 3]) | json_values},
    optional={"contents": histories, "messages": histories, "system": garbage},
)


def as_json(raw: Any) -> bytes:
    """As `json.dumps` writes it, lone halves of characters and NaN included; what is not JSON stands there as text."""
    return json.dumps(raw, default=repr, skipkeys=True).encode()


@pytest.mark.thorough
@settings(max_examples=tries(400))
@given(histories | envelopes | garbage)
def test_any_json_is_a_valid_conversation_or_a_sentence(raw: Any) -> None:
    content = as_json(raw)
    try:
        migrate_context_json(content, "s")
    except SessionUnreadable:
        return
    messages, _ = brought(content, "s")
    assert brought(encode_context_json(migrate_context_json(content, "s")), "s") == (
        messages,
        ["migrated from a context.json of format 2"],
    )


@pytest.mark.thorough
@settings(max_examples=tries(200))
@given(st.lists(turns | wild_messages, min_size=1, max_size=6))
def test_lists_of_turns_are_never_refused_for_what_is_in_them(raw: list[Any]) -> None:
    """The property above would hold of something that refuses everything."""
    brought(as_json([{"role": "user", "parts": [{"text": "hi"}]}, *raw]))


@given(st.binary(max_size=60))
def test_any_bytes_are_a_conversation_or_a_sentence(content: bytes) -> None:
    try:
        migrate_context_json(content, "s")
    except SessionUnreadable:
        return
    brought(content)
