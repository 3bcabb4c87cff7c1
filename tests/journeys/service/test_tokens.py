"""A credential stops working in the middle of it all."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from hummingbird.gitlab.write.protocol import NoteKind
from hummingbird.lab.fault_injection import FaultResponse
from tests.journeys.service.stage import Stage, staged
from tests.standins.vendors.script import Turn


async def retry_all(stage: Stage) -> None:
    """As an operator types it, in a process beside the service."""
    typed = ("-m", "hummingbird", "queue", "retry", "--all", "--config", str(stage.file))
    process = await asyncio.create_subprocess_exec(sys.executable, *typed, env=stage.environment)
    assert await process.wait() == 0


async def test_a_result_that_could_not_be_posted_appears_once_when_the_token_works_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The model is not asked again."""

    def revoked(_: dict[str, Any]) -> Turn:
        stage.token_is(stage.scene.write_token, "expired")
        return Turn(text="The parser is too strict.")

    async with staged("failing-test", tmp_path, turns=[revoked]) as stage:
        await stage.begin_case()
        await stage.until(lambda: stage.dead() == 1)
        assert [note.part for note in stage.marked()] == [NoteKind.PLACEHOLDER]
        stage.token_is(stage.scene.write_token, "active")
        await retry_all(stage)
        placeholder, result = await stage.notes(2)
        await stage.begin_case()
        await stage.idle()
        await stage.notes(2)
    assert placeholder.thread == result.thread
    assert result.part is NoteKind.RESULT
    assert "The parser is too strict." in result.body
    assert stage.scene.write_token not in caplog.text
    assert "put it into the orchestrator token's variable" in caplog.text


@pytest.mark.thorough
async def test_another_event_for_the_same_commit_tells_the_result_that_could_not_be_posted(tmp_path: Path) -> None:
    """Without asking the model again; what was put aside finds nothing left to do."""

    def revoked(_: dict[str, Any]) -> Turn:
        stage.token_is(stage.scene.write_token, "expired")
        return Turn(text="The parser is too strict.")

    async with staged("failing-test", tmp_path, turns=[revoked]) as stage:
        await stage.begin_case()
        await stage.until(lambda: stage.dead() == 1)
        stage.token_is(stage.scene.write_token, "active")
        await stage.begin_case()
        placeholder, result = await stage.notes(2)
        (letter,) = await stage.serving.queue.list_dead_letters()
        await stage.serving.queue.retry_dead_letter(letter.id)
        await stage.idle()
        await stage.notes(2)
    assert placeholder.thread == result.thread
    assert result.part is NoteKind.RESULT
    assert "The parser is too strict." in result.body


@pytest.mark.thorough
async def test_an_event_that_came_while_the_token_was_bad_is_not_lost(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path) as stage:
        stage.token_is(stage.scene.write_token, "expired")
        await stage.begin_case()
        await stage.until(lambda: stage.dead() == 1)
        stage.token_is(stage.scene.write_token, "active")
        (letter,) = await stage.serving.queue.list_dead_letters()
        await stage.serving.queue.retry_dead_letter(letter.id)
        await stage.notes(2)


@pytest.mark.thorough
async def test_with_a_tool_token_that_is_refused_the_note_says_what_could_not_be_read(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path) as stage:
        stage.token_is(stage.scene.read_token, "expired")
        await stage.begin_case()
        _, end = await stage.notes(2)
    assert "What could not be read" in end.body
    assert "whoever runs this must renew it" in end.body
    assert stage.scene.read_token not in end.body


@pytest.mark.thorough
async def test_with_a_tool_token_that_is_refused_half_way_the_note_has_what_was_found_until_then(
    tmp_path: Path,
) -> None:
    async with staged("failing-test", tmp_path) as stage:
        for path in ("*/test_report", "*/raw_diffs"):
            stage.world.faults.plan(path, FaultResponse(401, {"message": "401 Unauthorized"}))
        await stage.begin_case()
        _, end = await stage.notes(2)
    assert stage.scene.case.description["expected"]["evidence"][0] in end.body
    assert "`gitlab_get_test_report`" in end.body[end.body.index("What could not be read") :]
