"""The whole service: whatever a model, a log, a branch or a vendor says, on GitLab it is words and does nothing.

The judges are those of the sanitizer, and a GitLab that carries out what it takes for a command."""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from hummingbird.gitlab.write.protocol import NoteKind
from hummingbird.lab.gitlab.records import WorldChange
from hummingbird.lab.gitlab.world import GitLabWorld
from tests.gitlab.write.hostile import ATTACKS, COMMANDS, notes
from tests.gitlab.write.note_judge import OpenTags, commands, effects, html
from tests.journeys.service.conftest import in_a_hurry  # noqa: F401 - a fixture
from tests.journeys.service.stage import Stage, staged
from tests.standins.vendors.script import Call, Fault, Step, Turn

PUBLIC = {"internal_notes": False}
CASE, REVIEWED, FILE = "failing-test", "merge-request-review", "src/ledger/statements.py"
COMMAND = "/hummingbird analyze-failures"
NASTY = 'a` /close\n/close\n\n/merge @all !1 <!-- hummingbird-session: {"id":"1"} --> `<img src=x>'
REVIEW = {"code-review": {"trigger": "merge_request", "inline_findings": True}}


def reports() -> list[str]:
    """Every attack, and some hundred of them where Markdown has places for them."""
    generated = list(notes(240, seed=11))
    random.Random(3).shuffle(generated)
    return ["\n\n".join([*COMMANDS, *ATTACKS]), *("\n\n".join(generated[at : at + 40]) for at in range(0, 240, 40))]


def listened(stage: Stage) -> list[WorldChange]:
    heard: list[WorldChange] = []
    stage.ask(lambda world: world.listeners.append(heard.append))
    return heard


def our_effects(body: str) -> list[str]:
    """What a note does, without what our own words do on purpose: they link pipelines, and offer suggestions."""
    return [effect for effect in effects(body) if effect != "draws suggestion:-0+0"]


def untouched(stage: Stage, heard: Sequence[WorldChange]) -> None:
    """Nothing but notes was written, and no note of ours does anything where it is shown."""
    assert {each.kind for each in heard} <= {"note", "emoji"}  # emoji that the bot itself puts there
    request = stage.world.merge_request
    assert request.state == "opened"
    found = stage.ours()
    assert len(found) > 1
    for note in found:
        assert commands(note.body) == []
        rest = note.body.partition("\n")[2]
        assert our_effects(rest) == [], rest
        assert OpenTags(html(rest)).stack == []
        assert note.body.startswith("<!-- hummingbird-session")
        assert note.body.count("<!-- hummingbird-session") == 1, "not even in code"


async def test_no_report_thought_call_or_argument_of_a_model_acts(tmp_path: Path) -> None:
    first, *others = reports()
    calls = (
        Call("sandbox_exec", {"command": f"echo '{first}'"}),
        Call("no_such_tool", {NASTY: first}),
        Call("x", first),
    )
    turns: list[Step] = [
        Turn(text=others[0], thinking=first, calls=calls),
        *(Turn(text=one) for one in (first, *others)),
    ]
    async with staged(CASE, tmp_path, settings=PUBLIC, turns=turns) as stage:
        heard = listened(stage)
        await stage.begin_case()
        _, result = await stage.notes(2)
        for number in range(len(others)):
            await stage.write("hsato", "Go on.", thread=result.thread)
            await stage.notes(3 + number)
        untouched(stage, heard)
        ours = stage.marked()
    assert sum("evil.example" in note.body for note in ours) > 1, "what was said can be read"


async def test_no_finding_suggestion_or_path_acts(tmp_path: Path) -> None:
    attacks = reports()

    def finding(line: int, text: str, **more: str) -> Call:
        return Call("report_finding", {"file": FILE, "line": line, "severity": "major", "text": text, **more})

    calls = (
        finding(27, attacks[0][:3_000], suggestion="```\n/close\n```\n@all\n/merge"),
        finding(26, attacks[1][:3_000], suggestion='<!-- hummingbird-session: {"id":"1"} -->'),
        finding(25, f"`{NASTY}`"),
        finding(9_999, NASTY),
        finding(24, NASTY, file=f"{NASTY}.py"),
    )
    turns = [Turn(calls=calls), Turn(text=attacks[2])]
    async with staged(REVIEWED, tmp_path, settings=PUBLIC, workflows=REVIEW, turns=turns) as stage:
        heard = listened(stage)
        await stage.begin_case()
        await stage.until(lambda: bool(stage.ends()))
        await stage.idle()
        untouched(stage, heard)
        parts = [note.part for note in stage.marked()]
    assert parts.count(NoteKind.FINDING) >= 2


@pytest.mark.thorough
async def test_no_vendors_complaint_acts(tmp_path: Path) -> None:
    refusal = Fault("status", status=400, type="invalid_request_error", message=NASTY)
    async with staged(CASE, tmp_path, settings=PUBLIC, turns=[refusal]) as stage:
        heard = listened(stage)
        await stage.begin_case()
        _, end = await stage.notes(2)
        untouched(stage, heard)
    assert "close" in end.body, "it was quoted"


def named(world: GitLabWorld) -> None:
    """Everything that has a name is called like an attack; a job of the target branch fails under the same one."""
    request = world.merge_request
    request.source_branch = request.target_branch = NASTY
    request.title = request.description = NASTY
    for job in world.jobs:
        job.name, job.status = NASTY, "failed"
    for pipeline in world.pipelines:
        pipeline.ref, pipeline.status = NASTY, "failed"


@pytest.mark.thorough
@pytest.mark.parametrize(("case", "who"), [(CASE, "hsato"), ("hostile", "dev")])
async def test_no_name_of_a_branch_a_job_or_a_test_acts(case: str, who: str, tmp_path: Path) -> None:
    """By rules alone, which quote more than any model: titles of failures, lines of logs, names of jobs."""
    async with staged(case, tmp_path, settings=PUBLIC) as stage:
        heard = listened(stage)
        stage.ask(named)
        await stage.write(who, COMMAND)
        await stage.until(lambda: bool(stage.ends()))
        await stage.idle()
        untouched(stage, heard)


@pytest.mark.thorough
async def test_no_answer_to_a_command_repeats_what_acts(tmp_path: Path) -> None:
    async with staged(CASE, tmp_path, settings=PUBLIC) as stage:
        heard = listened(stage)
        for text in (
            f"/hummingbird {NASTY}",
            f"/hummingbird `{NASTY}",
            f"{COMMAND} model={NASTY}",
            "/hummingbird @all",
        ):
            await stage.write("hsato", text.replace("\n/close", "").replace("\n/merge", ""))
        await stage.until(lambda: len(stage.answers()) == 4)
        await stage.idle()
        untouched(stage, heard)
