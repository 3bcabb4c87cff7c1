"""The section of positions: of each kind of change and each way, what is told, what of that is right, and what GitLab
would take.

told    a place, or that the line is gone; the rest is "nobody knows"
right   of those told: the place where the line's text stands, or gone if it stands nowhere
valid   of the positions that a note would be sent to: those that GitLab's rules take, by the lab's own reading of
        them. We send none for a line that the merge request's diff does not show; the other ways do not know that
"""

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TypeAlias

from benchmarks.positions.cases import Case, cases, sources
from benchmarks.positions.ways import OURS, WAYS, Answer, as_shown
from hummingbird.core.diffs import Diff
from hummingbird.lab.gitlab.write.notes import diff_lines

CASES, FEW, PART = 1_000, 40, 20
ALL = "all"


@dataclass(slots=True)
class Score:
    cases: int = 0
    told: int = 0
    right: int = 0
    posted: int = 0
    valid: int = 0

    def __add__(self, other: "Score") -> "Score":
        return Score(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))

    def count(self, case: Case, answer: Answer | None, position: bool | None) -> None:
        self.cases += 1
        if answer is not None:
            self.told += 1
            self.right += answer.place == case.truth
        if position is not None:
            self.posted += 1
            self.valid += position


def position(case: Case, name: str, answer: Answer | None) -> bool | None:
    """Whether GitLab would take it; None: nothing would be sent."""
    if answer is None or answer.place is None:
        return None
    if name != OURS:
        path, line = answer.place
        return any(line == new for file in case.shown if file.new_path == path for _, new in diff_lines(file))
    spot = Diff(map(as_shown, case.shown)).find_position(*answer.place)
    if spot is None:
        return None
    paths, numbers = (spot.old_path, spot.new_path), (spot.old_line or None, spot.new_line or None)
    return any(numbers in diff_lines(file) for file in case.shown if (file.old_path, file.new_path) == paths)


Scores: TypeAlias = dict[tuple[str, str], Score]


def measured(made: Iterable[Case]) -> Scores:
    """By way and kind."""
    found: Scores = defaultdict(Score)
    for case in made:
        for name, way in WAYS.items():
            answer = way(case)
            there = position(case, name, answer)
            for kind in (case.kind, ALL):
                found[name, kind].count(case, answer, there)
    return found


def all_measured(number: int, folders: Sequence[Path]) -> Scores:
    """In parts of PART cases with dice of their own; most of the time is git's."""
    parts = [(PART, folders, seed) for seed in range(1, number // PART + 1)]
    found: Scores = defaultdict(Score)
    with ProcessPoolExecutor(2 * (os.cpu_count() or 1)) as workers:
        for scores in workers.map(_part, *zip(*parts, strict=True)):
            for key, score in scores.items():
                found[key] = found[key] + score
    return found


def _part(number: int, folders: Sequence[Path], seed: int) -> Scores:
    return dict(measured(cases(number, sources(folders), seed)))


def report(folders: Sequence[Path] = (), *, quick: bool) -> None:
    found = all_measured(FEW if quick else CASES, folders)
    print("## Positions after renames, moves and rebases\n")
    print(f"{found[OURS, ALL].cases} cases made with git on real sources; the truth is text that stands once.\n")
    print("| way | told | right of those told | on the right line or rightly gone, of all | valid for GitLab |")
    print("|---|---|---|---|---|")
    for name in WAYS:
        print(f"| {name} | {_row(found[name, ALL])} |")
    print(f"\n{OURS}, by what happened:\n\n| what happened | cases | told | right of those told | of all | valid |")
    print("|---|---|---|---|---|---|")
    for name, kind in found:
        if name == OURS and kind != ALL:
            score = found[name, kind]
            print(f"| {kind} | {score.cases} | {_row(score)} |")
    print()


def _row(score: Score) -> str:
    valid = f"{_share(score.valid, score.posted)} of {score.posted}"
    shares = (_share(score.told, score.cases), _share(score.right, score.told), _share(score.right, score.cases))
    return " | ".join((*shares, valid))


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"
