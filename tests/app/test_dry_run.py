"""`hummingbird run` without --execute: an answer, and nothing in GitLab that was not there before."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from hummingbird.app.console import SystemClock
from hummingbird.app.run_request import FinishedRun, NothingToRun, RunRequest
from hummingbird.core.errors import EventUnreadable, UsageError
from hummingbird.core.journal import EndReason
from hummingbird.core.orders import OrderCause, RunOverrides
from hummingbird.lab.scene import Scene
from hummingbird.storage.spending_store import SqliteSpendingStore
from tests.app.conducting import MODEL, shell
from tests.app.running_on import FILES, LOOKS_TOO, ORCHESTRATOR, WORKFLOW, site
from tests.standins.vendors.script import Call, Script, Turn
from tests.standins.vendors.server import VendorLab

PLAIN = "held-back-by-the-name-of-its-variable-alone"


async def test_a_named_workflow_answers_and_posts_nothing(tmp_path: Path) -> None:
    """With a token that reads alone, and nothing is left on this machine."""
    with site(tmp_path) as here:
        done = await here.only(here.direct())
        assert here.written == []
    assert here.evidence in done.text
    assert done.exit_code == 0
    assert (done.posted, done.saved) == ("", None)
    assert "digest" in done.bill
    assert not (tmp_path / "state").exists()


async def test_a_session_is_saved_where_somebody_wants_it(tmp_path: Path) -> None:
    """Its files, for its owner alone."""
    folder = tmp_path / "below" / "mine"
    with site(tmp_path) as here:
        done = await here.only(here.direct(save=str(folder)))
    assert done.saved == folder
    assert sorted(file.name for file in folder.iterdir()) == [*FILES]
    assert folder.stat().st_mode & 0o777 == 0o700
    assert here.evidence in (folder / "transcript.md").read_text()


async def test_a_folder_with_another_session_is_refused(tmp_path: Path) -> None:
    """Before anything is asked of anybody."""
    folder = tmp_path / "mine"
    with site(tmp_path) as here:
        await here.only(here.direct(save=str(folder)))
        before, asked = (folder / "journal.jsonl").read_bytes(), len(here.scene.worlds.gitlab.requests)
        with pytest.raises(UsageError, match="another session"):
            await here.run(here.direct(save=str(folder)))
        assert len(here.scene.worlds.gitlab.requests) == asked
    assert (folder / "journal.jsonl").read_bytes() == before


@pytest.mark.thorough
async def test_the_orchestrators_token_never_reaches_the_run(tmp_path: Path) -> None:
    """Neither the sandbox nor the model has it, and where it turns up by itself it is masked."""
    token = Scene.write_token
    tells = f"printf '%s%s\\n' {token[:4]} {token[4:]} {PLAIN[:4]} {PLAIN[4:]}"
    script = Script([shell(f"env; {tells}"), Turn(text="Done.")])
    folder = tmp_path / "mine"
    with site(tmp_path) as here, VendorLab(script) as lab:
        given = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": lab.anthropic_url, ORCHESTRATOR: token}
        given["ORCHESTRATOR_OTHER"] = PLAIN
        done = await here.only(here.direct(save=str(folder), model=MODEL), None, **given)
        assert here.written == []
        script.assert_consumed()
    assert done.result.outcome.text == "Done."
    kept = (folder / "journal.jsonl").read_text()
    assert "PATH=" in kept
    assert "exit code 0" in kept
    assert token not in kept
    assert PLAIN not in kept
    assert "ORCHESTRATOR_" not in kept
    assert token not in (folder / "transcript.md").read_text()


@pytest.mark.thorough
async def test_what_rules_say_of_the_failure_stands_above_the_answer(tmp_path: Path) -> None:
    with site(tmp_path) as here:
        done = await here.only(here.direct())
    assert done.result.verdict is not None
    assert done.text.startswith("❌ ")
    assert "Verdict:" not in done.text, "one word for whose it is"
    assert done.text.index("**Next:**") < done.text.index("## The whole report")


@pytest.mark.thorough
async def test_a_webhook_is_routed_whatever_its_status(tmp_path: Path) -> None:
    """forced."""
    with site(tmp_path) as here:
        event = here.webhook()
        event["object_attributes"]["status"] = "success"
        done = await here.only(RunRequest(event_file="-"), event)
        assert here.written == []
    assert here.evidence in done.text
    assert (done.order.workflow, done.order.mr_iid) == (WORKFLOW, here.iid)
    assert done.order.pipeline_id == event["object_attributes"]["id"]


@pytest.mark.thorough
async def test_each_workflow_that_an_event_starts_is_run_and_kept(tmp_path: Path) -> None:
    """A folder holds one session, so each has one of its own."""
    with site(tmp_path, second=True) as here:
        done = await here.run(RunRequest(event_file="-", save=str(tmp_path / "all")), here.webhook())
    assert [one.order.workflow for one in done if isinstance(one, FinishedRun)] == [WORKFLOW, LOOKS_TOO]
    kept = sorted(path.parent.name for path in (tmp_path / "all").glob("*/journal.jsonl"))
    assert kept == [f"{WORKFLOW}-{here.iid}", f"{LOOKS_TOO}-{here.iid}"]


async def test_an_event_that_starts_nothing_says_why(tmp_path: Path) -> None:
    with site(tmp_path, trigger="merge_request") as here:
        (done,) = await here.run(RunRequest(event_file="-"), here.webhook())
        (other,) = await here.run(RunRequest(event_file="-"), {"object_kind": "push"})
    assert isinstance(done, NothingToRun)
    assert "no workflow begins with that" in done.sentence
    assert isinstance(other, NothingToRun)
    assert "'push'" in other.sentence


def note(webhook: dict[str, Any], text: str, kind: str | None) -> dict[str, Any]:
    """Somebody writes on the merge request of that webhook."""
    own = {
        "id": 77,
        "note": text,
        "noteable_type": "MergeRequest",
        "type": kind,
        "discussion_id": "d",
        "action": "create",
    }
    change = webhook["merge_request"] | {"last_commit": {"id": "2" * 40}, "target_branch": "master"}
    return {**webhook, "object_kind": "note", "object_attributes": own, "merge_request": change}


@pytest.mark.thorough
async def test_a_command_is_tried_with_all_that_it_says(tmp_path: Path) -> None:
    with site(tmp_path, trigger=None) as here:
        event = note(here.webhook(), "/hummingbird analyze max_iterations=7 look at the linter", None)
        done = await here.only(RunRequest(event_file="-", model="digest"), event)
        assert here.written == []
    assert (done.order.workflow, done.order.cause) == (WORKFLOW, OrderCause.COMMAND)
    assert (done.order.sha, done.order.message) == ("2" * 40, "look at the linter")
    assert done.order.overrides == RunOverrides(model="digest", max_iterations=7)


async def test_a_reply_is_nothing_without_its_session(tmp_path: Path) -> None:
    """S3"""
    with site(tmp_path) as here:
        (done,) = await here.run(RunRequest(event_file="-"), note(here.webhook(), "And why?", "DiscussionNote"))
    assert isinstance(done, NothingToRun)
    assert "--resume-session" in done.sentence


async def test_what_is_no_webhook_is_refused(tmp_path: Path) -> None:
    with site(tmp_path) as here, pytest.raises(EventUnreadable, match="give --workflow and --project"):
        await here.run(RunRequest(event_file="-"), {"iid": 7})


@pytest.mark.thorough
async def test_a_pipeline_without_a_merge_request_needs_gitlab(tmp_path: Path) -> None:
    """External pipelines name none; only a token for the forge can find it."""
    with site(tmp_path) as here:
        event = here.webhook() | {"merge_request": None}
        event["object_attributes"]["sha"] = here.head
        with pytest.raises(UsageError, match=ORCHESTRATOR):
            await here.run(RunRequest(event_file="-"), event)
        done = await here.only(RunRequest(event_file="-"), event, **{ORCHESTRATOR: Scene.write_token})
        event["object_attributes"]["sha"] = "0" * 40
        (nothing,) = await here.run(RunRequest(event_file="-"), event, **{ORCHESTRATOR: Scene.write_token})
        assert here.written == []
    assert (done.order.mr_iid, done.order.sha) == (here.iid, here.head)
    assert isinstance(nothing, NothingToRun)
    assert "no open merge request" in nothing.sentence


@pytest.mark.thorough
@pytest.mark.parametrize(("variables", "taken"), [({}, "1" * 40), ({ORCHESTRATOR: Scene.write_token}, "")])
async def test_the_commit_is_the_head_where_gitlab_can_be_asked(
    tmp_path: Path, variables: dict[str, str], taken: str
) -> None:
    """A pipeline of merged results ran on a commit that nobody pushed."""
    with site(tmp_path) as here:
        event = here.webhook()
        event["object_attributes"]["sha"] = "1" * 40
        done = await here.only(RunRequest(event_file="-"), event, **variables)
    assert done.order.sha == (taken or here.head)


@pytest.mark.thorough
async def test_a_token_that_is_refused_is_no_reason_to_stop_a_run_that_only_reads(tmp_path: Path) -> None:
    """It is not needed."""
    with site(tmp_path) as here:
        done = await here.only(here.direct(), None, **{ORCHESTRATOR: "revoked"})
    assert here.evidence in done.text


@pytest.mark.thorough
async def test_a_webhook_with_a_named_workflow_says_what_to_look_at(tmp_path: Path) -> None:
    with site(tmp_path, trigger=None) as here:
        done = await here.only(here.direct(event=None, event_file="-"), here.webhook())
        with pytest.raises(UsageError, match="--project says other/project"):
            await here.run(RunRequest(workflow=WORKFLOW, project="other/project", event_file="-"), here.webhook())
    assert done.order.mr_iid == here.iid


@pytest.mark.thorough
async def test_a_days_ceiling_holds_for_single_runs_too(tmp_path: Path) -> None:
    """What others have spent today counts, although this session is kept nowhere."""
    with site(tmp_path, budgets={"usd_per_day": 5}) as here:
        record = SqliteSpendingStore(tmp_path / "state" / "sessions" / "spending.sqlite", SystemClock().now)
        await record.add(here.project, Decimal(6))
        done = await here.only(here.direct())
    assert done.result.outcome.reason is EndReason.COST_LIMIT


@pytest.mark.thorough
async def test_findings_stand_below_the_answer(tmp_path: Path) -> None:
    """With a token that may see the diff they are collected, and still nothing is posted."""
    found = {"file": "src/ledger/statements.py", "line": 27, "severity": "major", "text": "The last page is lost."}
    script = Script([Turn(calls=(Call("report_finding", found),)), Turn(text="One finding.")])
    with site(tmp_path, "merge-request-review", inline_findings=True) as here, VendorLab(script) as lab:
        given = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": lab.anthropic_url, ORCHESTRATOR: Scene.write_token}
        done = await here.only(here.direct(model=MODEL), None, **given)
        assert here.written == []
    assert done.text.startswith("One finding.\n\nFindings:")
    assert "The last page is lost." in done.text


async def test_a_run_with_one_answer_of_a_source_has_read_something(tmp_path: Path) -> None:
    with site(tmp_path) as here:
        calls = (Call("gitlab_get_mr_details", {"iid": here.iid}), Call("gitlab_get_mr_commits", {"iid": "none"}))
        with VendorLab(Script([Turn(calls=calls), Turn(text="Nothing to report.")])) as lab:
            given = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": lab.anthropic_url}
            done = await here.only(here.direct(model=MODEL), None, **given)
    assert done.result.coverage.failed == ("gitlab_get_mr_commits",)
    assert done.exit_code == 0
    assert not any("Nothing could be read" in remark for remark in done.remarks)


async def test_what_the_model_is_told_is_what_was_typed(tmp_path: Path) -> None:
    script = Script([Turn(text="Done.")])
    folder = tmp_path / "mine"
    with site(tmp_path) as here, VendorLab(script) as lab:
        given = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": lab.anthropic_url}
        event = here.event(pipeline_id=9, target_branch="main", message="Look closely.")
        await here.only(here.direct(event=event, model=MODEL, save=str(folder)), None, **given)
    lines = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    (said,) = [json.loads(line["text"]) for line in lines if line["kind"] == "user_said"]
    assert [*said][:4] == ["project", "iid", "sha", "session_id"], "the documented ones first"
    assert said.pop("session_id")
    assert said == {
        "workflow": WORKFLOW,
        "project": here.project,
        "iid": here.iid,
        "sha": here.head,
        "pipeline_id": 9,
        "target_branch": "main",
        "message": "Look closely.",
    }
