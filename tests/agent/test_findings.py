"""`report_finding`: what it takes, what it tells the model, and what a journal knows of it afterwards."""

import json
from typing import Any

import pytest

from hummingbird.agent.tools.finding_report import NAME, SPEC, ReportFindingTool, findings_from_entries
from hummingbird.agent.tools.registry import Toolbox
from hummingbird.core.diffs import Diff, FileDiff
from hummingbird.core.errors import ArgumentsInvalid, CallDenied
from hummingbird.core.findings import PostedFinding, ReviewFinding, Severity, finding_fingerprint
from hummingbird.core.journal import JournalEntry, RunStarted, ToolFinished, ToolOutcome, ToolStarted
from hummingbird.core.limits import FINDINGS, SUGGESTION_LINES
from hummingbird.core.protocols.tools import ToolContext
from hummingbird.core.tool_spec import ToolEffect
from tests.agent.stage import results_in, stage
from tests.standins.scripted_model import ScriptedModel, text_reply, tool_call_reply

TEXT = "@@ -10,3 +10,3 @@ def run():\n keep = 1\n-old = compute(first)\n+new = compute(second)\n last = 3\n"
DIFF = Diff(
    [
        FileDiff(old_path="was.py", new_path="app.py", text=TEXT),
        FileDiff(old_path="gone.py", new_path="gone.py", text="@@ -1 +0,0 @@\n-gone\n"),
        FileDiff(old_path="big.bin", new_path="big.bin", text=""),
    ]
)
GIVEN = {"file": "app.py", "line": 11, "severity": "major", "text": "This computes the wrong one."}
FINDING = ReviewFinding(path="app.py", line=11, severity=Severity.MAJOR, text="This computes the wrong one.")
CONTEXT = ToolContext("session-1", "call-1")


async def reported(tool: ReportFindingTool, **given: Any) -> Any:
    prepared = Toolbox([tool]).validate(SPEC, {**GIVEN, **given})
    return await tool(prepared, CONTEXT)


def in_a_journal(
    call_id: str, arguments: str, outcome: ToolOutcome = ToolOutcome.OK, name: str = NAME
) -> list[JournalEntry]:
    return [
        ToolStarted(call_id=call_id, name=name, arguments=arguments),
        ToolFinished(call_id=call_id, name=name, text="…", outcome=outcome),
    ]


async def test_a_finding_on_a_line_of_the_diff_is_collected() -> None:
    tool = ReportFindingTool(DIFF)
    assert await reported(tool) == f"Noted as finding 1 of at most {FINDINGS}."
    await reported(tool, file="./app.py", line=12, severity="nit", text=" Odd.\n", suggestion="last = 4\n")
    await reported(tool, file="was.py", side="old", text="Why is it gone?")
    assert tool.findings == (
        FINDING,
        ReviewFinding(path="app.py", line=12, severity=Severity.NIT, text="Odd.", suggestion="last = 4"),
        ReviewFinding(path="was.py", line=11, severity=Severity.MAJOR, text="Why is it gone?", old=True),
    )


def test_it_changes_nothing_so_it_may_run_beside_others() -> None:
    assert SPEC.effects == {ToolEffect.READ}
    assert not SPEC.runs_alone


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"line": 40}, "The nearest lines that can carry a finding: 10, 11, 12."),
        ({"line": 13, "side": "old"}, "The nearest lines that can carry a finding: 10, 11, 12."),
        ({"file": "gone.py", "line": 1}, "The old side has a line with that number: give side old if you mean it."),
        ({"file": "big.bin", "line": 1}, "None of the new side can carry a finding; say it in your answer."),
        ({"file": "elsewhere.py"}, "The diff has no such file."),
        ({"side": "old", "suggestion": "x"}, "A line that is removed cannot have a suggestion"),
        ({"suggestion": "x\n" * (SUGGESTION_LINES + 1)}, f"A suggestion has at most {SUGGESTION_LINES} lines"),
    ],
)
async def test_a_place_that_cannot_carry_it_is_told_with_those_that_can(given: dict[str, Any], told: str) -> None:
    tool = ReportFindingTool(DIFF)
    with pytest.raises(ArgumentsInvalid) as caught:
        await reported(tool, **given)
    assert told in str(caught.value)
    assert tool.findings == ()


@pytest.mark.parametrize(
    "given", [{"severity": "critical"}, {"text": " \n"}, {"line": 0}, {"side": "left"}, {"file": ""}, {"column": 3}]
)
async def test_what_is_no_finding_does_not_fit_the_schema(given: dict[str, Any]) -> None:
    with pytest.raises(ArgumentsInvalid, match="do not fit its schema"):
        await reported(ReportFindingTool(DIFF), **given)


