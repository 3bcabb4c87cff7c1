"""`hummingbird run --execute`: the whole way that an event goes in `serve`, on demand."""

from dataclasses import replace
from pathlib import Path

import pytest

from hummingbird.app.run_request import FinishedRun, NothingToRun, RunRequest
from hummingbird.core.errors import EventUnreadable, GitLabNotFound, MissingSetting, UnknownModel
from hummingbird.core.journal import EndReason
from hummingbird.core.limits import FORGE_ATTEMPTS
from hummingbird.gitlab.write.client import WRITE_POLICY
from hummingbird.lab.fault_injection import FaultResponse
from hummingbird.lab.gitlab.error_responses import rate_limit_fault
from hummingbird.lab.scene import Scene
from tests.app.conducting import MODEL
from tests.app.running_on import FILES, LOOKS_TOO, ORCHESTRATOR, WORKFLOW, site
from tests.standins.vendors.script import Fault, Script, Turn
from tests.standins.vendors.server import VendorLab

WRITER = {ORCHESTRATOR: Scene.write_token}


async def test_a_named_workflow_is_told_on_the_merge_request(tmp_path: Path) -> None:
    """A placeholder, a result, and the session where `serve` keeps them."""
    with site(tmp_path) as here:
        done = await here.only(here.direct(event=f'{{"iid": {here.iid}}}', execute=True), None, **WRITER)
        placeholder, result = here.notes
    assert here.evidence in done.text
    assert here.evidence in result
    assert done.order.sha == here.head, "as GitLab says"
    assert here.head in placeholder
    assert done.posted == here.url
    kept = tmp_path / "state" / "sessions" / done.order.session_id
    assert sorted(file.name for file in kept.iterdir()) == [*FILES]


async def test_what_is_printed_names_the_failure_as_the_note_does(tmp_path: Path) -> None:
    """Also if the model itself has read no log: what rules saw before is part of the result."""
    with site(tmp_path) as here, VendorLab(Script([Turn(text="It broke."), Turn(text="It broke.")])) as lab:
        given = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": lab.anthropic_url, **WRITER}
        posted = await here.only(here.direct(model=MODEL, execute=True), None, **given)
        printed = await here.only(here.direct(model=MODEL), None, **given)
        note = here.notes[-1]
    fence = next(block for block in posted.text.split("\n\n") if block.startswith("```text"))
    assert here.evidence in fence
    assert fence in note
    assert fence in printed.text


@pytest.mark.thorough
async def test_a_webhook_goes_the_whole_way_as_often_as_somebody_wants(tmp_path: Path) -> None:
    """Neither its status nor what was told about this commit, nor a limit, is in the way."""
    with site(tmp_path, second=True, max_runs_per_mr=1) as here:
        event = here.webhook()
        event["object_attributes"]["status"] = "running"
        for _ in range(2):
            done = await here.run(RunRequest(event_file="-", execute=True), event, **WRITER)
            assert [one.order.workflow for one in done if isinstance(one, FinishedRun)] == [WORKFLOW, LOOKS_TOO]
        assert len(here.notes) == 8


@pytest.mark.thorough
async def test_what_is_executed_can_be_saved_too(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    with site(tmp_path) as here:
        done = await here.only(here.direct(execute=True, save=str(folder)), None, **WRITER)
    assert done.saved == folder
    assert sorted(file.name for file in folder.iterdir()) == [*FILES]


async def test_nothing_begun_has_its_reason_from_the_service(tmp_path: Path) -> None:
    """Whoever caused it must be a developer, also if somebody replays it."""
    with site(tmp_path) as here:
        event = here.webhook()
        event["user"] = {"id": 13, "username": "jonas"}
        (done,) = await here.run(RunRequest(event_file="-", execute=True), event, **WRITER)
        assert here.written == []
    assert done == NothingToRun("jonas is not a developer of the project")


async def test_without_a_token_that_writes_nothing_begins(tmp_path: Path) -> None:
    with site(tmp_path) as here:
        with pytest.raises(MissingSetting, match=ORCHESTRATOR):
            await here.run(here.direct(execute=True))
        with pytest.raises(MissingSetting, match=ORCHESTRATOR):
            await here.run(RunRequest(event_file="-", execute=True), here.webhook())


async def test_what_cannot_be_run_is_said_before_anything_is_posted(tmp_path: Path) -> None:
    with site(tmp_path) as here:
        with pytest.raises(UnknownModel):
            await here.run(here.direct(execute=True, model="nobody:nothing"), None, **WRITER)
        with pytest.raises(GitLabNotFound):
            await here.run(here.direct(execute=True, event='{"iid": 99999}'), None, **WRITER)
        with pytest.raises(EventUnreadable):
            await here.run(RunRequest(event_file="-", execute=True), {"iid": 7}, **WRITER)
        assert here.written == []


@pytest.mark.thorough
async def test_the_model_that_was_typed_overrules_the_configuration(tmp_path: Path) -> None:
    """For events too; and what could not be begun with is told to the person and in the thread."""
    with site(tmp_path, model="anthropic:claude-sonnet-5-5") as here:
        with pytest.raises(MissingSetting, match="ANTHROPIC"):
            await here.run(RunRequest(event_file="-", execute=True), here.webhook(), **WRITER)
        assert "This run failed" in here.notes[1]
        done = await here.only(RunRequest(event_file="-", execute=True, model="digest"), here.webhook(), **WRITER)
    assert done.result.model == "digest"


async def test_a_review_that_the_provider_refuses_exits_with_1(tmp_path: Path) -> None:
    refused = Fault("status", status=403, type="permission_error")
    model = "anthropic:claude-sonnet-5-5"
    with (
        VendorLab(Script([refused])) as lab,
        site(tmp_path, "merge-request-review", trigger="merge_request", model=model) as here,
    ):
        key = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": lab.anthropic_url}
        done = await here.only(here.direct(execute=True), None, **WRITER, **key)
        assert '"part":"failed"' in here.notes[1]
    assert (done.exit_code, done.result.outcome.reason) == (1, EndReason.MODEL_ERROR)


@pytest.mark.thorough
async def test_an_answer_that_cannot_be_posted_is_printed_nevertheless(tmp_path: Path) -> None:
    with site(tmp_path) as here:
        refused = FaultResponse(400, {"message": "400 Bad request"})
        here.scene.worlds.gitlab.faults.plan("*/discussions/*/notes", refused, method="POST")
        done = await here.only(here.direct(execute=True), None, **WRITER)
    assert here.evidence in done.text
    assert (done.posted, done.exit_code) == ("", 1)
    assert any("could not be posted" in sentence for sentence in done.remarks)


@pytest.mark.thorough
async def test_what_gitlab_takes_no_note_of_now_is_not_called_posted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`serve` would look again later; here nobody would."""
    monkeypatch.setattr("hummingbird.gitlab.write.client.WRITE_POLICY", replace(WRITE_POLICY, first_pause_s=0.01))
    with site(tmp_path) as here:
        here.scene.worlds.gitlab.faults.plan(
            "*/discussions/*/notes", rate_limit_fault(), times=FORGE_ATTEMPTS, method="POST"
        )
        done = await here.only(here.direct(execute=True), None, **WRITER)
    assert here.evidence in done.text
    assert (done.posted, done.exit_code) == ("", 1)
    assert any("GitLab's rate limit is reached" in sentence for sentence in done.remarks)
