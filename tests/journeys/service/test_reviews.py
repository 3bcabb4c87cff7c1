"""A review with findings on the lines of the diff."""

from pathlib import Path
from typing import Any

import pytest

from hummingbird.gitlab.write.protocol import NoteKind
from hummingbird.lab.gitlab.error_responses import server_error_fault
from hummingbird.lab.gitlab.world import GitLabWorld
from hummingbird.lab.gitlab.write.merge_request_changes import MergeRequestEdit, apply_edit
from hummingbird.lab.gitlab.write.notes import resolve_notes
from tests.journeys.service.stage import Stage, staged
from tests.standins.vendors.script import Call, Step, Turn

NEXT = "b" * 40
REVIEW = {"code-review": {"trigger": "merge_request", "inline_findings": True}}
PUBLIC = {"internal_notes": False}
FILE = "src/ledger/statements.py"
ROUNDS = "The last page is lost: the division rounds down."


def finding(line: int, text: str = ROUNDS, **more: Any) -> Turn:
    given = {"file": FILE, "line": line, "severity": "major", "text": text, **more}
    return Turn(calls=(Call("report_finding", given),))


def otherwise(diff: str) -> str:
    """With another line changed: the same change on another commit is not reviewed again."""
    return diff.replace("+def test_pages_hold_every_entry", "+def test_every_entry_is_on_a_page")


def ready(stage: Stage, draft: bool) -> None:
    def change(world: GitLabWorld) -> None:
        request = world.merge_request
        apply_edit(world, request, world.user(request.author_id), MergeRequestEdit(draft=draft))

    stage.ask(change)


async def test_a_draft_that_becomes_ready_is_reviewed_on_the_lines_of_its_diff(tmp_path: Path) -> None:
    turns = [finding(27, suggestion="        for number in range(-(-len(entries) // size)):"), Turn(text="One defect.")]
    async with staged("merge-request-review", tmp_path, settings=PUBLIC, workflows=REVIEW, turns=turns) as stage:
        ready(stage, True)
        await stage.begin_case()
        await stage.idle()
        assert stage.ours() == []
        ready(stage, False)
        placeholder, inline, result = await stage.notes(3)
        mails = stage.ask(lambda world: [len(mail) for mail in world.mails])
    assert mails == [1, 2]  # the placeholder, and the review
    assert [note.part for note in (placeholder, inline, result)] == [
        NoteKind.PLACEHOLDER,
        NoteKind.FINDING,
        NoteKind.RESULT,
    ]
    assert inline.position is not None
    assert (inline.position["new_path"], inline.position["new_line"]) == (FILE, 27)
    assert ROUNDS in inline.body
    assert "```suggestion:-0+0\n        for number in range(-(-len(entries) // size)):\n" in inline.body
    assert "One defect." in result.body
    assert f"**Major** `{FILE}:27`" in result.body
    assert placeholder.thread == result.thread != inline.thread
    assert {note.session for note in (placeholder, inline, result)} == {placeholder.session}


async def test_with_the_documented_inline_size_the_model_reads_the_whole_diff(tmp_path: Path) -> None:
    """61 KB, with the defect in the middle."""
    files = [(f"src/ledger/part_{number}.py", 120) for number in range(10)]
    diff = "".join(
        f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -0,0 +1,{lines} @@\n"
        + "".join(f"+line {line} of {path}, which says nothing wrong\n" for line in range(lines))
        for path, lines in files
    )
    assert len(diff) > 61_000
    defect = "line 77 of src/ledger/part_5.py"
    documented = {"code-review": {**REVIEW["code-review"], "max_inline_size": 200000, "context_limit": 500000}}

    def look(request: dict[str, Any]) -> Turn:
        return Turn(calls=(Call("gitlab_get_mr_unified_diff", {"mr_iid": stage.world.merge_request.iid}),))

    turns: list[Step] = [look, Turn(text="Nothing to report.")]
    async with staged(
        "merge-request-review", tmp_path, settings=PUBLIC, workflows=documented, turns=turns, begin=False
    ) as stage:
        stage.push(NEXT, diff=diff)
        await stage.serve()
        await stage.begin_case()
        await stage.ended(1)
        assert stage.lab is not None
        read = str(stage.lab.requests[-1].body["messages"])
    assert defect in read
    assert read.count("which says nothing wrong") == 1_200


