"""Several things are wanted of one session, or of several at once."""

from pathlib import Path
from typing import Any

import pytest

from hummingbird.core.journal import RunStarted
from hummingbird.gitlab.write.protocol import NoteKind
from hummingbird.lab.fault_injection import FaultGate, Hold
from hummingbird.lab.gitlab.records import AccessToken, Member, User
from hummingbird.lab.gitlab.world import GitLabWorld
from tests.journeys.service.stage import MODEL, staged
from tests.standins.vendors.script import Fault, Turn

PUBLIC = {"internal_notes": False}
NEW_BOT = 93


async def test_a_reply_to_the_placeholder_waits_for_the_result(tmp_path: Path) -> None:
    """All work of one session is done one after the other."""
    gate = FaultGate()
    turns = [Turn(text="Here is the report."), Turn(text="Here is the answer.")]
    async with staged("failing-test", tmp_path, turns=turns) as stage:
        stage.world.faults.plan("*/merge_requests/11/discussions", Hold(gate), method="GET", after=1)
        await stage.begin_case()
        await stage.until(lambda: len(stage.marked()) == 1)
        (placeholder,) = stage.marked()
        await stage.write("hsato", "Are you there?", thread=placeholder.thread)
        gate.open()
        notes = await stage.notes(3)
        started = [one.run_id for one in stage.entries(placeholder.session) if isinstance(one, RunStarted)]
    assert ["report" in notes[1].body, "answer" in notes[2].body] == [True, True]
    assert len(set(started)) == 2


@pytest.mark.thorough
async def test_with_one_slot_two_workflows_run_one_after_the_other(tmp_path: Path) -> None:
    both = {"analyze-failures": {"trigger": "pipeline"}, "look-twice": {"trigger": "pipeline"}}
    async with staged("failing-test", tmp_path, settings={"max_concurrent_agents": 1}, workflows=both) as stage:
        await stage.begin_case()
        notes = await stage.notes(4)
    assert [note.part for note in notes] == [NoteKind.PLACEHOLDER, NoteKind.RESULT] * 2


@pytest.mark.thorough
async def test_a_failed_run_says_so_and_its_commit_is_looked_at_again(tmp_path: Path) -> None:
    """It never began, so a reply could not go on with it: how to start anew is what helps."""
    async with staged("failing-test", tmp_path, settings={"model": MODEL}) as stage:
        await stage.begin_case()
        _, failed = await stage.notes(2)
        await stage.stop()
        stage.configure({}, {"analyze-failures": {"trigger": "pipeline"}})
        await stage.serve()
        await stage.begin_case()
        notes = await stage.notes(4)
    assert failed.part is NoteKind.FAILED
    assert f"This run failed: The model {MODEL} needs an API key: set ANTHROPIC_API_KEY." in failed.body
    assert failed.session in failed.body
    assert "To start over, write `/hummingbird analyze-failures`" in failed.body
    assert "reply in this thread" not in failed.body
    assert [note.part for note in notes[2:]] == [NoteKind.PLACEHOLDER, NoteKind.RESULT]
    assert "LogDifferTest" in notes[3].body


@pytest.mark.thorough
async def test_a_model_that_cannot_be_asked_is_no_reason_to_say_nothing(tmp_path: Path) -> None:
    refused = Fault("status", status=400, type="invalid_request_error", message="this model is gone")
    async with staged("failing-test", tmp_path, turns=[refused]) as stage:
        await stage.begin_case()
        _, result = await stage.notes(2)
    assert stage.scene.case.description["expected"]["evidence"][0] in result.body
    assert "No model could be asked, so rules alone wrote this report" in result.body
    assert "this model is gone" in result.body


@pytest.mark.thorough
async def test_a_thread_of_the_bot_that_there_was_before_goes_on_with_the_new_one(tmp_path: Path) -> None:
    settings: dict[str, Any] = {**PUBLIC, "former_bot_ids": [91]}
    async with staged("failing-test", tmp_path, settings=settings) as stage:
        await stage.begin_case()
        _, result = await stage.notes(2)
        await stage.stop()
        stage.ask(another_bot)
        stage.environment["ORCHESTRATOR_GITLAB_TOKEN"] = "token-of-the-new-bot"
        await stage.serve()
        await stage.write("hsato", "Which line of LogDifferTest is it?", thread=result.thread)
        await stage.until(lambda: len(stage.thread(result.thread).notes) == 4)
        await stage.idle()
        last = stage.thread(result.thread).notes[-1]
    assert last.author_id == NEW_BOT
    assert result.session in last.body


def another_bot(world: GitLabWorld) -> None:
    world.users.append(User(NEW_BOT, "project_311_bot_new", "Hummingbird", bot=True))
    world.project.members[NEW_BOT] = Member(NEW_BOT, 30)
    world.tokens.append(AccessToken("token-of-the-new-bot", NEW_BOT, ("api",)))


@pytest.mark.thorough
async def test_a_signed_webhook_is_taken_and_one_with_another_signature_is_not(tmp_path: Path) -> None:
    signing = "whsec_" + "c2lnbmVkLWJ5LW91ci1naXRsYWItMzItYnl0ZXMhIQ=="
    async with staged("failing-test", tmp_path, begin=False) as stage:
        del stage.environment["HUMMINGBIRD_WEBHOOK_SECRET"]
        stage.environment["HUMMINGBIRD_WEBHOOK_SIGNING_TOKEN"] = signing
        await stage.serve(signing="whsec_" + "YW5vdGhlci1rZXktb2YtdGhpcnR5LXR3by1ieXRlcyE=")
        await stage.begin_case()
        await stage.until(lambda: stage.deliveries()[-1].status == 401)
        await stage.stop()
        await stage.serve(signing=signing)
        await stage.begin_case()
        await stage.notes(2)
