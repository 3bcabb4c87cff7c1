"""The measures of confidence count what they say, and find what was put into made logs."""

import json
import lzma
from pathlib import Path

import pytest

from benchmarks.evidence import decoys, endings, reliability
from benchmarks.evidence.labels import FIXES, JOBS, LOGS, Label
from benchmarks.evidence.reliability import JudgedBlame, brier_score, cut_end, is_in_label, without_success
from hummingbird.evidence.regions import Blame, FailureClass

WORK = [f"step {number} of the build is done" for number in range(40)]
BAD = ["src/main.c:3:1: error: expected ';' before '}'", "make: *** [main.o] Error 1"]
RED = [*WORK, *BAD, 'The command "make" exited with 2.']
GREEN = [*WORK, "all 12 tests passed", 'The command "make" exited with 0.', "Done. Your build exited with 0."]


def judged(confidence: float, *, right: bool | None, failed: bool = True) -> JudgedBlame:
    return JudgedBlame("log", "repo", ("make",), Blame(FailureClass.CODE, "rule", confidence, "Why."), right, failed)


def test_brier_score_is_zero_only_for_certainty_that_is_right() -> None:
    assert brier_score([judged(1.0, right=True), judged(0.0, right=False)]) == 0
    assert brier_score([judged(0.8, right=True), judged(0.8, right=False), judged(0.1, right=None)]) == pytest.approx(
        0.34
    )


def test_only_a_sure_cause_of_a_green_log_is_an_alarm() -> None:
    assert judged(0.75, right=False, failed=False).is_alarm
    assert not judged(0.74, right=False, failed=False).is_alarm
    assert not judged(0.9, right=True).is_alarm


def test_green_logs_lose_what_states_success() -> None:
    assert "exited with 0" not in without_success("\n".join(GREEN))
    assert cut_end("\n".join(GREEN)) == "\n".join(GREEN[:-6])


def test_blame_is_right_when_the_marked_lines_carry_it() -> None:
    label = Label(Path("a.log"), tuple(BAD), ("\n".join(BAD),), "made", "made:one")
    assert is_in_label(Blame(FailureClass.CODE, "compiler-error", 0.9, ""), label) is True
    assert is_in_label(Blame(FailureClass.INFRASTRUCTURE, "disk-full", 0.9, ""), label) is False
    assert is_in_label(Blame(FailureClass.UNKNOWN, "no-rule", 0.0, ""), label) is None


def test_reliability_counts_each_log_on_its_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_fixes(tmp_path)

    reliability.report(tmp_path)
    reliability.report(tmp_path, apart=True)

    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| whole |")]
    assert sum(int(row.split("|")[2]) for row in rows) == 12
    assert all(row.split("|")[3].strip() == "0.0" for row in rows)


def test_endings_are_fitted_so_that_trouble_means_red(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_fixes(tmp_path)

    endings.report(tmp_path)

    printed = capsys.readouterr().out
    weights = [float(line.rpartition(":")[2]) for line in printed.splitlines() if line.startswith("- ")]
    assert weights[1] > 0
    assert weights[2] < 0


def test_decoys_are_fixes_of_the_same_project_that_share_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_fixes(tmp_path)
    index = tmp_path / FIXES / "index.jsonl"
    records = [{**json.loads(line), "repository": "owner-one"} for line in index.read_text().splitlines()]
    records[1]["changed"] = ["src/wing.c"]
    index.write_text("\n".join(map(json.dumps, records[:2])))

    decoys.report(tmp_path)
    decoys.report(tmp_path, apart=True)

    printed = capsys.readouterr().out
    assert "| the real fix | 2 | 50.0 |" in printed
    assert "| another fix of the project | 2 | 50.0 |" in printed, "both logs name the file of the first fix"


def make_fixes(root: Path) -> None:
    """Write pairs of a red and a green log of twelve repositories, and two empty sets."""
    folder = root / FIXES / "pairs"
    folder.mkdir(parents=True)
    records = []
    for number in range(12):
        name = f"owner-project{number}"
        for part, lines in (("failing.log", RED), ("passing.log", GREEN), ("patch.diff", ["+}"])):
            (folder / f"{name}.{part}.xz").write_bytes(lzma.compress("\n".join(lines).encode()))
        record = {"name": name, "repository": name, "category": "Compilation", "changed": ["src/main.c"]}
        records.append({**record, "named_in_log": True, "new_in_log": True})
    (root / FIXES / "index.jsonl").write_text("\n".join(map(json.dumps, records)))
    for empty in (LOGS, "ci-pairs"):
        (root / empty).mkdir()
        (root / empty / "labels.jsonl").write_text("")
    assert not (root / JOBS).exists()
