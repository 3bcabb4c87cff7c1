"""The journal for people."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from hummingbird.core.journal import (
    Delegated,
    EndReason,
    HistoryImported,
    JournalEntry,
    MessageSource,
    ModelAnswered,
    ModelFailed,
    ModelFailureKind,
    ModelSwitched,
    NoticeShown,
    RunEnded,
    SessionOpened,
    ToolDecided,
    ToolFinished,
    ToolOutcome,
    ToolStarted,
    UserSaid,
)
from hummingbird.core.messages import AssistantMessage, NoticeKind, ToolCall
from hummingbird.core.projections import render_transcript
from tests.core.entries import MARK
from tests.core.journals import journals
from tests.thoroughly import tries

printable = st.text(st.characters(categories=["L", "N", "P", "S"], include_characters=" \n`~"), min_size=1, max_size=30)


@settings(max_examples=tries(100))
@given(journals)
def test_any_prefix_has_a_transcript_and_no_notice_is_in_it(journal: list[JournalEntry]) -> None:
    """Scaffolding is never presented as what somebody said."""
    for end in range(len(journal) + 1):
        assert MARK not in render_transcript(journal[:end])


def test_a_session_as_people_read_it() -> None:
    look = ToolCall("a", "look", '{"path": "x"}')
    journal: list[JournalEntry] = [
        SessionOpened(session_id="s1", system="rules", format=1),
        UserSaid(text="Why?", source=MessageSource.ORDER),
        NoticeShown(notice=NoticeKind.SOFT_BUDGET, text="little left"),
        ModelFailed(call_id="c", model="m", happening=ModelFailureKind.UNAVAILABLE, sentence="Overloaded."),
        ModelSwitched(model="n", reason="m is down"),
        ModelAnswered(call_id="d", model="n", message=AssistantMessage("Let me look.", "hm\nso", (look,))),
        ToolDecided(call_id="a", name="look", by="rules", decision="rewritten", reason="too wide"),
        ToolFinished(call_id="a", name="look", text="seen", outcome=ToolOutcome.ERROR, seconds=1.25),
        ModelAnswered(call_id="e", model="n", message=AssistantMessage("thrown away"), kept=False),
        ModelAnswered(call_id="f", model="n", message=AssistantMessage("Because.")),
        RunEnded(run_id="r", reason=EndReason.COMPLETED, text="Because.", answered=True),
    ]
    assert render_transcript(journal) == (
        "# Session s1\n\n"
        "## Order\n\nWhy?\n\n"
        "> m: Overloaded.\n\n"
        "> Going on with n: m is down\n\n"
        "## Assistant (n)\n\n> hm\n> so\n\nLet me look.\n\n- `look` with `{\"path\": \"x\"}`\n\n"
        "> look was rewritten by rules: too wide\n\n"
        "### look (error, 1.2 s)\n\n```\nseen\n```\n\n"
        "## Assistant (n)\n\nBecause.\n\n"
        "## Ended: completed\n\n"
        "---\n\n3 model calls, 0 tokens in (0% cached), 0 out, cost unknown for 3 of 3 calls\n"
    )  # fmt: skip


def test_what_sub_agents_called_is_told_apart_from_the_session_s_own() -> None:
    own = (
        ToolDecided(call_id="a", name="rm", by="Ada", decision="allowed"),
        ToolStarted(call_id="a", name="rm", arguments='{"x": 1}'),
        ToolFinished(call_id="a", name="rm", text="gone"),
    )
    denied = ToolFinished(call_id="b", name="rm", text="Denied.", outcome=ToolOutcome.DENIED)
    journal: list[JournalEntry] = [Delegated(call_id="p", task=1001, entry=each) for each in own]
    journal.append(Delegated(call_id="p", task=1002, entry=denied, arguments='{"x": 2}'))
    assert render_transcript(journal).startswith(
        "> Sub-agent 1001:\n\n> rm was allowed by Ada\n\n"
        '> Sub-agent 1001:\n\n- `rm` with\n\n```\n{"x": 1}\n```\n\n'
        "> Sub-agent 1001:\n\n### rm (ok, 0.0 s)\n\n```\ngone\n```\n\n"
        '> Sub-agent 1002:\n\n- `rm` with\n\n```\n{"x": 2}\n```\n\n'
        "### rm (denied, 0.0 s)\n\n```\nDenied.\n```\n\n"
    )


def test_a_fallback_for_an_answer_is_shown_where_the_run_ends() -> None:
    ended = RunEnded(run_id="r", reason=EndReason.TIME_LIMIT, text="No answer.", sentence="Time is up.")
    assert "## Ended: time_limit\n\nTime is up.\n\nNo answer.\n" in render_transcript([ended])


def test_what_was_imported_is_told_without_its_notices() -> None:
    call = {"id": "a", "function": {"name": "look", "arguments": "{}"}}
    chat = (
        {"role": "user", "content": "Why?"},
        {"role": "system", "name": "notice_final", "content": "last turn"},
        {"role": "assistant", "content": "Look.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "name": "look", "content": "seen"},
    )
    text = render_transcript([HistoryImported(messages=chat)])
    assert "last turn" not in text
    assert text.startswith(
        "## User\n\nWhy?\n\n## Assistant (earlier)\n\nLook.\n\n- `look` with `{}`\n\n### look\n\n```\nseen\n```\n"
    )


@pytest.mark.thorough
@given(printable)
def test_a_result_is_verbatim_whatever_fences_it_holds(text: str) -> None:
    """Seen through a Markdown reader."""
    page = render_transcript([ToolFinished(call_id="a", name="look", text=text)])
    fences = [token.content for token in MarkdownIt().parse(page) if token.type == "fence"]
    assert fences == [f"{text}\n"]


@pytest.mark.thorough
@given(printable)
def test_arguments_are_verbatim_on_one_line_or_several(arguments: str) -> None:
    """Seen through a Markdown reader."""
    call = ToolCall("a", "look", arguments)
    page = render_transcript([ModelAnswered(call_id="c", model="m", message=AssistantMessage(calls=(call,)))])
    tokens = MarkdownIt().parse(page)
    if "\n" in arguments:
        assert [token.content for token in tokens if token.type == "fence"] == [f"{arguments}\n"]
        return
    code = [part.content for t in tokens for part in t.children or () if part.type == "code_inline"]
    assert code[0] == "look"
    assert [part.strip() for part in code[1:]] == [arguments.strip()]


@pytest.mark.parametrize("arguments", ["", " "])
def test_a_call_without_arguments_is_told_too(arguments: str) -> None:
    call = ToolCall("a", "look", arguments)
    page = render_transcript([ModelAnswered(call_id="c", model="m", message=AssistantMessage(calls=(call,)))])
    assert re.search(r"^- `look`", page, re.MULTILINE)
