"""Keys that decide whether a workflow begins, and when."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from hummingbird.core.orders import RunOverrides
from hummingbird.lab.gitlab.world import GitLabWorld
from hummingbird.service.protocols import RetryLater
from tests.config.effects.desk import AUTHOR, FAILED, MAINTAINER, at_desk

OPENED = {"kind": "merge_request", "action": "open"}
PIPELINE = ("trigger: pipeline",)


@pytest.mark.parametrize(
    ("settings", "workflow", "pipelines", "merge_requests"),
    [
        ((), (), 0, 0),
        ((), ("trigger: pipeline",), 1, 0),
        ((), ("trigger: merge_request",), 0, 1),
        (("auto_trigger: true",), (), 1, 0),
        (("auto_trigger: false",), (), 0, 0),
        (("auto_trigger: false",), ("trigger: pipeline",), 0, 0),
        (("auto_trigger: true",), ("trigger: merge_request",), 0, 1),
    ],
)
async def test_trigger_and_auto_trigger_decide_what_a_workflow_begins_with(
    tmp_path: Path, settings: Sequence[str], workflow: Sequence[str], pipelines: int, merge_requests: int
) -> None:
    """Without either it is for commands only, which work in any case."""
    async with at_desk(tmp_path) as desk:
        desk.says(*settings, workflow=workflow)
        assert (len(await desk.orders()), len(await desk.orders(OPENED))) == (pipelines, merge_requests)
        await desk.commands("/hummingbird analyze-failures")
        assert len(desk.answering.ran) == 1


@pytest.mark.parametrize(
    ("line", "begun"),
    [
        ("ignore_users: [to]", 1),
        (f'ignore_users: ["{AUTHOR[0]}.*"]', 0),
        ("ignore_branches: [swing-looks]", 1),
        ('ignore_branches: [".*/swing-looks"]', 0),
    ],
)
async def test_ignore_users_and_ignore_branches_leave_merge_requests_alone(
    tmp_path: Path, line: str, begun: int
) -> None:
    async with at_desk(tmp_path) as desk:
        desk.says(workflow=(*PIPELINE, line))
        await desk.comes()
        assert len(desk.answering.ran) == begun


@pytest.mark.parametrize("level", ["settings", "workflow", "project"])
async def test_max_runs_per_mr_ends_automatic_runs(tmp_path: Path, level: str) -> None:
    """On each level, and the nearest holds."""
    async with at_desk(tmp_path) as desk:
        for most in (0, 1):
            desk.says_on(level, f"max_runs_per_mr: {most}", "max_runs_per_mr: 9")
            await desk.comes()
            assert len(desk.answering.ran) == most


async def test_trigger_prefix_is_what_a_command_begins_with(tmp_path: Path) -> None:
    async with at_desk(tmp_path) as desk:
        desk.says("trigger_prefix: /bird")
        await desk.commands("/hummingbird analyze-failures")
        assert desk.notes == []
        await desk.commands("/bird analyze-failures")
        assert len(desk.answering.ran) == 1


async def test_models_allowed_may_be_chosen_in_a_command_and_others_not(tmp_path: Path) -> None:
    async with at_desk(tmp_path) as desk:
        await desk.commands("/hummingbird analyze-failures model=large")
        assert "cannot be chosen" in desk.notes[-1].body
        desk.says("models_allowed: [large]")
        await desk.commands("/hummingbird analyze-failures model=large")
        assert [order.overrides.model for order in desk.answering.ran] == ["large"]


async def test_the_documented_command_chooses_a_model_and_iterations(tmp_path: Path) -> None:
    """Any model of a provider with credentials may be chosen; `models_allowed` narrows it."""
    command = "/hummingbird analyze-failures model=claude-sonnet-4-6 max_iterations=25"
    async with at_desk(tmp_path) as desk:
        usual = ("model_regions: {claude: us-east5}", "max_iterations: 15")
        desk.says(*usual)
        await desk.commands(command)
        assert "has no credentials for its provider" in desk.notes[-1].body
        desk.credentials["GOOGLE_CLOUD_PROJECT"] = "birds"
        await desk.commands(command)
        assert [order.overrides for order in desk.answering.ran] == [
            RunOverrides(model="claude-sonnet-4-6", max_iterations=25)
        ]
        await desk.commands("/hummingbird analyze-failures model=replay:/etc/passwd")
        desk.says(*usual, "models_allowed: [gemini-3.1-pro-preview]")
        await desk.commands(command)
        assert "choose from `gemini-3.1-pro-preview`" in desk.notes[-1].body
        assert len(desk.answering.ran) == 1


@pytest.mark.parametrize(("seconds", "waits"), [(300, 0), (400, 85)])
async def test_settle_seconds_is_how_long_nothing_may_change(tmp_path: Path, seconds: int, waits: int) -> None:
    """The last job ended 315 s ago."""
    async with at_desk(tmp_path) as desk:
        desk.says(f"settle_seconds: {seconds}")
        (rest,) = await desk.comes()
        assert (rest.seconds if isinstance(rest, RetryLater) else 0) == waits
        assert len(desk.answering.ran) == (0 if waits else 1)


@pytest.mark.parametrize(("seconds", "begun"), [(900, 1), (1100, 0)])
async def test_settle_cap_seconds_is_how_long_what_runs_is_waited_for(tmp_path: Path, seconds: int, begun: int) -> None:
    async with at_desk(tmp_path) as desk:
        desk.says(f"settle_cap_seconds: {seconds}")
        desk.world(still_running)
        (order,) = await desk.orders()
        desk.clock.advance(1000)
        await desk.carries_out(order)
        assert len(desk.answering.ran) == begun


def still_running(world: GitLabWorld) -> None:
    job = next(job for job in world.jobs if job.pipeline_id == FAILED and job.status != "failed")
    job.status = "running"


async def test_former_bot_ids_make_old_notes_our_own(tmp_path: Path) -> None:
    """What an earlier self has looked at is not looked at again."""
    async with at_desk(tmp_path) as desk:
        head = desk.world(lambda world: world.merge_request.sha)
        said = f'{{"id":"old","wf":"analyze-failures","sha":"{head}","part":"result","order":"o"}}'
        desk.writes(f"<!-- hummingbird-session: {said} -->\n\nIt lacks a field.", MAINTAINER)
        desk.says("former_bot_ids: [12]")
        await desk.comes()
        assert desk.answering.ran == []
        desk.says()
        await desk.comes()
        assert len(desk.answering.ran) == 1


@pytest.mark.thorough
async def test_session_marker_prefix_is_how_our_notes_are_known(tmp_path: Path) -> None:
    """Under another name nothing is known of what was done before."""
    async with at_desk(tmp_path) as desk:
        desk.says("session_marker_prefix: bird")
        await desk.comes()
        await desk.comes()
        assert len(desk.answering.ran) == 1
        assert all(note.body.startswith("<!-- bird: {") for note in desk.notes)
        desk.says("session_marker_prefix: wren")
        await desk.comes()
        assert len(desk.answering.ran) == 2


@pytest.mark.thorough
async def test_gitlab_url_is_the_server_that_is_written_to(tmp_path: Path) -> None:
    async with at_desk(tmp_path / "one") as desk, at_desk(tmp_path / "other") as other:
        desk.says(f"gitlab_url: {other.scene.url('gitlab')}")
        await desk.comes()
        assert (len(desk.notes), len(other.notes)) == (0, 2)
        assert f"{other.scene.url('gitlab')}/veloren/veloren/-/pipelines/{FAILED}" in other.notes[0].body
