"""What the log engine's weights are learned from and written to: shapes, order, folds and shares. Needs no solver."""

import random
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.evidence import weights_module
from benchmarks.evidence.examples import CALM_SHARE, Example, example, marked, shares
from benchmarks.evidence.labels import Label
from benchmarks.evidence.left_out import Weighed, by_unseen, folds
from benchmarks.evidence.regression import ABSENT, Table, unpacked
from hummingbird.evidence.logs.line_cues import LineSort
from hummingbird.evidence.logs.line_scores import (
    FLAGS,
    SCALES,
    WINDOWS,
    LineFeatures,
    ScoreWeights,
    is_frame,
    score_rows,
)
from hummingbird.evidence.logs.log_preview import preview
from hummingbird.evidence.logs.weights import WEIGHTS

COUNT = len(LineSort) * (2 + len(WINDOWS)) + sum(len(edges) + 1 for _, edges in SCALES) + len(FLAGS)
LOG = [
    "$ make test",
    *(f"compiling part {number} of the library" for number in range(40)),
    "src/main.c:12:5: error: unknown type name 'colour'",
    "",
    "Traceback (most recent call last):",
    '  File "run.py", line 3, in <module>',
    "    start()",
    "ValueError: invalid literal for int() with base 10: 'seven'",
    "    at org.example.Main.start(Main.java:12)",
    "tests begin",
    *(f"tests/test_{name}.py PASSED" for name in ("first", "second", "third")),
    "\x1b[31mFAILED tests/test_colour.py::test_red - AssertionError: expected 1, got 2\x1b[0m",
    "1 failed, 3 passed in 0.12s",
    'The command "make test" exited with 2.',
]
MARKED = ("src/main.c:12:5: error: unknown type name 'colour'", "at org.example.Main.start(Main.java:12)")


def labelled(folder: Path, lines: Sequence[str] = MARKED, repo: str = "a:b/c") -> Label:
    path = folder / "a.log"
    path.write_text("\n".join(LOG) + "\n")
    return Label(path, tuple(lines), ("\n".join(lines),), "a", repo)


def some_weights() -> ScoreWeights:
    """No two alike, so that a weight in the wrong place is noticed."""
    chance = random.Random(11)
    return unpacked([chance.uniform(-2, 2) for _ in range(COUNT)], 0.5)


@pytest.mark.thorough
def test_the_shipped_weights_have_a_number_for_everything_a_row_can_be() -> None:
    assert len(WEIGHTS.plain) == len(WEIGHTS.rare) == len(LineSort)
    assert [len(window) for window in WEIGHTS.around] == [len(LineSort)] * len(WINDOWS)
    assert [len(scale) for scale in WEIGHTS.places] == [len(edges) + 1 for _, edges in SCALES]
    assert len(WEIGHTS.flags) == len(FLAGS)


@pytest.mark.thorough
def test_the_shipped_module_is_what_training_writes(tmp_path: Path) -> None:
    weights_module.written(WEIGHTS, tmp_path / "weights.py")
    assert (tmp_path / "weights.py").read_text() == weights_module.SHIPPED.read_text()


@pytest.mark.thorough
def test_a_written_module_gives_the_same_weights_back(tmp_path: Path) -> None:
    read: dict[str, object] = {}
    exec(weights_module.text(some_weights()), read)
    assert read["WEIGHTS"] == some_weights()


@pytest.mark.thorough
def test_scores_are_the_sum_of_features_times_weights(tmp_path: Path) -> None:
    weights = some_weights()
    rows = example(labelled(tmp_path)).rows
    assert len({mark for mark in rows.marks if mark}) > 5
    assert score_rows(rows, weights) == pytest.approx(
        [slow_score(rows, at, weights) for at in range(len(rows.numbers))]
    )


def slow_score(rows: LineFeatures, at: int, weights: ScoreWeights) -> float:
    """Everything counted again from the marks, one feature after the other."""
    total = weights.constant
    for sort in LineSort:
        times = sum(has(mark, sort) for mark in rows.marks)
        rarity = 1 / (1 + times / 3) ** 0.5
        total += has(rows.marks[at], sort) * (weights.plain[sort] + weights.rare[sort] * rarity)
        for (_, first, last), window in zip(WINDOWS, weights.around, strict=True):
            reach = range(rows.numbers[at] + first, rows.numbers[at] + last + 1)
            near = [mark for number, mark in zip(rows.numbers, rows.marks, strict=True) if number in reach]
            total += any(has(mark, sort) for mark in near) * window[sort] * rarity
    total += sum(scale[column[at]] for scale, column in zip(weights.places, rows.places, strict=True))
    return total + sum(weights.flags[flag] for flag in range(len(FLAGS)) if has(rows.flags[at], flag))


