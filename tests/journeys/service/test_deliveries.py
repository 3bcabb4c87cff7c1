"""Webhooks that come twice, late, or in another order."""

from pathlib import Path

import pytest

from hummingbird.lab.gitlab.webhook_delivery import webhook_sender
from hummingbird.lab.gitlab.webhook_events import change_from_declaration
from hummingbird.lab.gitlab.world import GitLabWorld
from tests.journeys.service.stage import Stage, staged
from tests.standins.vendors.script import Turn

RESOLVING = {"analyze-failures": {"trigger": "pipeline", "auto_resolve_on_success": True, "auto_resolve_on_push": True}}


def resend(stage: Stage, at: int) -> None:
    def again(world: GitLabWorld) -> None:
        hooks = webhook_sender(world)
        hooks.resend(hooks.deliveries[at])

    stage.ask(again)


def told_as(stage: Stage, status: str) -> None:
    """The pipeline's event as it was while it had that status."""

    def tell(world: GitLabWorld) -> None:
        change = change_from_declaration(world, stage.scene.case.description["event"])
        now, change.subject.status = change.subject.status, status
        webhook_sender(world)(change)
        change.subject.status = now

    stage.ask(tell)


async def test_the_same_webhook_five_times_is_one_report(tmp_path: Path) -> None:
    """With its key, as somebody who presses the button in GitLab, and without, as GitLab tells of it again."""
    async with staged("failing-test", tmp_path) as stage:
        await stage.begin_case()
        for _ in range(4):
            resend(stage, 0)
        for _ in range(4):
            await stage.begin_case()
        await stage.notes(2)
        resend(stage, 0)
        await stage.begin_case()
        await stage.idle()
        await stage.notes(2)
        answers = [one.status for one in stage.deliveries()]
    assert len(answers) >= 11
    assert all(status is not None and status < 300 for status in answers)


@pytest.mark.thorough
async def test_events_out_of_order_are_one_report_which_stays_open_while_the_head_is_red(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path, workflows=RESOLVING) as stage:
        for status in ("success", "running", "failed", "pending", "success", "failed", "success"):
            told_as(stage, status)
        notes = await stage.notes(2)
        told_as(stage, "success")
        await stage.idle()
        assert not any(note.resolved for note in await stage.notes(2))
    assert len({note.session for note in notes}) == 1


@pytest.mark.thorough
async def test_a_command_that_is_delivered_again_is_carried_out_once(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path) as stage:
        note, _ = await stage.write("hsato", "/hummingbird analyze-failures")
        for _ in range(3):
            stage.happens({"kind": "note", "note": note})
        await stage.notes(2)
        stage.happens({"kind": "note", "note": note})
        await stage.idle()
        await stage.notes(2)


@pytest.mark.thorough
async def test_help_that_is_asked_for_once_and_delivered_again_is_given_once(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path) as stage:
        note, _ = await stage.write("hsato", "/hummingbird help")
        for _ in range(3):
            stage.happens({"kind": "note", "note": note})
        await stage.until(lambda: bool(stage.answers()))
        await stage.idle()
        assert len(stage.ours()) == 1


@pytest.mark.thorough
async def test_an_event_that_is_too_large_for_the_queue_travels_by_reference(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path, turns=[Turn(text="It was the parser.")]) as stage:
        await stage.write("hsato", "/hummingbird analyze-failures Is it this? " + "ü" * 900_000)
        _, result = await stage.notes(2)
        asked = str(stage.lab.requests[0].body["messages"]) if stage.lab else ""
        (largest, *_) = sorted((len(one.body) for one in stage.deliveries()), reverse=True)
    assert largest > 1024 * 1024
    assert "It was the parser." in result.body
    assert "Is it this? üüü" in asked
    assert "The rest of this note was left out" in asked
    left = [file for file in (tmp_path / "state").rglob("*") if file.is_file() and file.stat().st_size > 1024 * 1024]
    assert [file.name for file in left if not file.name.startswith("queue.sqlite")] == []
