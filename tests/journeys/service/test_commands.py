"""`/hummingbird …` in a comment."""

from pathlib import Path

import pytest

from tests.journeys.service.stage import staged
from tests.standins.vendors.script import Call, Turn

PUBLIC = {"internal_notes": False}
BOTH = {"analyze-failures": {"trigger": "pipeline"}, "analyze-costs": {}, "code-review": {}}


async def test_a_command_has_placeholder_and_result_in_its_own_thread_and_its_overrides(
    tmp_path: Path,
) -> None:
    turns = [Turn(calls=(Call("sandbox_exec", {"command": "true"}),)), Turn(text="It was the parser.")]
    async with staged("failing-test", tmp_path, settings=PUBLIC, turns=turns) as stage:
        asked, thread = await stage.write("hsato", "/hummingbird analyze-failures max_iterations=1 Is it the parser?")
        placeholder, result = await stage.notes(2)
        first = stage.lab.requests[0].body if stage.lab else {}
    assert placeholder.thread == result.thread == thread
    assert [note.internal for note in (placeholder, result)] == [False, False]
    assert "It was the parser." in result.body
    assert result.marker is not None
    assert result.marker.overrides.max_iterations == 1
    assert "its iterations were used up" in result.body
    assert "Is it the parser?" in str(first)
    assert asked < placeholder.id < result.id


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("/hummingbird analyze", ("More than one workflow", "`analyze-failures`", "`analyze-costs`")),
        ("/hummingbird analyse-failures", ("There is no workflow", "Did you mean `analyze-failures`?")),
        ("/hummingbird help", ("These workflows are for this project", "`code-review`", "`max_iterations=NUMBER`")),
        ("/hummingbird", ("These workflows are for this project",)),
        ("/hummingbird code-review max_iterations=no", ("`no` is not a number", "Nothing was started.")),
        ("/hummingbird code-review max_iterations=99999", ("is too much", "at most")),
        ("/hummingbird code-review model=other:thing", ("`other:thing`", "Nothing was started.")),
        ("/hummingbird code-review sandbox=none", ("`sandbox` is not an option",)),
        ("/hummingbird model=other:thing", ("Name a workflow first",)),
    ],
)
async def test_a_command_that_starts_nothing_is_answered_once_in_its_thread(
    command: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    async with staged("failing-test", tmp_path, workflows=BOTH) as stage:
        _, thread = await stage.write("hsato", command)
        await stage.until(lambda: bool(stage.answers()))
        await stage.idle()
        (answer,) = stage.ours()
    assert answer.thread == thread
    assert answer.marker is None
    for word in words:
        assert word in answer.body


@pytest.mark.thorough
async def test_the_beginning_of_a_name_is_enough_and_bypasses_what_was_done_before(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path, settings={**PUBLIC, "max_runs_per_mr": 1}) as stage:
        await stage.begin_case()
        await stage.notes(2)
        await stage.write("hsato", "/hummingbird ana")
        notes = await stage.notes(4)
    assert len({note.session for note in notes}) == 2
    assert "LogDifferTest" in notes[3].body


@pytest.mark.thorough
async def test_a_comment_that_is_edited_into_a_command_is_none_nor_one_in_code(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path) as stage:
        note, _ = await stage.write("hsato", "What is `/hummingbird help`?")
        await stage.edit("hsato", note, "/hummingbird help")
        await stage.idle()
        assert len(stage.deliveries()) == 2
        assert stage.ours() == []
