"""What of an entry is looked through for words (S4)."""

import pytest

from hummingbird.domain.journal import (
    Delegated,
    EndReason,
    Entry,
    HistoryImported,
    ModelAnswered,
    RunEnded,
    Source,
    ToolFinished,
    ToolStarted,
    UserSaid,
)
from hummingbird.domain.messages import AssistantMessage, Echo, ToolCall
from hummingbird.domain.session_limits import SUMMARY_CHARS
from hummingbird.domain.session_words import Who, Words, whole_title, words_of
from hummingbird.domain.sessions import summary
from tests.stores.samples import SAMPLES

CALL = ToolCall("a", "look", '{"path": "x"}')
HISTORY = (
    {"role": "user", "content": "earlier"},
    {
        "role": "assistant",
        "content": "",
        "reasoning": "thought",
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "a", "name": "look", "content": "seen"},
    {"role": "assistant", "content": "so"},
)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (UserSaid(text="hi"), [(Who.PERSON, "hi")]),
        (
            Delegated(call_id="p", task=1001, entry=ToolStarted(call_id="a", name="look", arguments="{}")),
            [(Who.TOOL, "look {}")],
        ),
        (
            Delegated(call_id="p", task=1, entry=ToolFinished(call_id="a", name="rm", text="no"), arguments="x"),
            [(Who.TOOL, "rm x"), (Who.TOOL, "no")],
        ),
        (UserSaid(text="stop", source=Source.STEER), [(Who.PERSON, "stop")]),
        (UserSaid(text="{}", source=Source.ORDER), [(Who.RUN, "{}")]),
        (
            ModelAnswered(
                call_id="c", model="m", message=AssistantMessage("said", "thought", (CALL,), Echo("w", "m", "echo"))
            ),
            [(Who.MODEL, "said")],
        ),
        (ModelAnswered(call_id="c", model="m", message=AssistantMessage("", "thought", (CALL,))), []),
        (ToolStarted(call_id="a", name="look", arguments='{"path": "x"}'), [(Who.TOOL, 'look {"path": "x"}')]),
        (ToolFinished(call_id="a", name="look", text=" \n"), []),
        (
            RunEnded(run_id="r", reason=EndReason.MODEL_ERROR, text="so far", sentence="It failed."),
            [(Who.RUN, "so far\nIt failed.")],
        ),
        (
            HistoryImported(messages=HISTORY),
            [(Who.PERSON, "earlier"), (Who.TOOL, "look {}"), (Who.TOOL, "seen"), (Who.MODEL, "so")],
        ),
    ],
)
def test_each_entry_gives_what_was_said_and_by_whom(entry: Entry, expected: list[Words]) -> None:
    """S4"""
    assert list(words_of(entry)) == expected


def test_every_kind_of_entry_has_an_answer() -> None:
    """S4: what nobody said, thoughts and notices are none."""
    said = [words.text for entry in SAMPLES for words in words_of(entry)]
    assert said == ["früher", 'warum?\n\x00\x1f\u2028"\\ 😀', "look {}", "seen\n", "weil"]


@pytest.mark.parametrize("text", ["short", "long \n" * SUMMARY_CHARS])
def test_a_title_is_traced_back_to_the_whole_text(text: str) -> None:
    """S4"""
    entries = [UserSaid(text="something else"), UserSaid(text=text)]
    assert whole_title(summary(entries[1:]), entries) == text
    assert whole_title(summary(entries[1:]), entries[:1]) == summary(entries[1:]).title
