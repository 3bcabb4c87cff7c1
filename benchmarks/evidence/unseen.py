"""How well evidence holds on repositories and families that nothing was chosen on.

    python -m benchmarks.evidence.unseen PATH [--quick] [--kept-apart]

Prints, for every set of labelled logs under PATH, the mean over logs, the mean over repositories and the worst family:
a CI system, a language, a build tool. Without `--kept-apart` only the repositories that one may look at while choosing
cues, constants, weights and rules are measured; with it, the others, and no name of a log is printed.

The shipped weights were learned from logs of the first kind; `training --cross-validate` says what they are worth
where whole repositories and whole families were left out.
"""

import argparse
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path, PurePosixPath
from statistics import fmean

from benchmarks.evidence.labels import FIXES, LOGS, PAIRS, Fix, fixes, labels, pairs, read
from benchmarks.evidence.pairs import marked_lines, shares
from benchmarks.evidence.scoring import score, within
from benchmarks.evidence.split import build_tool, is_kept_apart, worst_family
from hummingbird.evidence.logs.log_analysis import analyse
from hummingbird.evidence.logs.log_preview import preview
from hummingbird.evidence.regions import CONFIDENT, FailureClass

BUDGET, SMALL_BUDGET = 4608, 2048
LAST_LINES = 6  # cut off a green log, so that the runner's word for success does not decide
QUICK_EVERY = 6
_SHORT_NAME = 3  # letters of a base name that says too little


@dataclass(slots=True)
class Measure:
    """The values of one measure, with the repository and the families of each."""

    repositories: list[str] = field(default_factory=list)
    families: list[tuple[str, ...]] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    is_rate_of_errors: bool = False

    def add(self, repository: str, families: tuple[str, ...], value: float) -> None:
        self.repositories.append(repository)
        self.families.append(families)
        self.values.append(value)

    def row(self, name: str) -> str:
        by_repository: dict[str, list[float]] = {}
        for repository, value in zip(self.repositories, self.values, strict=True):
            by_repository.setdefault(repository, []).append(value)
        sign = -1 if self.is_rate_of_errors else 1
        family, worst = worst_family(self.families, [sign * value for value in self.values])
        means = 100 * fmean(self.values), 100 * fmean(map(fmean, by_repository.values()))
        of_worst = "-" if isnan(worst) else f"{abs(100 * worst):.1f} ({family})"
        return f"| {name} | {len(self.values)} | {means[0]:.1f} | {means[1]:.1f} | {of_worst} |"


Measures = dict[str, Measure]


def measure_labels(root: Path, every: int, *, apart: bool) -> Measures:
    """Measure what previews show of what a person marked."""
    found = {
        f"{name} in {budget:,}": Measure() for budget in (BUDGET, SMALL_BUDGET) for name in ("hit", "recall", "full")
    }
    for label in [label for label in labels(root) if is_kept_apart(label.repo) is apart][::every]:
        text = label.text()
        for budget in (BUDGET, SMALL_BUDGET):
            one = score(label.lines, label.blocks, within(preview(text, budget), budget))
            for name, value in (("hit", one.hit), ("recall", one.recall), ("full", one.full)):
                found[f"{name} in {budget:,}"].add(label.repo, label.families, value)
    return found


def measure_fixes(root: Path, every: int, *, apart: bool) -> Measures:
    """Measure whether previews name the file that was fixed, and how many green logs are given a cause."""
    names = [
        f"{name}{with_green}"
        for name in ("names a changed file", "names one that is new in the red log", "region 1 names the new one")
        for with_green in ("", ", with the green log")
    ]
    found = {name: Measure() for name in names}
    alarm = found["green logs given a cause"] = Measure(is_rate_of_errors=True)
    for fix in [fix for fix in fixes(root) if is_kept_apart(fix.repo) is apart][::every]:
        red, green = read(fix.red), read(fix.green)
        families = (build_tool(green),)
        blame = analyse("\n".join(green.rstrip().split("\n")[:-LAST_LINES])).blame
        alarm.add(fix.repo, families, blame.class_ is not FailureClass.UNKNOWN and blame.confidence >= CONFIDENT)
        for baseline, note in ((None, ""), (green, ", with the green log")):
            shown = preview(red, BUDGET, baseline=baseline) if fix.named else ""
            if fix.named:
                found[f"names a changed file{note}"].add(fix.repo, families, names_a_file(shown, fix.changed))
            if fix.new:
                wanted = [path for path in fix.changed if not names_a_file(green, [path])]
                found[f"names one that is new in the red log{note}"].add(
                    fix.repo, families, names_a_file(shown, wanted)
                )
                regions = analyse(red, baseline=baseline).regions
                first = regions[0].excerpt if regions else ""
                found[f"region 1 names the new one{note}"].add(fix.repo, families, names_a_file(first, wanted))
    return found


