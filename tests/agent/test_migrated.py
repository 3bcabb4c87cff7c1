"""A session that has nothing but an older context.json goes on as if it had its journal."""

import json
from pathlib import Path
from typing import Any

import pytest

from hummingbird.agent.prompts import CONTINUATION
from hummingbird.agent.run_state import RunState
from hummingbird.core.context_json import encode_context_json, migrate_context_json
from hummingbird.core.errors import UsageError
from hummingbird.core.journal import HistoryImported, PrefixChanged, RunStarted, SessionOpened
from hummingbird.core.messages import AssistantMessage, Notice, NoticeKind, ToolCall, ToolMessage, UserMessage
from hummingbird.storage.journals import FileJournal, MemoryJournal
from tests.agent.stage import SYSTEM, notices_in, stage, tool
from tests.standins.scripted_model import ScriptedModel, text_reply, tool_call_reply

GEMINI: list[dict[str, Any]] = [
    {"role": "user", "parts": [{"text": "why?"}]},
    {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}, "thoughtSignature": "c2ln"}]},
    {"role": "tool", "parts": [{"functionResponse": {"name": "look", "response": {"result": "red"}}}]},
    {"role": "model", "parts": [{"text": "It is red."}]},
]
OLD = json.dumps(GEMINI).encode()
TURNS = [
    UserMessage("why?"),
    AssistantMessage(calls=(ToolCall("past00001", "look", "{}"),)),
    ToolMessage("past00001", "look", "red"),
    AssistantMessage("It is red."),
]


async def test_a_migrated_session_goes_on_with_its_history_the_reply_and_the_continuation(tmp_path: Path) -> None:
    """Through a journal on disk; the tools of today take the place of none."""
    journal = FileJournal(tmp_path / "session.jsonl")
    for entry in migrate_context_json(OLD, "session-1"):
        journal.append(entry)
    model = ScriptedModel([tool_call_reply(("look", '{"n":1}')), text_reply("Since Monday.")])
    on = stage(model, tools=[tool()], journal=journal)
    outcome = await on.run("since when?")
    journal.close()
    on.consumed()
    assert outcome.text == "Since Monday."
    said = [UserMessage("since when?"), Notice(NoticeKind.CONTINUATION, CONTINUATION)]
    assert list(model.requests[0].messages) == [*TURNS, *said]
    assert (model.requests[0].system, [t.name for t in model.requests[0].tools]) == (SYSTEM, ["look"])
    assert [entry.session_id for entry in on.written(SessionOpened)] == ["session-1"]
    assert [entry.resumed for entry in on.written(RunStarted)] == [True]
    assert len(on.written(PrefixChanged)) == 1


async def test_a_session_that_lost_its_journal_goes_on_from_its_envelope() -> None:
    first = stage(
        ScriptedModel([tool_call_reply(("look", "{}", "a")), text_reply("It is red.")]), tools=[tool(does="red")]
    )
    await first.run("why?")
    entries = migrate_context_json(encode_context_json(first.journal.entries()), "session-1")
    model = ScriptedModel([text_reply("Since Monday.")])
    await stage(model, tools=[tool()], journal=MemoryJournal(entries)).run("since when?")
    before = [m for m in model.requests[0].messages if not isinstance(m, Notice)][:-1]
    assert before == first.loop.state.conversation.view()
    assert notices_in(model.requests[0], NoticeKind.CONTINUATION) == [CONTINUATION]


async def test_a_migrated_session_takes_no_other_history() -> None:
    """It has one of its own."""
    on = stage(ScriptedModel([]), journal=MemoryJournal(migrate_context_json(OLD, "session-1")))
    with pytest.raises(UsageError, match="history of its own"):
        await on.loop.run("go", history=[{"role": "user", "content": "x"}])


async def test_a_migrated_session_in_which_nothing_was_said_is_simply_begun() -> None:
    model = ScriptedModel([text_reply("done")])
    await stage(model, journal=MemoryJournal(migrate_context_json(b"[]", "session-1"))).run("go")
    assert list(model.requests[0].messages) == [UserMessage("go")]


async def test_only_the_sessions_own_history_makes_a_resume_of_a_run() -> None:
    """One that somebody brought can be brought again if the process died over it."""
    chat = ({"role": "user", "content": "hi"},)
    brought = HistoryImported(messages=chat, repairs=("dropped message 1: 7 is not a chat message",))
    assert not RunState.from_entries([brought]).was_addressed
    assert not RunState.from_entries([HistoryImported(messages=chat)]).was_addressed
    assert RunState.from_entries(migrate_context_json(OLD, "s")).was_addressed
    on = stage(ScriptedModel([text_reply("done")]))
    await on.run("go", history=list(chat))
    assert [entry.resumed for entry in on.written(RunStarted)] == [False]
