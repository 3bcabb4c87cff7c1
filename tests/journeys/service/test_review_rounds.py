"""A review after a review: what was found before is followed through pushes, renames and rebases made with git,
and nothing is said twice."""

from pathlib import Path

import pytest

from hummingbird.core.limits import NOTE_WRITES
from hummingbird.gitlab.write.protocol import NoteKind
from hummingbird.lab.gitlab.error_responses import server_error_fault
from hummingbird.lab.gitlab.records import DIFF_NOTE
from hummingbird.lab.gitlab.world import GitLabWorld
from tests.journeys.service.pushes import Pushes, both, edited, renamed
from tests.journeys.service.stage import Ours, Stage, staged
from tests.journeys.service.test_reviews import FILE, PUBLIC, REVIEW, finding, resolved
from tests.standins.vendors.script import Call, Turn

LOOP = "        for number in range(len(entries) // size):\n"
MENDED = "        for number in range(-(-len(entries) // size)):\n"
DOCSTRING = '"""Statements of an account, page by page."""\n'
ABOVE = edited(FILE, DOCSTRING, f"{DOCSTRING}\nimport logging\nimport sys\nimport types\nimport uuid\n")
ELSEWHERE = "src/ledger/paging.py"
IN_OTHER_WORDS = "Entries of the last page never come out of this loop."
DEFECT = [finding(27), Turn(text="One defect.")]
NOTHING = Turn(text="Nothing to report.")


def said(stage: Stage, request: int) -> str:
    assert stage.lab is not None
    return str(stage.lab.requests[request].body["messages"])


def shown(note: Ours) -> str:
    return note.body.split("<details>")[0]


async def test_a_finding_whose_line_a_push_has_moved_down_is_refused_there_and_counted_as_moved(
    tmp_path: Path,
) -> None:
    turns = [*DEFECT, finding(32, IN_OTHER_WORDS), NOTHING]
    async with staged("merge-request-review", tmp_path, settings=PUBLIC, workflows=REVIEW, turns=turns) as stage:
        pushes = Pushes(stage, tmp_path / "repository")
        await stage.begin_case()
        _, inline, _ = await stage.notes(3)
        pushes.push(ABOVE)
        notes = await stage.notes(5)
        told, ordered = said(stage, 3), said(stage, 2)
    assert "Already reported: an earlier finding on this line is still open" in told
    assert '\\"earlier_findings\\": {\\"open\\": 1}' in ordered or '"earlier_findings": {"open": 1}' in ordered
    assert f"Findings: nothing new, [1 moved]({stage.scene.url('gitlab')}/" in notes[4].body
    assert f"#note_{inline.id})" in notes[4].body
    assert "Nothing to report." in notes[4].body


@pytest.mark.thorough
async def test_in_a_renamed_and_edited_file_a_finding_is_known_on_its_line(tmp_path: Path) -> None:
    turns = [*DEFECT, Turn(calls=(Call("report_finding", moved_to(ELSEWHERE, 32)),)), NOTHING]
    async with staged("merge-request-review", tmp_path, settings=PUBLIC, workflows=REVIEW, turns=turns) as stage:
        pushes = Pushes(stage, tmp_path / "repository")
        await stage.begin_case()
        await stage.notes(3)
        pushes.push(both(ABOVE, renamed(FILE, ELSEWHERE)))
        notes = await stage.notes(5)
        told = said(stage, 3)
    assert "Already reported" in told
    assert "1 moved" in notes[4].body
    assert not notes[1].resolved


def moved_to(path: str, line: int) -> dict[str, object]:
    return {"file": path, "line": line, "severity": "major", "text": IN_OTHER_WORDS}


@pytest.mark.thorough
async def test_what_a_push_has_mended_is_resolved_and_counted_once(tmp_path: Path) -> None:
    turns = [*DEFECT, NOTHING, NOTHING]
    async with staged("merge-request-review", tmp_path, settings=PUBLIC, workflows=REVIEW, turns=turns) as stage:
        pushes = Pushes(stage, tmp_path / "repository")
        await stage.begin_case()
        await stage.notes(3)
        pushes.push(edited(FILE, LOOP, MENDED))
        _, inline, _, _, second = await stage.notes(5)
        pushes.push(ABOVE)
        *_, third = await stage.notes(7)
    assert inline.resolved
    assert "Findings: nothing new, 1 fixed." in second.body
    assert "fixed" not in shown(third)


@pytest.mark.thorough
async def test_a_mended_finding_in_which_a_person_has_the_last_word_is_left_to_them(tmp_path: Path) -> None:
    turns = [*DEFECT, NOTHING]
    async with staged("merge-request-review", tmp_path, settings=PUBLIC, workflows=REVIEW, turns=turns) as stage:
        pushes = Pushes(stage, tmp_path / "repository")
        await stage.begin_case()
        _, inline, _ = await stage.notes(3)
        stage.ask(lambda world: written(world, inline.thread, "I am not sure about this."))
        pushes.push(edited(FILE, LOOP, MENDED))
        notes = await stage.notes(5)
    assert not notes[1].resolved
    assert "1 fixed" in notes[4].body


def written(world: GitLabWorld, thread_id: str, text: str) -> None:
    """By the author of the merge request, of which no hook tells."""
    request = world.merge_request
    thread = next(each for each in request.discussions if each.id == thread_id)
    thread.notes.append(world.new_note(world.user(request.author_id), text, note_type=DIFF_NOTE))