def names_a_file(text: str, paths: Sequence[str]) -> bool:
    """Tell whether the base name of one of the files stands in a text as a whole word."""
    names = {PurePosixPath(path).name for path in paths}
    wanted = "|".join(re.escape(name) for name in names if len(name) > _SHORT_NAME)
    return bool(wanted) and re.search(rf"(?<!\w)(?:{wanted})(?!\w)", text) is not None


def measure_pairs(root: Path, *, apart: bool) -> Measures:
    """Measure what previews show of the marked lines of red logs, without and with the green log of the same job."""
    found = {"marked lines": Measure(), "marked lines, with the green log": Measure()}
    for pair in pairs(root):
        repository = pair.name.rpartition("_")[0]
        if is_kept_apart(repository) is not apart:
            continue
        red, green = read(pair.red), read(pair.green)
        marked = marked_lines(red, pair.errors)
        for measure, baseline in zip(found.values(), (None, green), strict=True):
            shown = within(preview(red, BUDGET, baseline=baseline), BUDGET)
            measure.add(repository, (build_tool(green),), shares(marked, shown).marked)
    return found


def missed_logs(root: Path) -> Iterator[str]:
    """Name the logs that one may look at and of which something marked is missing, worst first."""
    missing = []
    for label in labels(root):
        if not is_kept_apart(label.repo):
            one = score(label.lines, label.blocks, within(preview(label.text(), BUDGET), BUDGET))
            if one.recall < 1:
                missing.append((one.recall, len(label.lines), label.path.name))
    for recall, lines, name in sorted(missing):
        yield f"{100 * recall:5.1f} % of {lines:4} lines: {name}"


def missed_fixes(root: Path) -> Iterator[str]:
    """Name the pairs that one may look at and whose preview names no changed file that is new."""
    for fix in fixes(root):
        if not is_kept_apart(fix.repo) and fix.named and not _shows_fix(fix):
            yield f"{'new' if fix.new else 'old'}: {fix.name}: {', '.join(fix.changed[:4])}"


def _shows_fix(fix: Fix) -> bool:
    return names_a_file(preview(read(fix.red), BUDGET), fix.changed)


def report(root: Path, *, every: int = 1, apart: bool = False) -> None:
    """Print a table for each set under `root`."""
    which = "kept apart" if apart else "that may be looked at"
    parts: tuple[tuple[str, str, Callable[[], Measures]], ...] = (
        (LOGS, "labelled logs", lambda: measure_labels(root, every, apart=apart)),
        (PAIRS, "red and green logs with marked lines", lambda: measure_pairs(root, apart=apart)),
        (FIXES, "red and green logs with the fix", lambda: measure_fixes(root, every, apart=apart)),
    )
    for folder, title, measure in parts:
        if not (root / folder).exists():
            continue
        print(f"## Evidence: {title}, repositories {which}\n")
        print("| measure | logs | mean % | mean over repositories % | worst family % |\n|---|--:|--:|--:|---|")
        for name, values in measure().items():
            print(values.row(name) if values.values else f"| {name} | 0 | - | - | - |", flush=True)
        print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", type=Path, metavar="PATH", help=f"the folder that holds {LOGS}, {PAIRS} and {FIXES}")
    parser.add_argument("--quick", action="store_true", help="a few logs of each set")
    parser.add_argument("--kept-apart", action="store_true", help="measure the repositories that nothing was chosen on")
    parser.add_argument("--misses", action="store_true", help="name the logs of which something is missing")
    chosen = parser.parse_args()
    if chosen.misses:
        for line in (*missed_logs(chosen.logs), *missed_fixes(chosen.logs)):
            print(line)
        return
    report(chosen.logs, every=QUICK_EVERY if chosen.quick else 1, apart=chosen.kept_apart)


if __name__ == "__main__":
    main()
