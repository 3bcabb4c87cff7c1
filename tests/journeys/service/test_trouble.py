"""GitLab fails, limits or says nothing, and every note is there once."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hummingbird.core.limits import FORGE_ATTEMPTS, NOTE_WRITES
from hummingbird.gitlab.write.project_writer import GitLabProjectWriters
from hummingbird.gitlab.write.protocol import NoteKind
from hummingbird.lab.fault_injection import DropConnection, Fault, Slow
from hummingbird.lab.gitlab.error_responses import rack_attack_fault, rate_limit_fault, server_error_fault
from tests.journeys.service.stage import staged
from tests.standins.vendors.script import Turn
from tests.thoroughly import also

ONCE = [NoteKind.PLACEHOLDER, NoteKind.RESULT]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that takes longer is none."""
    monkeypatch.setattr(
        "hummingbird.app.gitlab_write.GitLabProjectWriters", partial(GitLabProjectWriters, answer_s=0.5)
    )


@pytest.mark.parametrize(
    ("fault", "written"),
    [
        (rack_attack_fault(retry_after_s=1), False),
        also(rate_limit_fault(), False),
        also(server_error_fault(502), False),
        (server_error_fault(502), True),
        also(server_error_fault(500), True),
        (DropConnection(), False),
        (DropConnection(), True),
    ],
    ids=["429-with-time", "429", "502-before", "502-after", "500-after", "drop-before", "drop-after"],
)
async def test_whatever_befalls_a_write_there_is_one_placeholder_and_one_result(
    fault: Fault, written: bool, tmp_path: Path
) -> None:
    async with staged("failing-test", tmp_path) as stage:
        plan = stage.world.faults.plan
        plan("*/merge_requests/11/notes", fault, method="POST", after_write=written)
        plan("*/discussions/*/notes", fault, method="POST", after_write=written)
        await stage.begin_case()
        notes = await stage.notes(2)
    assert [note.part for note in notes] == ONCE
    assert notes[0].thread == notes[1].thread


@pytest.mark.thorough
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("written", [also(False), True], ids=["before", "after"])
async def test_a_gitlab_that_says_nothing_to_writes_gets_each_note_once(written: bool, tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path) as stage:
        plan = stage.world.faults.plan
        plan("*/merge_requests/11/notes", Slow(60.0), method="POST", after_write=written)
        plan("*/discussions/*/notes", Slow(60.0), method="POST", after_write=written)
        await stage.begin_case()
        notes = await stage.notes(2)
    assert [note.part for note in notes] == ONCE


@pytest.mark.thorough
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    "fault",
    [
        also(rack_attack_fault(1)),
        also(rate_limit_fault()),
        server_error_fault(503),
        also(DropConnection()),
        also(Slow(60.0)),
    ],
)
async def test_reads_that_fail_now_and_then_are_tried_again(fault: Fault, tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path) as stage:
        for path in ("*/user", "*/merge_requests/11", "*/members/all/*", "*/merge_requests/11/discussions"):
            stage.world.faults.plan(path, fault, method="GET")
        await stage.begin_case()
        notes = await stage.notes(2)
    assert [note.part for note in notes] == ONCE


@pytest.mark.thorough
async def test_a_gitlab_that_is_down_for_long_is_asked_again_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Five tries of one request are one of the message's, and what waits for GitLab loses none."""
    async with staged("failing-test", tmp_path) as stage:
        stage.world.faults.plan("*/merge_requests/11", server_error_fault(503), times=10, method="GET")
        await stage.begin_case()
        notes = await stage.notes(2)
    assert [note.part for note in notes] == ONCE
    assert "waits 1 s for GitLab" in caplog.text


@pytest.mark.thorough
async def test_a_gitlab_that_goes_away_when_the_result_is_ready_gets_it_when_it_is_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """For longer than three tries last; the model is not asked again, for its script has one turn alone."""

    def away(_: dict[str, Any]) -> Turn:
        stage.world.faults.plan("*/merge_requests/11*", server_error_fault(503), times=4 * FORGE_ATTEMPTS, method="GET")
        return Turn(text="The parser is too strict.")

    async with staged("failing-test", tmp_path, turns=[away]) as stage:
        await stage.begin_case()
        placeholder, result = await stage.notes(2)
        assert stage.dead() == 0
    assert placeholder.thread == result.thread
    assert result.part is NoteKind.RESULT
    assert "The parser is too strict." in result.body
    assert caplog.text.count("waits 1 s for GitLab") == 4


@pytest.mark.thorough
async def test_a_result_that_is_told_late_still_says_what_is_known_about_its_failures(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path, settings={"internal_notes": False}) as stage:
        stage.world.faults.plan("*/discussions/*/notes", server_error_fault(502), times=NOTE_WRITES, method="POST")
        await stage.begin_case()
        _, result = await stage.notes(2)
    assert "not seen before in this project" in result.body


@pytest.mark.thorough
async def test_an_emoji_that_cannot_be_put_there_is_no_reason_not_to_answer(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path) as stage:
        await stage.begin_case()
        _, result = await stage.notes(2)
        stage.world.faults.plan("*/award_emoji", server_error_fault(500), times=5, method="POST")
        await stage.write("hsato", "Which line of LogDifferTest?", thread=result.thread)
        await stage.notes(3)
