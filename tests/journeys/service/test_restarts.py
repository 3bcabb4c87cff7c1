"""The service ends in the middle of a run and is begun again."""

import asyncio
from pathlib import Path

import pytest

from hummingbird.gitlab.write.protocol import NoteKind
from hummingbird.lab.fault_injection import FaultGate, Hold
from tests.journeys.service.stage import Stage, staged
from tests.standins.vendors.script import Call, Turn

LONG = Turn(calls=(Call("sandbox_exec", {"command": "sleep 60"}),))


def runs(stage: Stage, times: int = 1) -> bool:
    """Whether the long command was begun so often, by the journal."""
    written = [one.read_text() for one in (stage.folder / "state" / "sessions").glob("*/journal.jsonl")]
    return sum(text.count('"kind":"tool_started"') for text in written) == times


async def test_a_parked_run_goes_on_in_the_next_process_with_one_placeholder_and_one_result(
    tmp_path: Path,
) -> None:
    """Not a turn is paid for twice."""
    async with staged("failing-test", tmp_path, turns=[LONG, Turn(text="The parser is too strict.")]) as stage:
        await stage.begin_case()
        await stage.until(lambda: runs(stage))
        await stage.stop(park=True)
        assert [note.part for note in stage.marked()] == [NoteKind.PLACEHOLDER]
        await stage.serve()
        placeholder, result = await stage.notes(2)
    assert placeholder.thread == result.thread
    assert "The parser is too strict." in result.body


@pytest.mark.thorough
async def test_twice_parked_is_still_one_placeholder_and_one_result(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path, turns=[LONG, LONG, Turn(text="The parser is too strict.")]) as stage:
        await stage.begin_case()
        await stage.until(lambda: runs(stage))
        await stage.stop(park=True)
        await stage.serve()
        await stage.until(lambda: runs(stage, 2))
        await stage.stop(park=True)
        await stage.serve()
        notes = await stage.notes(2)
    assert [note.part for note in notes] == [NoteKind.PLACEHOLDER, NoteKind.RESULT]


@pytest.mark.thorough
async def test_one_stop_lets_a_run_end(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path) as stage:
        gate = FaultGate()
        stage.world.faults.plan("*/jobs/*/trace", Hold(gate), method="GET")
        await stage.begin_case()
        await stage.until(gate.reached.is_set)
        stopping = asyncio.create_task(stage.stop())
        await asyncio.sleep(0)  # the stop has begun
        gate.open()
        await stopping
        assert [note.part for note in stage.marked()] == [NoteKind.PLACEHOLDER, NoteKind.RESULT]


@pytest.mark.thorough
async def test_notes_that_became_internal_meanwhile_keep_the_result_out_of_the_public_thread(
    tmp_path: Path,
) -> None:
    turns = [LONG, Turn(text="The parser is too strict.")]
    async with staged("failing-test", tmp_path, settings={"internal_notes": False}, turns=turns) as stage:
        await stage.begin_case()
        await stage.until(lambda: runs(stage))
        await stage.stop(park=True)
        stage.configure({"internal_notes": True}, {"analyze-failures": {"trigger": "pipeline"}})
        await stage.serve()
        placeholder, result = await stage.notes(2)
    assert (placeholder.internal, result.internal) == (False, True)
    assert placeholder.thread != result.thread
    assert "The parser is too strict." in result.body
