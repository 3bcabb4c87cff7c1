"""The benchmark of positions makes what it says, and judges by texts, not by the mapper that it measures."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from benchmarks.positions.cases import Case, cases, sources
from benchmarks.positions.changing import KINDS
from benchmarks.positions.report import ALL, measured
from benchmarks.positions.ways import OURS, WAYS


def judged(made: Iterable[Case], seen: list[str]) -> Iterator[Case]:
    for case in made:
        seen.append(case.kind)
        before = case.branch.git("show", f"{case.heads[0]}:{case.path}").split("\n")
        assert " ".join(before[case.line - 1].split()) == case.branch.text
        if case.truth is not None:
            path, line = case.truth
            assert " ".join(case.branch.lines(path)[line - 1].split()) == case.branch.text
        yield case


@pytest.mark.thorough
def test_one_case_of_each_kind_is_valid_and_on_the_right_line() -> None:
    seen: list[str] = []
    found = measured(judged(cases(len(KINDS), sources(()), seed=3), seen))
    assert seen == list(KINDS)
    assert {name for name, _ in found} == set(WAYS)
    ours = found[OURS, ALL]
    assert (ours.right, ours.valid) == (ours.told, ours.posted)
    assert ours.told >= len(KINDS) - 1
    assert found["same line number", ALL].right < ours.right, "cases in which nothing moves measure nothing"


@pytest.mark.thorough
def test_sources_are_those_of_the_trees_that_are_given(tmp_path: Path) -> None:
    (tmp_path / "long.py").write_text("x = 1\n" * 1_000, encoding="utf-8")
    (tmp_path / "short.py").write_text("x = 1\n", encoding="utf-8")
    assert sources([tmp_path]) == [tmp_path / "long.py"]
