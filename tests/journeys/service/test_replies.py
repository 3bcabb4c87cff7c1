"""A person replies in a thread of ours, and the session goes on."""

import shutil
from pathlib import Path

import pytest

from hummingbird.core.journal import RunStarted
from hummingbird.gitlab.write.protocol import NoteKind
from tests.journeys.service.stage import MODEL, Stage, staged
from tests.standins.vendors.script import Turn

PUBLIC = {"internal_notes": False}
OTHER = "anthropic:claude-haiku-4-5"


def models_asked(stage: Stage) -> list[str]:
    assert stage.lab is not None
    return [str(request.body["model"]) for request in stage.lab.requests]


async def test_s3_a_reply_gets_an_emoji_and_one_result_and_the_session_goes_on(tmp_path: Path) -> None:
    turns = [Turn(text="The parser is too strict."), Turn(text="Line 61, as I said.")]
    async with staged("failing-test", tmp_path, turns=turns) as stage:
        await stage.begin_case()
        _, result = await stage.notes(2)
        asked, _ = await stage.write("hsato", "Which line is it?", thread=result.thread)
        placeholder, _, answer = await stage.notes(3)
        started = [one for one in stage.entries(result.session) if isinstance(one, RunStarted)]
        awards = stage.awards(asked)
        history = str(stage.lab.requests[1].body) if stage.lab else ""
    assert awards == ["eyes"]
    assert (answer.thread, answer.part, answer.internal) == (placeholder.thread, NoteKind.RESULT, True)
    assert answer.session == result.session
    assert "Line 61, as I said." in answer.body
    assert "To ask further" in result.body
    assert "To ask further" not in answer.body
    assert len(started) == 2
    assert "The parser is too strict." in history
    assert "Which line is it?" in history


@pytest.mark.thorough
async def test_settings_in_a_reply_are_no_part_of_the_message_and_stay_with_the_session(tmp_path: Path) -> None:
    turns = [Turn(text="One."), Turn(text="Two."), Turn(text="Three.")]
    settings = {"models_allowed": [MODEL, OTHER]}
    async with staged("failing-test", tmp_path, settings=settings, turns=turns) as stage:
        await stage.begin_case()
        _, result = await stage.notes(2)
        await stage.write("hsato", f"Look again.\n\n/hummingbird model={OTHER}", thread=result.thread)
        await stage.notes(3)
        await stage.write("hsato", "And once more.", thread=result.thread)
        notes = await stage.notes(4)
        asked = models_asked(stage)
        second = str(stage.lab.requests[1].body["messages"]) if stage.lab else ""
    assert asked == [MODEL.split(":")[1], *[OTHER.split(":")[1]] * 2]
    assert "Look again." in second
    assert "model=" not in second
    assert [note.marker.overrides.model for note in notes if note.marker] == ["", "", OTHER, OTHER]
    assert {note.session for note in notes} == {result.session}


@pytest.mark.thorough
async def test_of_earlier_settings_those_stay_that_are_still_allowed(tmp_path: Path) -> None:
    """The file was changed meanwhile: the model is gone, the iterations are not."""
    turns = [Turn(text="One."), Turn(text="Two."), Turn(text="Three.")]
    settings = {"models_allowed": [MODEL, OTHER], "config_poll_seconds": 1}
    async with staged("failing-test", tmp_path, settings=settings, turns=turns) as stage:
        await stage.begin_case()
        _, result = await stage.notes(2)
        await stage.write("hsato", f"Again.\n/hummingbird model={OTHER} max_iterations=7", thread=result.thread)
        await stage.notes(3)
        stage.configure({**settings, "models_allowed": [MODEL]}, {"analyze-failures": {"trigger": "pipeline"}})
        await stage.until(lambda: len(stage.watched.current.settings.models_allowed) == 1)
        await stage.write("hsato", "And once more.", thread=result.thread)
        notes = await stage.notes(4)
        asked = models_asked(stage)
    chosen = [(note.marker.overrides.model, note.marker.overrides.max_iterations) for note in notes if note.marker]
    assert chosen == [("", 0), ("", 0), (OTHER, 7), ("", 7)]
    assert asked[1:] == [OTHER.split(":")[1], MODEL.split(":")[1]]


@pytest.mark.thorough
async def test_a_reply_with_a_setting_that_is_not_allowed_is_told_so_and_nothing_runs(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path, settings=PUBLIC) as stage:
        await stage.begin_case()
        _, result = await stage.notes(2)
        await stage.write("hsato", "Again.\n/hummingbird model=made-up", thread=result.thread)
        await stage.until(lambda: bool(stage.answers()))
        await stage.notes(2)
        (answer,) = stage.answers()
    assert "`made-up`" in answer.body
    assert answer.thread == result.thread


@pytest.mark.thorough
async def test_s3_a_reply_to_a_session_that_is_gone_is_told_how_to_start_anew(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path, settings=PUBLIC) as stage:
        await stage.begin_case()
        _, result = await stage.notes(2)
        shutil.rmtree(tmp_path / "state" / "sessions" / result.session)
        await stage.write("hsato", "Which line is it?", thread=result.thread)
        await stage.until(lambda: bool(stage.answers()))
        await stage.notes(2)
        (answer,) = stage.answers()
    assert "has expired" in answer.body
    assert "/hummingbird analyze-failures" in answer.body


@pytest.mark.thorough
async def test_replies_in_other_peoples_threads_are_not_ours(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path) as stage:
        thread = stage.world.merge_request.discussions[0].id
        asked, _ = await stage.write("mlefevre", "I have not seen any.", thread=thread)
        await stage.idle()
        assert stage.ours() == []
        assert stage.awards(asked) == []
