"""What only members may read is never public."""

from pathlib import Path

import pytest

from hummingbird.gitlab.write.protocol import NoteKind
from tests.journeys.service.stage import staged

GUEST = 10
BOT = 91


async def test_the_answer_to_a_public_command_is_a_new_internal_thread(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path) as stage:
        _, thread = await stage.write("hsato", "/hummingbird analyze-failures")
        placeholder, result = await stage.notes(2)
    assert placeholder.thread == result.thread != thread
    assert [note.internal for note in (placeholder, result)] == [True, True]


@pytest.mark.thorough
async def test_a_reply_in_a_thread_that_was_public_is_answered_in_a_new_internal_note(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path, settings={"internal_notes": False}) as stage:
        await stage.begin_case()
        _, result = await stage.notes(2)
        await stage.stop()
        stage.configure({"internal_notes": True}, {"analyze-failures": {"trigger": "pipeline"}})
        await stage.serve()
        await stage.write("hsato", "Which line of LogDifferTest is it?", thread=result.thread)
        *_, answer = await stage.notes(3)
    assert not result.internal
    assert answer.internal
    assert answer.thread != result.thread
    assert answer.session == result.session
    assert answer.part is NoteKind.RESULT


@pytest.mark.thorough
async def test_an_internal_command_is_answered_internally_although_notes_are_public(tmp_path: Path) -> None:
    """It arrives as a confidential note."""
    async with staged("failing-test", tmp_path, settings={"internal_notes": False}) as stage:
        _, thread = await stage.write("hsato", "/hummingbird analyze-failures", internal=True)
        placeholder, result = await stage.notes(2)
    assert placeholder.thread == result.thread == thread
    assert [note.internal for note in (placeholder, result)] == [True, True]


@pytest.mark.thorough
async def test_a_guest_of_a_bot_publishes_nothing_and_the_log_says_what_to_do(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with staged("failing-test", tmp_path, begin=False) as stage:
        stage.bot_has(GUEST)
        await stage.serve()
        await stage.begin_case()
        await stage.until(lambda: stage.dead() == 1)
        assert stage.ours() == []
        assert stage.requests("/notes", "POST") == []
    assert "give it at least the role Planner" in caplog.text


@pytest.mark.thorough
async def test_a_bot_that_is_no_member_takes_its_placeholder_back_and_analyses_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """GitLab drops the flag without a word, so the note was public for a moment: it said nothing."""
    async with staged("failing-test", tmp_path, begin=False) as stage:
        stage.ask(lambda world: world.project.members.pop(BOT))
        await stage.serve()
        await stage.begin_case()
        await stage.until(lambda: stage.dead() == 1)
        assert stage.ours() == []
        assert stage.requests("/notes", "POST")
        told = [one.body for one in stage.deliveries() if one.event == "Note Hook"]
    assert "it was deleted again" in caplog.text
    assert "give it at least the role Planner" in caplog.text
    assert told
    assert not any(b"LogDifferTest" in body for body in told)
    assert not list((tmp_path / "state" / "sessions").glob("*/journal.jsonl"))
