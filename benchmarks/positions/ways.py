"""Ways of finding out where a line of the old head stands in the new one: ours, and what others do."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.positions.cases import Case
from benchmarks.positions.changing import Conflict
from hummingbird.core.diffs import CommitComparison, FileDiff
from hummingbird.lab.gitlab import records
from hummingbird.service.diff_comparison import LineFate, LineMoves


@dataclass(frozen=True, slots=True)
class Answer:
    """`place` None: it is gone. Nobody knows: no answer at all."""

    place: tuple[str, int] | None


def as_shown(file: records.DiffFile) -> FileDiff:
    return FileDiff(old_path=file.old_path, new_path=file.new_path, text=file.diff, is_new=file.new_file)


def ours(case: Case) -> Answer | None:
    stands = LineMoves(CommitComparison([as_shown(file) for file in case.between])).locate(case.path, case.line)
    if stands.fate is LineFate.UNKNOWN:
        return None
    return Answer((stands.path, stands.line) if stands.fate in (LineFate.SAME, LineFate.MOVED) else None)


def same_number(case: Case) -> Answer | None:
    """Where it was, if the file still has so many lines."""
    file = case.branch.folder / case.path
    there = file.is_file() and len(case.branch.lines(case.path)) >= case.line
    return Answer((case.path, case.line)) if there else None


def nearest_text(case: Case) -> Answer | None:
    """The nearest line of the same file that says the same; gone if none does."""
    if not (case.branch.folder / case.path).is_file():
        return None
    texts = enumerate((" ".join(line.split()) for line in case.branch.lines(case.path)), 1)
    found = [number for number, text in texts if text == case.branch.text]
    return Answer((case.path, min(found, key=lambda number: abs(number - case.line))) if found else None)


def blame(case: Case) -> Answer | None:
    """`git blame --reverse -M -C`: the last commit that has the line. Knows nothing of a branch that was rebased."""
    between, at = "..".join(case.heads), f"{case.line},{case.line}"
    try:
        case.branch.git("merge-base", "--is-ancestor", *case.heads)
        told = case.branch.git("blame", "--reverse", "-M", "-C", "--porcelain", "-L", at, between, "--", case.path)
    except Conflict:
        return None
    head = re.match(r"([0-9a-f]{40}) (\d+)", told)
    name = re.search(r"(?m)^filename (.*)$", told)
    if head is None or name is None:
        return None
    return Answer((name[1], int(head[2])) if head[1] == case.heads[1] else None)


OURS = "Hummingbird"
WAYS: dict[str, Callable[[Case], Answer | None]] = {
    OURS: ours,
    "git blame --reverse -M -C": blame,
    "nearest line with the same text": nearest_text,
    "same line number": same_number,
}
