"""The runner itself: what it calls caught, survived and neither, on copies that are really the ones that are run."""

import subprocess
from pathlib import Path

import pytest

from tests.mutations.judging import Judged, Ran, Verdict, unproven, verdict
from tests.mutations.mutation import Mutation
from tests.mutations.room import SOURCES, Room, StaleMutation, changed
from tests.mutations.run import main

FENCE = "tests/agent/test_fence.py::test_content_stays_as_it_is_and_cannot_close_its_fence"
FILE = "hummingbird/agent/tools/results.py"
MARK = '    mark = _digest(text.encode("utf-8", "replace"))\n'


def mutation(new: str, *, old: str = MARK, tests: tuple[str, ...] = (FENCE,)) -> Mutation:
    return Mutation("outsiders", "Something is otherwise", FILE, old, new, tests)


CAUGHT = mutation('    mark = _digest(b"")\n    seen = ""\n')
HARMLESS = mutation(MARK + "    _ = seen\n")


@pytest.mark.thorough
def test_a_mutation_that_a_test_notices_is_caught_and_the_page_says_by_which(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = tmp_path / "page.md"
    before = (SOURCES / FILE).read_bytes()
    assert main(["--jobs", "1"], (CAUGHT,), document) == 0
    assert "1 caught" in capsys.readouterr().out
    row = f"| outsiders | Something is otherwise | `{FILE}` | caught | `{FENCE.removeprefix('tests/')}` |"
    assert row in document.read_text(encoding="utf-8")
    assert (SOURCES / FILE).read_bytes() == before, "the sources themselves are never touched"


@pytest.mark.thorough
def test_a_mutation_that_no_test_notices_survives_and_the_run_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--jobs", "1", "--no-baseline"], (HARMLESS,), tmp_path / "page.md") == 1
    assert "1 survived" in capsys.readouterr().out
    assert not (tmp_path / "page.md").exists(), "without its baseline it proves nothing"


@pytest.mark.thorough
def test_a_broken_copy_is_what_every_program_sees_that_a_test_starts(tmp_path: Path) -> None:
    room = Room(tmp_path)
    code = "from hummingbird.agent.tools import results; print(results._digest(b''))"
    words = [str(room.python), "-I", "-c", code]
    broken = mutation('    return "0" * 16', old="    return sha256(content).hexdigest()[:MARK_CHARS]")
    with room.broken(broken):
        assert subprocess.run(words, env={}, capture_output=True, text=True, check=True).stdout == "0" * 16 + "\n"
    assert subprocess.run(words, env={}, capture_output=True, text=True, check=True).stdout != "0" * 16 + "\n"


@pytest.mark.parametrize("old", ["no such text", "mark"])
def test_a_text_that_is_gone_or_stands_there_twice_makes_a_mutation_stale(old: str) -> None:
    with pytest.raises(StaleMutation, match="times: write the mutation anew"):
        changed((SOURCES / FILE).read_text(encoding="utf-8"), mutation("x", old=old))


def line(phase: str, outcome: str, said: str = "") -> dict[str, str]:
    return {"test": "a.py::one", "phase": phase, "outcome": outcome, "said": said}


BEGAN = {"test": "a.py::one", "phase": "began"}
CASES = [
    (Ran(1, (line("call", "failed", "assert 1 == 2"),), "", 1.0), Verdict.CAUGHT),
    (Ran(None, (BEGAN,), "", 1.0), Verdict.TIMED_OUT),
    (Ran(0, (line("call", "passed"),), "", 1.0), Verdict.SURVIVED),
    (Ran(0, (line("setup", "skipped", "no podman"),), "", 1.0), Verdict.FAULT),
    (Ran(1, (line("setup", "failed", "no port"),), "", 1.0), Verdict.FAULT),
    (Ran(1, (line("call", "failed", "NameError: name 'x' is not defined"),), "", 1.0), Verdict.FAULT),
    (Ran(2, (), "error during collection", 1.0), Verdict.FAULT),
    (Ran(4, (), "not found: a.py::two", 1.0), Verdict.FAULT),
    (Ran(5, (), "no tests ran", 1.0), Verdict.FAULT),
]


@pytest.mark.parametrize(("found", "expected"), CASES)
def test_only_a_failed_test_or_the_time_limit_is_a_catch(found: Ran, expected: Verdict) -> None:
    judged: Judged = verdict(found)
    assert judged.verdict is expected
    assert judged.said or expected is Verdict.SURVIVED


def test_unbroken_a_test_that_is_red_or_skipped_or_missing_proves_nothing() -> None:
    green = Ran(0, (line("call", "passed"),), "", 1.0)
    assert unproven(green, ["a.py::one"]) == []
    assert "did not run" in unproven(green, ["a.py::one", "a.py::two"])[0]
    skipped = Ran(0, (line("setup", "skipped", "no podman"),), "", 1.0)
    assert unproven(skipped, ["a.py::one"]) == ["a.py::one did not run: no podman"]
    assert "is red" in unproven(Ran(1, (line("call", "failed", "no"),), "", 1.0), ["a.py::one"])[0]