@pytest.mark.thorough
async def test_after_a_push_an_earlier_finding_is_not_repeated_although_its_line_moved(tmp_path: Path) -> None:
    turns = [finding(27), Turn(text="One defect."), finding(30), Turn(text="Nothing to report.")]
    async with staged("merge-request-review", tmp_path, settings=PUBLIC, workflows=REVIEW, turns=turns) as stage:
        await stage.begin_case()
        await stage.notes(3)
        moved = stage.world.merge_request.diff_text.replace("@@ -21,5 +21,14 @@", "@@ -24,5 +24,14 @@")
        stage.push(NEXT, diff=otherwise(moved))
        notes = await stage.notes(5)
        told = str(stage.lab.requests[3].body["messages"]) if stage.lab else ""
    assert [note.part for note in notes].count(NoteKind.FINDING) == 1
    assert "Already reported" in told
    assert "Nothing to report." in notes[4].body
    assert notes[4].marker is not None
    assert notes[4].marker.sha == NEXT


@pytest.mark.thorough
async def test_a_reply_to_a_finding_goes_on_with_the_review_in_that_thread(tmp_path: Path) -> None:
    turns = [finding(27), Turn(text="One defect."), Turn(text="Because 101 entries make 11 pages.")]
    async with staged("merge-request-review", tmp_path, settings=PUBLIC, workflows=REVIEW, turns=turns) as stage:
        await stage.begin_case()
        _, inline, result = await stage.notes(3)
        asked, _ = await stage.write("ines", "Why is it lost?", thread=inline.thread)
        *_, answer = await stage.notes(4)
        awards = stage.awards(asked)
        history = str(stage.lab.requests[2].body) if stage.lab else ""
    assert answer.thread == inline.thread
    assert answer.session == result.session
    assert "Because 101 entries make 11 pages." in answer.body
    assert "Why is it lost?" in history
    assert ROUNDS in history
    assert awards == ["eyes"]


@pytest.mark.thorough
async def test_where_notes_are_internal_findings_stand_in_the_note_alone(tmp_path: Path) -> None:
    async with staged(
        "merge-request-review", tmp_path, workflows=REVIEW, turns=[finding(27), Turn(text="One defect.")]
    ) as stage:
        await stage.begin_case()
        placeholder, result = await stage.notes(2)
    assert ROUNDS in result.body
    assert placeholder.internal
    assert result.internal


@pytest.mark.thorough
async def test_a_finding_whose_write_ended_in_doubt_stands_there_once(tmp_path: Path) -> None:
    turns = [finding(27), Turn(text="One defect.")]
    async with staged("merge-request-review", tmp_path, settings=PUBLIC, workflows=REVIEW, turns=turns) as stage:
        plan = stage.world.faults.plan
        plan("*/discussions", server_error_fault(502), method="POST", after_write=True)
        plan("*/draft_notes", server_error_fault(502), method="POST", after_write=True, times=2)
        plan("*/bulk_publish", server_error_fault(502), method="POST", after_write=True)
        await stage.begin_case()
        notes = await stage.notes(3)
    assert [note.part for note in notes] == [NoteKind.PLACEHOLDER, NoteKind.FINDING, NoteKind.RESULT]


@pytest.mark.thorough
async def test_a_finding_that_gitlab_did_not_take_stands_in_the_note(tmp_path: Path) -> None:
    turns = [finding(27), Turn(text="One defect.")]
    async with staged("merge-request-review", tmp_path, settings=PUBLIC, workflows=REVIEW, turns=turns) as stage:
        stage.world.faults.plan("*/draft_notes", server_error_fault(502), method="POST")
        await stage.begin_case()
        _, result = await stage.notes(2)
    shown = result.body[: result.body.index("<details>")]
    assert ROUNDS in shown


