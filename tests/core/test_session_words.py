"""What of an entry is looked through for words."""

import pytest

from hummingbird.core.journal import (
    Delegated,
    EndReason,
    HistoryImported,
    JournalEntry,
    MessageSource,
    ModelAnswered,
    RunEnded,
    ToolFinished,
    ToolStarted,
    UserSaid,
)
from hummingbird.core.messages import AssistantMessage, ProviderEcho, ToolCall
from hummingbird.core.sessions import (
    SUMMARY_CHARS,
    Speaker,
    SpokenText,
    find_full_title,
    summarise_session,
    texts_from_entry,
)
from tests.storage.samples import SAMPLES

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
        (UserSaid(text="hi"), [(Speaker.PERSON, "hi")]),
        (
            Delegated(call_id="p", task=1001, entry=ToolStarted(call_id="a", name="look", arguments="{}")),
            [(Speaker.TOOL, "look {}")],
        ),
        (
            Delegated(call_id="p", task=1, entry=ToolFinished(call_id="a", name="rm", text="no"), arguments="x"),
            [(Speaker.TOOL, "rm x"), (Speaker.TOOL, "no")],
        ),
        (UserSaid(text="stop", source=MessageSource.STEER), [(Speaker.PERSON, "stop")]),
        (UserSaid(text="{}", source=MessageSource.ORDER), [(Speaker.RUN, "{}")]),
        (
            ModelAnswered(
                call_id="c",
                model="m",
                message=AssistantMessage("said", "thought", (CALL,), ProviderEcho("w", "m", "echo")),
            ),
            [(Speaker.MODEL, "said")],
        ),
        (ModelAnswered(call_id="c", model="m", message=AssistantMessage("", "thought", (CALL,))), []),
        (ToolStarted(call_id="a", name="look", arguments='{"path": "x"}'), [(Speaker.TOOL, 'look {"path": "x"}')]),
        (ToolFinished(call_id="a", name="look", text=" \n"), []),
        (
            RunEnded(run_id="r", reason=EndReason.MODEL_ERROR, text="so far", sentence="It failed."),
            [(Speaker.RUN, "so far\nIt failed.")],
        ),
        (
            HistoryImported(messages=HISTORY),
            [(Speaker.PERSON, "earlier"), (Speaker.TOOL, "look {}"), (Speaker.TOOL, "seen"), (Speaker.MODEL, "so")],
        ),
    ],
)
def test_each_entry_gives_what_was_said_and_by_whom(entry: JournalEntry, expected: list[SpokenText]) -> None:
    assert list(texts_from_entry(entry)) == expected


def test_every_kind_of_entry_has_an_answer() -> None:
    """What nobody said, thoughts and notices are none."""
    said = [words.text for entry in SAMPLES for words in texts_from_entry(entry)]
    assert said == ["früher", 'warum?\n\x00\x1f\u2028"\\ 😀', "look {}", "seen\n", "weil"]


@pytest.mark.parametrize("text", ["short", "long \n" * SUMMARY_CHARS])
def test_a_title_is_traced_back_to_the_whole_text(text: str) -> None:
    entries = [UserSaid(text="something else"), UserSaid(text=text)]
    assert find_full_title(summarise_session(entries[1:]), entries) == text
    assert find_full_title(summarise_session(entries[1:]), entries[:1]) == summarise_session(entries[1:]).title
