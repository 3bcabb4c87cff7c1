"""What a workflow's configuration chooses: whom it ignores, what it says when there is nothing to say."""

import logging
from pathlib import Path
from typing import Any

import pytest

from hummingbird.gitlab.write.protocol import NoteKind
from tests.journeys.service.stage import staged
from tests.standins.vendors.script import Turn

PUBLIC = {"internal_notes": False}
NOTHING = Turn(text="Nothing to report.")


def pipelines(**changed: Any) -> dict[str, dict[str, Any]]:
    return {"analyze-failures": {"trigger": "pipeline", **changed}}


async def test_with_silence_nothing_to_report_is_an_emoji_and_is_not_found_out_twice(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path, workflows=pipelines(nothing_found="silence"), turns=[NOTHING]) as stage:
        await stage.begin_case()
        await stage.until(lambda: bool(stage.marked()) and stage.awards(stage.marked()[0].id) == ["white_check_mark"])
        await stage.begin_case()
        await stage.idle()
        (placeholder,) = await stage.notes(1)
    assert placeholder.part is NoteKind.PLACEHOLDER
    assert "if there is nothing to report, nothing follows" in placeholder.body


@pytest.mark.thorough
async def test_otherwise_nothing_to_report_is_one_line_in_a_thread_that_is_resolved(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path, turns=[NOTHING]) as stage:
        await stage.begin_case()
        _, result = await stage.notes(2)
    assert "\nNothing to report.\n" in result.body
    assert result.resolved


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("ignored", "reason"),
    [
        ({"ignore_users": ["mle.*"]}, "ignores the user 'mlefevre'"),
        ({"ignore_branches": ["ma.n"]}, "ignores the branch"),
    ],
    ids=["users", "branches"],
)
async def test_who_and_what_is_ignored_begins_nothing_but_may_ask(
    ignored: dict[str, Any], reason: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "hummingbird.service")
    async with staged("failing-test", tmp_path, settings=PUBLIC, workflows=pipelines(**ignored)) as stage:
        await stage.begin_case()
        await stage.idle()
        assert stage.ours() == []
        assert reason in caplog.text
        await stage.write("mlefevre", "/hummingbird analyze-failures")
        await stage.notes(2)


@pytest.mark.thorough
async def test_what_people_discuss_is_not_resolved_although_somebody_gave_a_command_in_it(tmp_path: Path) -> None:
    async with staged(
        "failing-test", tmp_path, settings=PUBLIC, workflows=pipelines(auto_resolve_on_push=True)
    ) as stage:
        theirs = stage.world.merge_request.discussions[0].id
        await stage.write("mlefevre", "I have not seen any.", thread=theirs)
        await stage.write("hsato", "/hummingbird analyze-failures", thread=theirs)
        notes = await stage.notes(2)
        _, own = await stage.write("hsato", "/hummingbird analyze-failures")
        await stage.notes(4)
        stage.push("d" * 40)
        await stage.idle()
        states = (stage.thread(theirs).resolved, stage.thread(own).resolved)
    assert {note.thread for note in notes} == {theirs}
    assert states == (False, True)


@pytest.mark.thorough
async def test_a_thread_of_a_workflow_that_is_gone_says_so(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path, settings=PUBLIC) as stage:
        await stage.begin_case()
        _, result = await stage.notes(2)
        await stage.stop()
        stage.configure(PUBLIC, {"code-review": {}})
        await stage.serve()
        await stage.write("hsato", "Which line is it?", thread=result.thread)
        await stage.until(lambda: bool(stage.answers()))
        await stage.notes(2)
        (answer,) = stage.answers()
    assert "`analyze-failures` of this thread is not configured for this project any more" in answer.body


@pytest.mark.thorough
async def test_commands_and_replies_work_on_a_merge_request_that_is_merged(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path, settings=PUBLIC) as stage:
        stage.ask(lambda world: setattr(world.merge_request, "state", "merged"))
        await stage.begin_case()
        await stage.idle()
        assert stage.ours() == []
        await stage.write("hsato", "/hummingbird analyze-failures")
        _, result = await stage.notes(2)
        await stage.write("hsato", "Which line of LogDifferTest is it?", thread=result.thread)
        await stage.notes(3)
