"""The frozen prefix of a session, and what a resume adds."""

from pathlib import Path

import pytest

from hummingbird.agent.budget import CHAT_LIMITS
from hummingbird.agent.prompts import BASE_RULES, CONTINUATION, build_system_prompt
from hummingbird.core.journal import FinishReason, PrefixChanged, SessionOpened
from hummingbird.core.messages import AssistantMessage, Notice, NoticeKind, ProviderEcho, ToolCall, UserMessage
from hummingbird.core.protocols.model import ModelReply
from hummingbird.core.usage import TokenUsage
from hummingbird.storage.journals import FileJournal, MemoryJournal
from tests.agent.stage import notices_in, prefix_bytes, stage, tool
from tests.standins.scripted_model import ScriptedModel, text_reply, tool_call_reply

SCHEMA = {"type": "object", "properties": {"z": {"type": "string"}, "a": {"maximum": 1.5}}}


def signed(text: str, *wanted: ToolCall) -> ModelReply:
    message = AssistantMessage(text, calls=wanted, echo=ProviderEcho("wire", "scripted:one", {"signature": "s"}))
    return ModelReply(message, FinishReason.STOP, TokenUsage(fresh=10, output=1))


def test_the_system_prompt_is_base_rules_then_tool_notes_then_the_workflow() -> None:
    assert build_system_prompt("notes", "workflow") == f"{BASE_RULES}\n\nnotes\n\nworkflow"
    assert build_system_prompt() == BASE_RULES


async def test_prompt_and_tools_are_byte_identical_for_every_call_of_a_run() -> None:
    model = ScriptedModel(
        [tool_call_reply(("look", "{}")), tool_call_reply(("look", '{"z":"1"}')), text_reply(""), text_reply("done")]
    )
    on = stage(model, tools=[tool(schema=SCHEMA), tool("other")])
    await on.run()
    on.consumed()
    assert len({prefix_bytes(request) for request in model.requests}) == 1
    assert [t.name for t in model.requests[0].tools] == ["look", "other"]


async def test_prompt_and_tools_are_byte_identical_across_resumes_in_another_process(tmp_path: Path) -> None:
    """The journal is closed and read again, as another process would."""
    prefixes = set()
    for text in ("first", "second", "third"):
        journal = FileJournal(tmp_path / "session.jsonl")
        model = ScriptedModel([tool_call_reply(("look", "{}")), text_reply("done")])
        on = stage(model, tools=[tool(schema=SCHEMA)], journal=journal)
        await on.run(text)
        prefixes |= {prefix_bytes(request) for request in model.requests}
        assert len(on.written(SessionOpened)) == 1
        assert on.written(PrefixChanged) == []
        journal.close()
    assert len(prefixes) == 1


async def test_a_schema_with_its_keys_in_another_order_is_sent_as_the_session_froze_it() -> None:
    """Equal is not enough, caches hang on bytes."""
    journal = MemoryJournal()
    first, second = ScriptedModel([text_reply("one")]), ScriptedModel([text_reply("two")])
    await stage(first, tools=[tool(schema={"type": "object", "title": "t"})], journal=journal).run()
    await stage(second, tools=[tool(schema={"title": "t", "type": "object"})], journal=journal).run()
    assert prefix_bytes(first.requests[0]) == prefix_bytes(second.requests[0])


async def test_the_first_run_of_a_session_gets_no_continuation_notice() -> None:
    model = ScriptedModel([text_reply("done")])
    await stage(model).run()
    assert list(model.requests[0].messages) == [UserMessage("go")]


async def test_an_imported_history_is_not_a_resume() -> None:
    """Nobody replied to our work, there is none yet."""
    model = ScriptedModel([text_reply("done")])
    history = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    await stage(model).run("go", history=history)
    assert [type(m) for m in model.requests[0].messages] == [UserMessage, AssistantMessage, UserMessage]