@pytest.mark.thorough
async def test_a_pure_rebase_starts_no_second_review_and_a_command_does(tmp_path: Path) -> None:
    turns = [*DEFECT, finding(32), NOTHING]
    async with staged("merge-request-review", tmp_path, settings=PUBLIC, workflows=REVIEW, turns=turns) as stage:
        pushes = Pushes(stage, tmp_path / "repository")
        await stage.begin_case()
        await stage.notes(3)
        pushes.rebase(ABOVE)
        await stage.idle()
        assert len(stage.marked()) == 3
        await stage.write("ines", "/hummingbird code-review")
        notes = await stage.notes(5)
    assert [note.part for note in notes].count(NoteKind.FINDING) == 1
    assert "1 moved" in notes[4].body


@pytest.mark.thorough
async def test_a_finding_that_somebody_resolved_does_not_come_back_on_a_renamed_file(tmp_path: Path) -> None:
    turns = [*DEFECT, Turn(calls=(Call("report_finding", moved_to(ELSEWHERE, 27)),)), NOTHING]
    async with staged("merge-request-review", tmp_path, settings=PUBLIC, workflows=REVIEW, turns=turns) as stage:
        pushes = Pushes(stage, tmp_path / "repository")
        await stage.begin_case()
        _, inline, _ = await stage.notes(3)
        stage.ask(lambda world: resolved(world, inline.thread))
        pushes.push(renamed(FILE, ELSEWHERE))
        notes = await stage.notes(5)
        told = said(stage, 3)
    assert "was resolved by somebody" in told
    assert "Findings: nothing new, 1 dismissed." in notes[4].body
    assert [note.part for note in notes].count(NoteKind.FINDING) == 1


@pytest.mark.thorough
async def test_the_same_words_about_what_stands_there_instead_leave_the_thread_open_and_say_nothing_new(
    tmp_path: Path,
) -> None:
    turns = [*DEFECT, finding(27), Turn(text="It is still wrong.")]
    async with staged("merge-request-review", tmp_path, settings=PUBLIC, workflows=REVIEW, turns=turns) as stage:
        pushes = Pushes(stage, tmp_path / "repository")
        await stage.begin_case()
        await stage.notes(3)
        pushes.push(edited(FILE, LOOP, LOOP.replace("number", "page")))
        notes = await stage.notes(5)
    assert not notes[1].resolved
    assert "Findings: nothing new, [1 still there](" in notes[4].body


@pytest.mark.thorough
async def test_what_was_mended_and_comes_back_is_opened_again(tmp_path: Path) -> None:
    turns = [*DEFECT, NOTHING, finding(27, IN_OTHER_WORDS), NOTHING]
    async with staged("merge-request-review", tmp_path, settings=PUBLIC, workflows=REVIEW, turns=turns) as stage:
        pushes = Pushes(stage, tmp_path / "repository")
        await stage.begin_case()
        await stage.notes(3)
        pushes.push(edited(FILE, LOOP, MENDED))
        _, inline, *_ = await stage.notes(5)
        assert inline.resolved
        pushes.push(edited(FILE, MENDED, LOOP))
        notes = await stage.notes(7)
    assert not notes[1].resolved
    assert "Findings: nothing new, [1 back again](" in notes[6].body


@pytest.mark.thorough
async def test_after_a_forced_push_whose_old_commit_is_gone_a_finding_is_known_by_its_text(tmp_path: Path) -> None:
    turns = [*DEFECT, finding(32, IN_OTHER_WORDS), NOTHING]
    async with staged("merge-request-review", tmp_path, settings=PUBLIC, workflows=REVIEW, turns=turns) as stage:
        pushes = Pushes(stage, tmp_path / "repository")
        await stage.begin_case()
        await stage.notes(3)
        pushes.forget(stage.world.merge_request.sha or "")
        pushes.push(ABOVE)
        notes = await stage.notes(5)
    assert "Findings: nothing new, [1 moved](" in notes[4].body
    assert [note.part for note in notes].count(NoteKind.FINDING) == 1


@pytest.mark.thorough
async def test_a_review_is_told_which_files_differ_from_what_the_last_one_saw(tmp_path: Path) -> None:
    turns = [*DEFECT, NOTHING]
    async with staged("merge-request-review", tmp_path, settings=PUBLIC, workflows=REVIEW, turns=turns) as stage:
        pushes = Pushes(stage, tmp_path / "repository")
        await stage.begin_case()
        await stage.notes(3)
        pushes.push(edited("tests/test_statements.py", "range(100)", "range(101)"))
        notes = await stage.notes(5)
        ordered = said(stage, 2)
    assert "changed_since_last_review" in ordered
    assert "tests/test_statements.py" in ordered.split("changed_since_last_review")[1][:60]
    assert FILE not in ordered.split("changed_since_last_review")[1][:60]
    assert "[1 still there](" in notes[4].body


@pytest.mark.thorough
async def test_a_note_whose_write_failed_counts_what_was_fixed_once_more_the_same(tmp_path: Path) -> None:
    """The thread is resolved by then: the order comes again and says what it would have said."""
    turns = [*DEFECT, NOTHING]
    async with staged("merge-request-review", tmp_path, settings=PUBLIC, workflows=REVIEW, turns=turns) as stage:
        pushes = Pushes(stage, tmp_path / "repository")
        await stage.begin_case()
        await stage.notes(3)
        stage.world.faults.plan("*/discussions/*/notes", server_error_fault(500), method="POST", times=NOTE_WRITES)
        pushes.push(edited(FILE, LOOP, MENDED))
        notes = await stage.notes(5)
    assert notes[1].resolved
    assert "Findings: nothing new, 1 fixed." in notes[4].body