@pytest.mark.thorough
async def test_a_push_resolves_the_summary_but_not_a_finding_that_nobody_has_settled(tmp_path: Path) -> None:
    """The next review does not say it again, so it would be lost."""
    review = {"code-review": {**REVIEW["code-review"], "auto_resolve_on_push": True}}
    turns = [finding(27), Turn(text="One defect."), finding(27), Turn(text="The same as before.")]
    async with staged("merge-request-review", tmp_path, settings=PUBLIC, workflows=review, turns=turns) as stage:
        await stage.begin_case()
        await stage.notes(3)
        stage.push(NEXT, diff=otherwise(stage.world.merge_request.diff_text))
        placeholder, inline, result, *later = await stage.notes(5)
    assert (placeholder.resolved, result.resolved) == (True, True)
    assert not inline.resolved
    assert [note.part for note in later] == [NoteKind.PLACEHOLDER, NoteKind.RESULT]


@pytest.mark.thorough
async def test_a_finding_that_somebody_resolved_is_not_raised_again(tmp_path: Path) -> None:
    turns = [finding(27), Turn(text="One defect."), finding(27, "Rounding drops a page."), Turn(text="Fine now.")]
    async with staged("merge-request-review", tmp_path, settings=PUBLIC, workflows=REVIEW, turns=turns) as stage:
        await stage.begin_case()
        _, inline, _ = await stage.notes(3)
        stage.ask(lambda world: resolved(world, inline.thread))
        stage.push(NEXT, diff=otherwise(stage.world.merge_request.diff_text))
        notes = await stage.notes(5)
        told = str(stage.lab.requests[3].body["messages"]) if stage.lab else ""
    assert [note.part for note in notes].count(NoteKind.FINDING) == 1
    assert "was resolved by somebody" in told


@pytest.mark.thorough
async def test_a_finding_that_a_developer_dismissed_is_not_raised_again_though_somebody_reopened_it(
    tmp_path: Path,
) -> None:
    """No model is asked what to say to that, and the push after it changes nothing."""
    turns = [finding(27), Turn(text="One defect."), finding(30, "Rounding drops a page."), Turn(text="Fine now.")]
    async with staged("merge-request-review", tmp_path, settings=PUBLIC, workflows=REVIEW, turns=turns) as stage:
        await stage.begin_case()
        _, inline, _ = await stage.notes(3)
        said, _ = await stage.write("ines", "Won't fix: nobody has so many entries.", thread=inline.thread)
        await stage.idle()
        awards, after = stage.awards(said), stage.ours()
        stage.ask(lambda world: resolved(world, inline.thread, to=False))
        moved = stage.world.merge_request.diff_text.replace("@@ -21,5 +21,14 @@", "@@ -24,5 +24,14 @@")
        stage.push(NEXT, diff=otherwise(moved))
        notes = await stage.notes(5)
        told = str(stage.lab.requests[3].body["messages"]) if stage.lab else ""
    assert awards == ["ok_hand"]
    assert [note.resolved for note in after if note.part is NoteKind.FINDING] == [True]
    assert len(after) == 3
    assert [note.part for note in notes].count(NoteKind.FINDING) == 1
    assert "Dismissed: a developer has decided" in told


@pytest.mark.thorough
async def test_the_words_of_somebody_who_is_no_developer_dismiss_nothing(tmp_path: Path) -> None:
    turns = [finding(27), Turn(text="One defect.")]
    async with staged("merge-request-review", tmp_path, settings=PUBLIC, workflows=REVIEW, turns=turns) as stage:
        await stage.begin_case()
        _, inline, _ = await stage.notes(3)
        stage.ask(demoted)
        said, _ = await stage.write("bo", "Won't fix.", thread=inline.thread)
        await stage.idle()
        awards, found = stage.awards(said), stage.ours()
    assert awards == []
    assert [note.resolved for note in found if note.part is NoteKind.FINDING] == [False]


def demoted(world: GitLabWorld) -> None:
    """Somebody of whom we have not heard yet is a reporter."""
    person = world.find_user("bo")
    assert person is not None
    world.project.members[person.id].access_level = 20


def resolved(world: GitLabWorld, thread_id: str, *, to: bool = True) -> None:
    """By the author of the merge request."""
    request = world.merge_request
    thread = next(each for each in request.discussions if each.id == thread_id)
    resolve_notes(world, request, world.user(request.author_id), thread.notes, to)
