"""A person between two runs looks at a summary, takes it or leaves it, and takes a message back."""

import pytest

from hummingbird.agent.run_state import RunState
from hummingbird.core.errors import CompactionFailed, UsageError
from hummingbird.core.journal import NoticeShown
from tests.agent.long_talk import WINDOW, long_stage, turns
from tests.standins.scripted_model import ScriptedModel, text_reply


async def test_a_person_looks_first_and_decides() -> None:
    """/compress."""
    model = ScriptedModel([*turns(30), text_reply("done"), text_reply("## State\nlooked"), text_reply("on")])
    play = long_stage(model)
    await play.run()
    room = play.loop.compactor
    before = list(play.loop.state.conversation.view())
    proposed = await room.propose("the cache")
    assert play.loop.state.conversation.view() == before
    assert "wants this kept above all: the cache" in model.requests[-1].messages[0].text
    room.apply(proposed)
    assert len(play.loop.state.conversation.view()) < len(before)
    assert room.undo_compaction()
    assert not room.undo_compaction()
    await play.run("go on")
    assert RunState.from_entries(play.journal.entries()).conversation.full_view()[: len(before)] == before


async def test_a_short_conversation_is_left_alone_with_a_reason() -> None:
    play = long_stage(ScriptedModel([text_reply("hello")]))
    await play.run("hi")
    with pytest.raises(CompactionFailed, match="stays as it is"):
        await play.loop.compactor.propose()


async def test_the_last_message_is_taken_back_and_can_be_sent_again() -> None:
    """/undo, /retry."""
    model = ScriptedModel([text_reply("one"), text_reply("two"), text_reply("three")])
    play = long_stage(model)
    await play.run("first")
    await play.run("second")
    assert play.loop.compactor.undo_turn() == "second"
    await play.run("second, better")
    assert [m.text for m in model.requests[-1].messages] == ["first", "one", "second, better"]
    assert play.loop.compactor.undo_turn() == "second, better"
    assert play.loop.compactor.undo_turn() == "first"
    with pytest.raises(UsageError, match="no message"):
        play.loop.compactor.undo_turn()


async def test_no_notice_speaks_of_a_compaction_to_the_model_besides_the_summary() -> None:
    model = ScriptedModel(
        [*turns(30, full_at=30), text_reply("## State\nx"), text_reply("done")], context_tokens=WINDOW
    )
    play = long_stage(model)
    await play.run()
    assert not play.written(NoticeShown)
