"""One failure in many merge requests: it is explained once, and the others are led there."""

from pathlib import Path

import pytest

from hummingbird.core.journal import ModelAnswered
from hummingbird.gitlab.write.protocol import NoteKind
from hummingbird.lab.gitlab.case_loader import add_merge_requests
from hummingbird.lab.gitlab.world import GitLabWorld
from hummingbird.service.protocols import KNOWN_FAILURE
from tests.journeys.service.stage import Ours, Stage, staged
from tests.standins.vendors.script import Turn

FIRST_BOT = 90  # of the cases' users
ANALYSIS = Turn(text="**Verdict:** infrastructure\n\nThe name server was away.")


def another_author(world: GitLabWorld, at: int) -> None:
    """The merge request at that place is of somebody else who may start runs."""
    request = world.merge_requests[at]
    members = world.project.members.values()
    people = [one.user_id for one in members if one.access_level >= 30 and one.user_id < FIRST_BOT]
    request.author_id = next(one for one in people if one != request.author_id)


async def result_of(stage: Stage, pipeline: int, number: int) -> Ours:
    stage.happens({"kind": "pipeline", "pipeline": pipeline})
    return max(await stage.ended(number), key=lambda note: note.id)


async def test_the_second_merge_request_is_led_to_the_first_analysis_and_no_model_is_asked(tmp_path: Path) -> None:
    async with staged("network", tmp_path, turns=[ANALYSIS]) as stage:
        others = [run.id for run in stage.ask(lambda world: add_merge_requests(world, 2))]
        stage.ask(lambda world: another_author(world, 1))
        first = await result_of(stage, stage.scene.case.description["event"]["pipeline"], 1)
        second = await result_of(stage, others[0], 2)
        third = await result_of(stage, others[1], 3)
        answered = [one for one in stage.entries(second.session) if isinstance(one, ModelAnswered)]
    assert "Not only here" not in first.body
    assert "The name server was away." in first.body
    link = f"/-/merge_requests/{first.iid}#note_{first.id}"
    for note, count in ((second, 2), (third, 3)):
        assert note.part is NoteKind.RESULT
        assert link in note.body
        assert "The name server was away." not in note.body
        assert f"in {count} merge requests of this project by 2 authors" in note.body
        assert "`/hummingbird analyze-failures`" in note.body
        assert "**Not yours: infrastructure.**" in note.body
    assert [one.model for one in answered] == [KNOWN_FAILURE]
    assert all(one.cost_usd == 0 for one in answered)


@pytest.mark.thorough
async def test_a_reply_to_a_short_note_goes_on_with_the_configured_model(tmp_path: Path) -> None:
    turns = [ANALYSIS, Turn(text="Yes, the same one.")]
    async with staged("network", tmp_path, turns=turns) as stage:
        (other,) = stage.ask(lambda world: add_merge_requests(world, 1))
        await result_of(stage, stage.scene.case.description["event"]["pipeline"], 1)
        short = await result_of(stage, other.id, 2)
        who = stage.ask(lambda world: world.user(world.merge_request.author_id).username)
        await stage.write(who, "Is it really the same?", thread=short.thread, iid=short.iid)
        answer = max(await stage.ended(3), key=lambda note: note.id)
        history = str(stage.lab.requests[1].body) if stage.lab else ""
    assert "Yes, the same one." in answer.body
    assert "explained in another merge request" in history
    assert answer.session == short.session


@pytest.mark.thorough
async def test_a_second_merge_request_of_the_same_author_takes_no_suspicion_back(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path) as stage:
        (other,) = stage.ask(lambda world: add_merge_requests(world, 1))
        pipeline = stage.scene.case.description["event"]["pipeline"]
        stage.ask(lambda world: world.test_reports.update({other.id: world.test_reports[pipeline]}))
        await result_of(stage, pipeline, 1)
        second = await result_of(stage, other.id, 2)
    assert "**Likely yours.**" in second.body
    assert "Not only here" not in second.body


@pytest.mark.thorough
async def test_who_asks_by_a_command_gets_a_full_analysis_and_the_banner(tmp_path: Path) -> None:
    turns = [ANALYSIS, Turn(text="**Verdict:** infrastructure\n\nAway once more.")]
    async with staged("network", tmp_path, turns=turns) as stage:
        (other,) = stage.ask(lambda world: add_merge_requests(world, 1))
        stage.ask(lambda world: another_author(world, 1))
        await result_of(stage, stage.scene.case.description["event"]["pipeline"], 1)
        who = stage.ask(lambda world: world.user(world.merge_request.author_id).username)
        iid = stage.ask(lambda world: world.merge_requests[1].iid)
        assert other.merge_request_id
        await stage.write(who, "/hummingbird analyze-failures", iid=iid)
        full = max(await stage.ended(2), key=lambda note: note.id)
    assert "Away once more." in full.body
    assert "in 2 merge requests of this project" in full.body
    assert "explained in another merge request" not in full.body


@pytest.mark.thorough
async def test_a_second_commit_of_the_same_merge_request_is_analysed_again(tmp_path: Path) -> None:
    turns = [ANALYSIS, Turn(text="**Verdict:** infrastructure\n\nStill away.")]
    async with staged("network", tmp_path, turns=turns) as stage:
        pipeline = stage.scene.case.description["event"]["pipeline"]
        await result_of(stage, pipeline, 1)
        stage.push("b" * 40)

        def moved(world: GitLabWorld) -> None:
            run = world.find_pipeline(pipeline)
            assert run is not None
            run.sha = "b" * 40

        stage.ask(moved)
        again = await result_of(stage, pipeline, 2)
    assert "Still away." in again.body
    assert "Not only here" not in again.body
