"""Whether a stated confidence means what it says, and how often a green log is given a cause.

    python -m benchmarks.evidence.reliability PATH [--quick] [--kept-apart] [--wrong]

The share of rightly blamed logs by stated confidence, with Brier scores: for failed logs alone, and with the logs of
passed jobs among them, for which any cause is wrong. Green logs are read whole, without their last lines, and without
any line that states a successful exit, so that the runner's word for success does not decide.

What is right comes from people: the kind of failure that they gave to a pair with its fix (a change repaired it, so
chance and machines are not to blame), the lines that they marked in a log (the rule must match one of them, or they
must get the same class alone), and whether they call a job flaky.
"""

import argparse
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from benchmarks.evidence.jobs import jobs
from benchmarks.evidence.labels import FIXES, JOBS, LOGS, PAIRS, Label, fixes, labels, pairs, read
from benchmarks.evidence.split import build_tool, is_kept_apart, worst_family
from hummingbird.evidence.classification.classifier import classify_region
from hummingbird.evidence.logs.log_analysis import analyse
from hummingbird.evidence.regions import CONFIDENT, TRANSIENT_CLASSES, Blame, FailureClass

LAST_LINES = 6  # cut off a green log: the runner's word for success is among them
QUICK_EVERY = 6
STEPS = (0.0, 0.5, 0.75, 0.85, 0.9, 1.01)
_STATES_SUCCESS = re.compile(r"exited with 0\b|Job succeeded|Finished: SUCCESS|completed with exit code 0")
_JOBS_REPOSITORY = "gitlab-veloren-veloren"  # all labelled jobs are of this one
_LASTING = frozenset({FailureClass.CODE, FailureClass.TEST, FailureClass.CONFIGURATION})
_RIGHT_FOR_KIND = {
    "Test": frozenset({FailureClass.TEST, FailureClass.CODE}),
    "Compilation": frozenset({FailureClass.CODE}),
    "Checkstyle": frozenset({FailureClass.CODE}),
    "License": frozenset({FailureClass.CODE, FailureClass.CONFIGURATION}),
    "Missing library": frozenset({FailureClass.CONFIGURATION}),
}


@dataclass(frozen=True, slots=True)
class JudgedBlame:
    """What one log was blamed on, and whether that is right; None if nobody can tell."""

    log: str
    repository: str
    families: tuple[str, ...]
    blame: Blame
    right: bool | None
    failed: bool = True

    @property
    def claims(self) -> bool:
        return self.blame.class_ is not FailureClass.UNKNOWN

    @property
    def is_alarm(self) -> bool:
        return not self.failed and self.claims and self.blame.confidence >= CONFIDENT


def cut_end(log: str) -> str:
    """Return the log without its last lines."""
    return "\n".join(log.rstrip().split("\n")[:-LAST_LINES])


def without_success(log: str) -> str:
    """Return the log without the lines that state a successful exit."""
    return "\n".join(line for line in log.split("\n") if not _STATES_SUCCESS.search(line))


GREEN_VIEWS: dict[str, Callable[[str], str]] = {
    "whole": lambda log: log,
    f"without the last {LAST_LINES} lines": cut_end,
    "without every line that states success": without_success,
}


def judge_green_logs(root: Path, every: int, *, apart: bool) -> dict[str, list[JudgedBlame]]:
    """Analyse the logs of passed jobs, in each view."""
    logs = [(fix.name, fix.repo, fix.green) for fix in fixes(root)] if (root / FIXES).exists() else []
    if (root / PAIRS).exists():
        logs += [(pair.name, pair.name.rpartition("_")[0], pair.green) for pair in pairs(root)]
    found: dict[str, list[JudgedBlame]] = {view: [] for view in GREEN_VIEWS}
    for name, repository, path in [log for log in logs if is_kept_apart(log[1]) is apart][::every]:
        text = read(path)
        families = (build_tool(text),)
        for view, change in GREEN_VIEWS.items():
            blame = analyse(change(text)).blame
            found[view].append(JudgedBlame(name, repository, families, blame, right=False, failed=False))
    return found


def judge_failed_logs(root: Path, every: int, *, apart: bool) -> Iterator[JudgedBlame]:
    """Analyse the logs of failed jobs and compare the class with what people said."""
    if (root / FIXES).exists():
        for fix in [fix for fix in fixes(root) if is_kept_apart(fix.repo) is apart][::every]:
            text = read(fix.red)
            blame = analyse(text).blame
            right = blame.class_ in _RIGHT_FOR_KIND.get(fix.kind, _LASTING)
            yield JudgedBlame(fix.name, fix.repo, (build_tool(text),), blame, right)
    if (root / LOGS).exists():
        for label in [label for label in labels(root) if is_kept_apart(label.repo) is apart][::every]:
            blame = analyse(label.text()).blame
            yield JudgedBlame(label.path.name, label.repo, label.families, blame, is_in_label(blame, label))
    if (root / JOBS).exists() and is_kept_apart(_JOBS_REPOSITORY) is apart:
        for job in jobs(root / JOBS)[::every]:
            blame = analyse("\n".join(line.text for line in job.lines)).blame
            right = (blame.class_ in TRANSIENT_CLASSES) is job.comes_and_goes
            yield JudgedBlame(job.name, _JOBS_REPOSITORY, ("gitlab",), blame, right)