def has(bits: int, place: int) -> bool:
    return bool(bits >> place & 1)


@pytest.mark.thorough
def test_a_long_list_of_values_fills_the_weights_in_order_and_exactly() -> None:
    weights = unpacked(range(COUNT), -0.001)
    parts = (weights.plain, weights.rare, *weights.around, *weights.places, weights.flags)
    assert [value for part in parts for value in part] == list(range(COUNT))
    assert str(weights.constant) == "0.0"  # never minus zero
    with pytest.raises(ValueError, match="1 values too many"):
        unpacked(range(COUNT + 1), 0.0)


@pytest.mark.thorough
def test_a_read_log_is_previewed_as_the_product_does_it_but_by_the_weights_given(tmp_path: Path) -> None:
    label = labelled(tmp_path)
    kept = example(label).kept
    assert Weighed(kept, WEIGHTS).text(300) == preview(label.text(), 300)
    fond_of_passed = replace(WEIGHTS, plain=[100.0 * (sort is LineSort.PASSED) for sort in LineSort])
    assert "passed" in Weighed(kept, fond_of_passed).text(60).lower()
    assert "passed" not in preview(label.text(), 60).lower()


@pytest.mark.thorough
def test_rows_are_marked_by_whole_lines_and_by_parts_only_where_no_line_is_whole() -> None:
    part = "a message of more than 24 letters"
    assert marked(["short", "x", f"tool: {part}"], ["short", part]) == [True, False, False]
    assert marked(["a short one", f"tool: {part}"], ["short", part]) == [False, True]


@pytest.mark.thorough
def test_every_log_counts_the_same_and_its_frames_for_nothing(tmp_path: Path) -> None:
    one = example(labelled(tmp_path))
    counted = shares(one)
    wanted = [share for share, row in zip(counted, one.marked, strict=True) if row]
    assert sorted(wanted) == [0.0, 1.0]  # the frame and the error
    assert sum(counted) == pytest.approx(1 + CALM_SHARE)


@pytest.mark.thorough
def test_where_only_frames_were_marked_they_count_after_all(tmp_path: Path) -> None:
    one = example(labelled(tmp_path, MARKED[1:]))
    [at] = [at for at, row in enumerate(one.marked) if row]
    assert is_frame(one.rows.marks[at], one.rows.texts[at])
    assert shares(one)[at] == 1.0


@pytest.mark.thorough
def test_each_repository_is_in_one_fold_and_folds_hold_about_as_many_logs() -> None:
    repos = ["big"] * 6 + ["middle"] * 3 + ["small"] * 2 + ["tiny"]
    assert folds(repos) == [{"big"}, {"middle"}, {"small"}, {"tiny"}]
    assert folds(repos, 2) == [{"big"}, {"middle", "small", "tiny"}]
    assert folds(repos, 9) == folds(repos)


@pytest.mark.thorough
@pytest.mark.parametrize("count", [None, 2])
def test_no_log_is_judged_by_weights_that_saw_its_repository(tmp_path: Path, count: int | None) -> None:
    examples = [example(labelled(tmp_path, repo=repo)) for repo in ("one", "two", "one", "three")]
    seen: dict[float, set[str]] = {}

    def fit(places: Sequence[int]) -> ScoreWeights:
        seen[float(len(seen))] = {examples[at].label.repo for at in places}
        return replace(WEIGHTS, constant=float(len(seen) - 1))

    judged: list[Example] = []
    for one, weights in by_unseen(examples, fit, count):
        judged.append(one)
        assert one.label.repo not in seen[weights.constant]
        assert seen[weights.constant]
    assert sorted(map(id, judged)) == sorted(map(id, examples))


@pytest.mark.thorough
def test_without_the_solver_training_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(SystemExit, match="environment of its own") as said:
        Table(example(labelled(tmp_path)))
    assert str(said.value) == ABSENT
