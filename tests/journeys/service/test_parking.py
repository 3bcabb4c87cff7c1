"""The service ends at the worst moment: GitLab has carried a write out, and nobody hears of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hummingbird.gitlab.write.protocol import NoteKind
from hummingbird.lab.fault_injection import FaultGate, Hold
from tests.journeys.service.stage import Stage, staged
from tests.standins.vendors.script import Call, Step, Turn
from tests.thoroughly import also

FINDING = {"file": "src/ledger/statements.py", "line": 27, "severity": "major", "text": "The last page is lost."}
RESULT = [NoteKind.PLACEHOLDER, NoteKind.RESULT]


@dataclass(frozen=True)
class Journey:
    """`writes`: how often it writes to GitLab. `turns` None: the model is `digest`. `asks`: what a person writes, as a
    comment or, with a report there already, as a reply."""

    writes: int
    parts: list[NoteKind]
    case: str = "failing-test"
    workflow: str = "analyze-failures"
    trigger: str = "pipeline"
    turns: tuple[Step, ...] | None = None
    asks: str = ""
    reply: bool = False

    @property
    def workflows(self) -> Mapping[str, Mapping[str, Any]]:
        return {self.workflow: {"trigger": self.trigger, "inline_findings": self.turns is not None}}


JOURNEYS = {
    "pipeline": Journey(2, RESULT),
    "command": Journey(2, RESULT, asks="/hummingbird analyze-failures"),
    "reply": Journey(2, [*RESULT, NoteKind.RESULT], asks="Which line of LogDifferTest is it?", reply=True),
    "review": Journey(
        3,
        [NoteKind.PLACEHOLDER, NoteKind.FINDING, NoteKind.RESULT],
        "merge-request-review",
        "code-review",
        "merge_request",
        (Turn(calls=(Call("report_finding", FINDING),)), Turn(text="One defect.")),
    ),
}


async def begin(stage: Stage, journey: Journey, gate: FaultGate, write: int) -> None:
    """Until that write was carried out."""
    thread = ""
    if journey.reply:
        await stage.begin_case()
        thread = (await stage.notes(2))[0].thread
    passing = write + 1 if journey.asks else write  # the person's own is one
    stage.world.faults.plan("/api/*", Hold(gate), method="POST", after=passing, after_write=True)
    if journey.asks:
        await stage.write("hsato", journey.asks, thread=thread)
    else:
        await stage.begin_case()
    await stage.until(gate.reached.is_set)


@pytest.mark.parametrize(
    ("name", "write"),
    [also(name, write) if write else (name, write) for name, one in JOURNEYS.items() for write in range(one.writes)],
)
async def test_whatever_write_is_on_the_way_when_it_ends_is_there_once_afterwards(
    name: str, write: int, tmp_path: Path
) -> None:
    journey, gate = JOURNEYS[name], FaultGate()
    public, turns = {"internal_notes": False}, journey.turns
    async with staged(journey.case, tmp_path, settings=public, workflows=journey.workflows, turns=turns) as stage:
        await begin(stage, journey, gate, write)
        await stage.stop(park=True)
        await stage.serve()
        notes = await stage.notes(len(journey.parts))
        assert stage.answers() == []
    assert [note.part for note in notes] == journey.parts
    assert len({note.session for note in notes}) == 1