def is_in_label(blame: Blame, label: Label) -> bool | None:
    """Tell whether the marked lines support the blame; None if there is none, or no rule knows the lines."""
    if blame.class_ is FailureClass.UNKNOWN:
        return None
    lines = [line.strip() for block in label.blocks for line in block.split("\n")]
    if any(classify_region([line]).rule == blame.rule for line in lines):
        return True
    alone = classify_region(lines)
    return None if alone.class_ is FailureClass.UNKNOWN else alone.class_ is blame.class_


def brier_score(judged: Iterable[JudgedBlame]) -> float:
    """Return the mean square of what stated confidences are off by. A log without a claim counts as a claim of 0."""
    return fmean((one.blame.confidence * one.claims - bool(one.right)) ** 2 for one in judged if one.right is not None)


def _mean_over_repositories(judged: Sequence[JudgedBlame], values: Sequence[float]) -> float:
    by_repository: dict[str, list[float]] = {}
    for one, value in zip(judged, values, strict=True):
        by_repository.setdefault(one.repository, []).append(value)
    return fmean(map(fmean, by_repository.values()))


def _alarm_row(view: str, judged: Sequence[JudgedBlame]) -> str:
    alarms = [100.0 * one.is_alarm for one in judged]
    family, worst = worst_family([one.families for one in judged], [-alarm for alarm in alarms])
    over = _mean_over_repositories(judged, alarms)
    return f"| {view} | {len(judged)} | {fmean(alarms):.1f} | {over:.1f} | {abs(worst):.1f} ({family}) |"


def _reliability_rows(failed: Sequence[JudgedBlame], green: Sequence[JudgedBlame]) -> Iterator[str]:
    for low, high in pairwise(STEPS):
        cells = []
        for judged in (failed, [*failed, *green]):
            inside = [one for one in judged if one.claims and low <= one.blame.confidence < high]
            known = [one for one in inside if one.right is not None]
            stated = f"{fmean(one.blame.confidence for one in known):.2f}" if known else "-"
            right = f"{fmean(bool(one.right) for one in known):.2f}" if known else "-"
            cells += [str(len(known)), stated, right]
        yield f"| {low:.2f} to {min(high, 1):.2f} | {' | '.join(cells)} |"


def report(root: Path, *, every: int = 1, apart: bool = False) -> None:
    which = "kept apart" if apart else "that may be looked at"
    print(f"## Confidence: repositories {which}\n")
    print("| green logs given a cause | logs | mean % | over repositories % | worst family % |\n|---|--:|--:|--:|---|")
    green = judge_green_logs(root, every, apart=apart)
    for view, judged in green.items():
        print(_alarm_row(view, judged) if judged else f"| {view} | 0 | - | - | - |", flush=True)
    failed = list(judge_failed_logs(root, every, apart=apart))
    cut = green[f"without the last {LAST_LINES} lines"]
    if not failed:
        return
    print("\n| stated | failed logs | mean stated | right | with green ones | mean stated | right |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for row in _reliability_rows(failed, cut):
        print(row)
    sure = [one for one in failed if one.right is not None and one.claims and one.blame.confidence >= CONFIDENT]
    rights = [bool(one.right) for one in sure]
    family, worst = worst_family([one.families for one in sure], rights)
    spoke = len([one for one in failed if one.claims and one.blame.confidence >= CONFIDENT]) / len(failed)
    print(f"\nBrier score: {brier_score(failed):.3f} for failed logs, {brier_score([*failed, *cut]):.3f} with green.")
    print(
        f"Sure of {spoke:.0%} of the failed logs; right in {fmean(rights):.1%} of those that can be judged, "
        f"worst family {worst:.1%} ({family}).\n"
    )


def name_wrong_ones(root: Path, every: int) -> Iterator[str]:
    """Name the logs that one may look at and whose cause is wrong though the rule is sure."""
    for view, judged in judge_green_logs(root, every, apart=False).items():
        yield from (f"green, {view}: {_line(one)}" for one in judged if one.is_alarm)
    for one in judge_failed_logs(root, every, apart=False):
        if one.claims and one.right is False and one.blame.confidence >= CONFIDENT:
            yield f"failed: {_line(one)}"


def _line(one: JudgedBlame) -> str:
    return f"{one.log}: {one.blame.rule} {one.blame.confidence:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", type=Path, metavar="PATH", help=f"the folder that holds {FIXES}, {LOGS} and {JOBS}")
    parser.add_argument("--quick", action="store_true", help="a few logs of each set")
    parser.add_argument("--kept-apart", action="store_true", help="measure the repositories that nothing was chosen on")
    parser.add_argument("--wrong", action="store_true", help="name the logs with a wrong cause")
    chosen = parser.parse_args()
    every = QUICK_EVERY if chosen.quick else 1
    if chosen.wrong:
        print("\n".join(name_wrong_ones(chosen.logs, every)))
    else:
        report(chosen.logs, every=every, apart=chosen.kept_apart)


if __name__ == "__main__":
    main()