@pytest.mark.parametrize(("resolved", "told"), [(True, "was resolved by somebody"), (False, "is still open")])
async def test_what_was_reported_before_is_not_repeated_and_what_was_resolved_stays_so(
    resolved: bool, told: str
) -> None:
    known = finding_fingerprint(FINDING, "new = compute(second)")
    tool = ReportFindingTool(DIFF, [PostedFinding(path="app.py", line=200, fingerprint=known, resolved=resolved)])
    with pytest.raises(CallDenied, match=told):
        await reported(tool, text="In other words, but of the same line.")
    assert tool.findings == ()


@pytest.mark.parametrize("name", ["was.py", "app.py"])
async def test_a_renamed_file_is_the_same_under_either_name(name: str) -> None:
    removed = ReviewFinding(path="app.py", line=11, severity=Severity.MAJOR, text="Why is it gone?", old=True)
    known = finding_fingerprint(removed, "old = compute(first)")
    tool = ReportFindingTool(DIFF, [PostedFinding(path="app.py", line=11, fingerprint=known)])
    with pytest.raises(CallDenied, match="is still open"):
        await reported(tool, file=name, side="old", text=removed.text)


async def test_nothing_is_said_twice_in_one_run_but_two_things_of_one_line_are() -> None:
    tool = ReportFindingTool(DIFF)
    await reported(tool)
    with pytest.raises(CallDenied, match="you have said this about line 11"):
        await reported(tool, line=12, text="this computes the WRONG one")
    await reported(tool, text="And nobody tests it.")
    assert [finding.text for finding in tool.findings] == [FINDING.text, "And nobody tests it."]


async def test_there_is_an_end_to_it() -> None:
    tool = ReportFindingTool(DIFF)
    for number in range(FINDINGS):
        await reported(tool, text=f"Matter {number}")
    with pytest.raises(CallDenied, match="more are not taken"):
        await reported(tool, text="One more")
    assert len(tool.findings) == FINDINGS


async def test_in_a_run_the_model_hears_what_became_of_it_and_the_journal_knows_all_that_counts() -> None:
    tool = ReportFindingTool(DIFF)
    right, wrong = json.dumps(GIVEN), json.dumps({**GIVEN, "line": 99})
    model = ScriptedModel(
        [tool_call_reply((NAME, wrong)), tool_call_reply(("reportFinding", right), (NAME, right)), text_reply("Done.")]
    )
    played = stage(model, tools=[tool])
    outcome = await played.run(run_id="run-1")
    told = [message.text for message in results_in(played.requests[-1])]
    assert "nearest lines" in told[0]
    assert told[1:] == [f"Noted as finding 1 of at most {FINDINGS}."] * 2  # twins run once
    assert tool.findings == findings_from_entries(played.journal.entries(), outcome.run_id) == (FINDING,)


def test_a_journal_gives_back_what_was_taken_and_nothing_else() -> None:
    said = '{"file":"app.py","line":11,"severity":"major","text":"This computes the wrong one."}'
    other = said.replace("11", "12")
    entries: list[JournalEntry] = [
        *in_a_journal("a", said, name="reportFinding"),  # as the model wrote it
        *in_a_journal("b", said),
        *in_a_journal("c", other, ToolOutcome.ERROR),
        *in_a_journal("d", other, ToolOutcome.UNKNOWN),
        *in_a_journal("e", other, name="sandbox_exec"),
        *in_a_journal("f", "not JSON"),
        *in_a_journal("g", '{"file":"app.py","line":11,"severity":"odd","text":"x"}'),
        *in_a_journal("h", '{"line":[]}'),
        ToolStarted(call_id="i", name=NAME, arguments=other),
    ]
    assert findings_from_entries(entries) == findings_from_entries(entries[:2]) == (FINDING,)


def test_a_run_that_goes_on_after_a_crash_has_what_it_reported_before_and_no_other_runs_findings() -> None:
    said = '{"file":"app.py","line":LINE,"severity":"major","text":"This computes the wrong one."}'
    entries: list[JournalEntry] = [
        RunStarted(run_id="earlier", model="m"),
        *in_a_journal("a", said.replace("LINE", "10")),
        RunStarted(run_id="this", model="m"),
        *in_a_journal("b", said.replace("LINE", "11")),
        RunStarted(run_id="this", model="m", resumed=True),
        *in_a_journal("c", said.replace("LINE", "12")),
        RunStarted(run_id="later", model="m"),
        *in_a_journal("d", said.replace("LINE", "13")),
    ]
    assert [finding.line for finding in findings_from_entries(entries, "this")] == [11, 12]
    assert [finding.line for finding in findings_from_entries(entries)] == [10, 11, 12, 13]


def test_a_journal_gives_no_more_than_a_run_may_report() -> None:
    said = '{"file":"app.py","line":11,"severity":"major","text":"Matter NUMBER"}'
    entries = [entry for at in range(FINDINGS + 3) for entry in in_a_journal(f"{at}", said.replace("NUMBER", f"{at}"))]
    assert len(findings_from_entries(entries)) == FINDINGS
