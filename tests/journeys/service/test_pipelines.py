"""A pipeline fails, and what becomes of it."""

import logging
from pathlib import Path

import pytest

from hummingbird.gitlab.write.protocol import NoteKind
from hummingbird.lab.gitlab.world import GitLabWorld
from tests.journeys.service.runs_elsewhere import ANOTHER, BUILD, another_pipeline, external, retried_and_green
from tests.journeys.service.stage import staged
from tests.thoroughly import also

NEXT = "a" * 40
RESOLVING = {"trigger": "pipeline", "auto_resolve_on_push": True, "auto_resolve_on_success": True}


async def test_a_failed_pipeline_gets_an_internal_thread_with_evidence_and_the_bill(tmp_path: Path) -> None:
    """Internal by default: both notes, of which the second is a reply."""
    async with staged("failing-test", tmp_path) as stage:
        await stage.begin_case()
        placeholder, result = await stage.notes(2)
        assert stage.answers() == []
    assert (placeholder.internal, result.internal) == (True, True)
    assert placeholder.thread == result.thread
    assert (placeholder.part, result.part) == (NoteKind.PLACEHOLDER, NoteKind.RESULT)
    assert placeholder.session == result.session
    expected = stage.scene.case.description["expected"]
    assert any(line.strip() in result.body for line in expected["evidence"]), result.body
    assert f"Verdict: {expected['verdict']}" in result.body
    footer = result.body[result.body.rindex("<sub>") :]
    assert "`digest`" in footer
    assert "iteration" in footer
    assert "$" in footer
    assert result.session in footer
    assert "To ask further, reply in this thread." in result.body


async def test_while_a_status_of_the_head_runs_the_order_waits_and_one_report_covers_all(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "hummingbird.service")
    async with staged("failing-test", tmp_path, settings={"settle_seconds": 1}) as stage:
        stage.ask(another_pipeline)
        external(stage, "running", ANOTHER)
        await stage.begin_case()
        await stage.until(lambda: f"still running: '{BUILD}'" in caplog.text)
        assert stage.ours() == []
        external(stage, "failed", ANOTHER)
        await stage.begin_case()
        _, result = await stage.notes(2)
        told = [one.body for one in stage.deliveries() if one.event == "Pipeline Hook"]
    assert sum(b'"detailed_status":"failed"' in body for body in told) == 3
    assert "LogDifferTest" in result.body
    assert BUILD in result.body


async def test_a_pipeline_of_external_statuses_alone_is_of_the_merge_request_whose_head_it_is_on(
    tmp_path: Path,
) -> None:
    async with staged("failing-test", tmp_path) as stage:
        stage.push(NEXT)
        external(stage, "failed")
        _, result = await stage.notes(2)
        hook = next(one for one in stage.deliveries() if one.event == "Pipeline Hook")
    assert b'"merge_request":null' in hook.body
    assert result.marker is not None
    assert result.marker.sha == NEXT
    assert BUILD in result.body


@pytest.mark.thorough
async def test_the_commit_of_a_report_is_the_head_although_a_merged_results_pipeline_ran_on_another(
    tmp_path: Path,
) -> None:
    async with staged("compiler-error", tmp_path) as stage:
        await stage.begin_case()
        notes = await stage.notes(2)
        head, run = stage.world.merge_request.sha, stage.world.pipelines[0].sha
    assert head != run
    assert {note.marker.sha for note in notes if note.marker} == {head}


@pytest.mark.thorough
@pytest.mark.parametrize(
    "ignored", [also({"ignore_users": ["mlefevre"]}), {"ignore_branches": ["main"]}], ids=["author", "branch"]
)
async def test_author_and_branch_of_the_merge_request_count_though_the_event_names_neither(
    ignored: dict[str, list[str]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A pipeline of external statuses is somebody else's, and of a commit."""
    caplog.set_level(logging.INFO, "hummingbird.service")
    workflows = {"analyze-failures": {"trigger": "pipeline", **ignored}}
    async with staged("failing-test", tmp_path, workflows=workflows) as stage:
        stage.push(NEXT)
        external(stage, "failed", by="hsato")
        await stage.idle()
        assert stage.ours() == []
    assert "no run started: analyze-failures ignores the" in caplog.text


@pytest.mark.thorough
async def test_the_pipeline_of_a_merge_train_is_of_the_head_though_its_commit_may_not_be_made_of_it(
    tmp_path: Path,
) -> None:
    """Where nothing is merged but rebased, the commits of a train are others."""

    def in_train(world: GitLabWorld) -> None:
        run = world.pipelines[0]
        run.ref = run.ref.replace("/merge", "/train")
        world.commits[run.sha].parent_ids = ["f" * 40]

    async with staged("compiler-error", tmp_path) as stage:
        stage.ask(in_train)
        await stage.begin_case()
        await stage.notes(2)


@pytest.mark.thorough
@pytest.mark.parametrize("case", [also("failing-test"), "compiler-error"], ids=["its-own-commit", "merged-results"])
async def test_a_pipeline_of_an_earlier_head_is_no_reason_to_look_at_the_new_one(
    case: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Until the new head has a pipeline, GitLab names none as its newest, or still the old one."""
    caplog.set_level(logging.INFO, "hummingbird.service")
    async with staged(case, tmp_path) as stage:
        stage.push(NEXT)
        await stage.begin_case()
        await stage.idle()
        assert stage.ours() == []
    assert "has moved on from that pipeline" in caplog.text


@pytest.mark.thorough
async def test_a_push_resolves_the_threads_about_earlier_commits(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path, workflows={"analyze-failures": RESOLVING}) as stage:
        await stage.begin_case()
        assert not any(note.resolved for note in await stage.notes(2))
        stage.push(NEXT)
        await stage.idle()
        assert all(note.resolved for note in await stage.notes(2))


@pytest.mark.thorough
async def test_success_resolves_the_threads_but_not_while_another_status_of_the_head_is_red(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "hummingbird.service")
    async with staged("failing-test", tmp_path, workflows={"analyze-failures": RESOLVING}) as stage:
        stage.ask(another_pipeline)
        external(stage, "failed", ANOTHER)
        await stage.ended(1)
        retried_and_green(stage)
        await stage.idle()
        assert "something on the head is not green yet" in caplog.text
        assert not any(note.resolved for note in stage.marked())
        external(stage, "success", ANOTHER)
        await stage.idle()
        assert all(note.resolved for note in await stage.notes(2))
