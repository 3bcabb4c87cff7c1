"""L20: a person between two runs looks at a summary, takes it or leaves it, and takes a message back."""

import pytest

from hummingbird.agent.state import RunState
from hummingbird.domain.errors import NothingGained, UsageFault
from hummingbird.domain.journal import (
    NoticeShown,
)
from hummingbird.lab.scripted import ScriptedModel, says
from tests.agent.long_talk import WINDOW, long_stage, turns


async def test_a_person_looks_first_and_decides() -> None:
    """C3: /compress."""
    model = ScriptedModel([*turns(30), says("done"), says("## State\nlooked"), says("on")])
    play = long_stage(model)
    await play.run()
    room = play.loop.room
    before = list(play.loop.state.conversation.view())
    proposed = await room.proposed("the cache")
    assert play.loop.state.conversation.view() == before
    assert "wants this kept above all: the cache" in model.requests[-1].messages[0].text
    room.apply(proposed)
    assert len(play.loop.state.conversation.view()) < len(before)
    assert room.take_back()
    assert not room.take_back()
    await play.run("go on")
    assert RunState.of(play.journal.entries()).conversation.whole()[: len(before)] == before


async def test_a_short_conversation_is_left_alone_with_a_reason() -> None:
    """C3, L20."""
    play = long_stage(ScriptedModel([says("hello")]))
    await play.run("hi")
    with pytest.raises(NothingGained, match="stays as it is"):
        await play.loop.room.proposed()


async def test_the_last_message_is_taken_back_and_can_be_sent_again() -> None:
    """C3: /undo, /retry."""
    model = ScriptedModel([says("one"), says("two"), says("three")])
    play = long_stage(model)
    await play.run("first")
    await play.run("second")
    assert play.loop.room.undo() == "second"
    await play.run("second, better")
    assert [m.text for m in model.requests[-1].messages] == ["first", "one", "second, better"]
    assert play.loop.room.undo() == "second, better"
    assert play.loop.room.undo() == "first"
    with pytest.raises(UsageFault, match="no message"):
        play.loop.room.undo()


async def test_no_notice_speaks_of_a_compaction_to_the_model_besides_the_summary() -> None:
    """L8."""
    model = ScriptedModel([*turns(30, full_at=30), says("## State\nx"), says("done")], context_tokens=WINDOW)
    play = long_stage(model)
    await play.run()
    assert not play.written(NoticeShown)