@pytest.mark.parametrize("same_loop", [True, False])
async def test_the_continuation_is_a_notice_right_after_the_reply(same_loop: bool) -> None:
    journal = MemoryJournal()
    model = ScriptedModel([text_reply("found it"), tool_call_reply(("look", "{}")), text_reply("because")])
    on = stage(model, tools=[tool()], journal=journal)
    await on.run("why?")
    again = on if same_loop else stage(model, tools=[tool()], journal=journal)
    await again.run("are you sure?")
    assert list(model.requests[1].messages) == [
        UserMessage("why?"),
        AssistantMessage("found it"),
        UserMessage("are you sure?"),
        Notice(NoticeKind.CONTINUATION, CONTINUATION),
    ]
    assert len(notices_in(model.requests[2], NoticeKind.CONTINUATION)) == 1


async def test_each_resume_gets_its_own_continuation_notice() -> None:
    """The earlier one stays where it was."""
    model = ScriptedModel([text_reply("1"), text_reply("2"), text_reply("3")])
    on = stage(model)
    for text in ("a", "b", "c"):
        await on.run(text)
    assert len(notices_in(model.requests[2], NoticeKind.CONTINUATION)) == 2


async def test_in_chat_the_next_message_is_no_continuation() -> None:
    """A conversation is not a workflow that somebody replied to."""
    model = ScriptedModel([text_reply("1"), text_reply("2")])
    on = stage(model, limits=CHAT_LIMITS)
    await on.run("a")
    await on.run("b")
    assert notices_in(model.requests[1], NoticeKind.CONTINUATION) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"system": "Another prompt."}, "changed since the session began: system prompt"),
        ({"tools": [tool("new")]}, "changed since the session began: tools"),
        ({"system": "x", "tools": []}, "changed since the session began: system prompt and tools"),
    ],
)
async def test_a_resume_with_another_prefix_says_so_and_replays_without_echoes(
    change: dict[str, object], said: str
) -> None:
    journal = MemoryJournal()
    model = ScriptedModel([signed("", ToolCall("1", "look", "{}")), signed("done")])
    await stage(model, tools=[tool()], journal=journal).run()
    assert isinstance(model.requests[1].messages[1], AssistantMessage)
    assert model.requests[1].messages[1].echo is not None

    other = ScriptedModel([text_reply("again")])
    on = stage(other, journal=journal, **{"tools": [tool()], **change})  # type: ignore[arg-type]  # one of many
    await on.run("and now?")
    assert [entry.reason for entry in on.written(PrefixChanged)] == [said]
    replayed = [m for m in other.requests[0].messages if isinstance(m, AssistantMessage)]
    assert [m.echo for m in replayed] == [None, None]
    assert [call.id for m in replayed for call in m.calls] == ["1"]
    assert other.requests[0].system == change.get("system", "You are under test.")
    assert other.requests[0].cached_messages == 0


async def test_after_the_change_the_new_prefix_is_the_frozen_one() -> None:
    """Said once, not at every run that follows."""
    journal = MemoryJournal()
    await stage(ScriptedModel([text_reply("1")]), journal=journal).run()
    await stage(ScriptedModel([text_reply("2")]), journal=journal, system="new").run()
    model = ScriptedModel([text_reply("3")])
    on = stage(model, journal=journal, system="new")
    await on.run()
    assert len(on.written(PrefixChanged)) == 1
    assert model.requests[0].system == "new"


async def test_a_prompt_that_utf8_cannot_hold_is_frozen_as_text_that_it_can(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "session.jsonl")
    model = ScriptedModel([text_reply("1"), text_reply("2")])
    on = stage(model, journal=journal, system="lone \ud800 half")
    await on.run("also \udcff here")
    await on.run("again")
    journal.close()
    assert model.requests[0].system == "lone ? half"
    assert model.requests[0].messages[0] == UserMessage("also ? here")
    assert on.written(PrefixChanged) == []
