"""What an automatic run is not begun for, and what it is."""

import logging
from pathlib import Path

import pytest

from hummingbird.lab.gitlab.world import GitLabWorld
from hummingbird.lab.gitlab.write.merge_request_changes import MergeRequestEdit, apply_edit
from tests.journeys.service.runs_elsewhere import ANOTHER, another_pipeline, external
from tests.journeys.service.stage import Stage, staged

NEXT = "c" * 40


@pytest.fixture(autouse=True)
def told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "hummingbird.service")


async def test_max_runs_per_mr_ends_automatic_runs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with staged("failing-test", tmp_path, settings={"max_runs_per_mr": 1}) as stage:
        await stage.begin_case()
        await stage.notes(2)
        stage.push(NEXT)
        external(stage, "failed")
        await stage.idle()
        await stage.notes(2)
    assert "has run as often as it may on this merge request (1)" in caplog.text


@pytest.mark.thorough
async def test_a_commit_is_looked_at_once_by_each_workflow(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Two workflows on one project are two threads."""
    both = {"analyze-failures": {"trigger": "pipeline"}, "look-twice": {"trigger": "pipeline"}}
    async with staged("failing-test", tmp_path, workflows=both) as stage:
        await stage.begin_case()
        notes = await stage.notes(4)
        await stage.begin_case()
        await stage.idle()
        await stage.notes(4)
    assert len({note.thread for note in notes}) == 2
    assert {note.marker.wf for note in notes if note.marker} == set(both)
    assert caplog.text.count("has looked at this commit already") == 2


@pytest.mark.thorough
async def test_a_merge_request_that_was_closed_meanwhile_is_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with staged("failing-test", tmp_path, settings={"settle_seconds": 1}) as stage:
        await waiting(stage, caplog)
        stage.ask(close)
        await stage.idle()
        assert stage.ours() == []
    assert "the merge request is no longer open" in caplog.text


@pytest.mark.thorough
async def test_a_head_that_moved_on_meanwhile_is_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with staged("failing-test", tmp_path, settings={"settle_seconds": 1}) as stage:
        await waiting(stage, caplog)
        stage.push(NEXT)
        await stage.idle()
        assert stage.ours() == []
    assert "the head of the merge request has moved on" in caplog.text


@pytest.mark.thorough
async def test_what_is_green_again_when_all_has_settled_needs_no_report(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with staged("failing-test", tmp_path, settings={"settle_seconds": 1}) as stage:
        await waiting(stage, caplog)
        stage.ask(mend_jobs)
        external(stage, "success", ANOTHER)
        await stage.idle()
        assert stage.ours() == []
    assert "nothing on the head is red any more" in caplog.text


async def waiting(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """The case has begun, and its order waits for something that runs."""
    stage.ask(another_pipeline)
    external(stage, "running", ANOTHER)
    await stage.begin_case()
    await stage.until(lambda: "still running" in caplog.text)


def close(world: GitLabWorld) -> None:
    request = world.merge_request
    apply_edit(world, request, world.user(request.author_id), MergeRequestEdit(state_event="close"))


def mend_jobs(world: GitLabWorld) -> None:
    for job in world.jobs:
        if job.status == "failed":
            job.status = "success"
