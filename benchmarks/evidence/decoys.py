"""Whether a merge request is blamed for its own failure, and not for that of another one.

    python -m benchmarks.evidence.decoys PATH [--quick] [--kept-apart] [--wrong]

The failure is a red log of a pair with its fix; the target branch was green three times. The diff is the real fix, or a
decoy: another fix of the same project that shares no file with it and changes fewer than 60 files. Counted are verdicts
against the change by rules that look at the diff, and beside them what a compiler's refusal alone says.
"""

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from benchmarks.evidence.labels import FIXES, Fix, fixes, read
from benchmarks.evidence.split import build_tool, is_kept_apart, worst_family
from hummingbird.core.verdicts import FailureOrigin
from hummingbird.evidence.logs.log_analysis import analyse
from hummingbird.evidence.regions import EvidenceAnalysis
from hummingbird.evidence.verdict_rules import JobFacts, TargetHistory, judge_job

MOST_FILES = 60  # a decoy with more would share a name with anything
QUICK_EVERY = 6
_GREEN = TargetHistory(branch="main", passed=(True, True, True))
_REFUSED = "refused-here-alone"
_BY_DIFF = ("names-a-changed-file", "tests-a-changed-file", "changes-the-configuration")


@dataclass(frozen=True, slots=True)
class BlamedDiff:
    """What was said of one failure and one diff; `rule` decided against the change, "" if none did."""

    fix: Fix
    family: str
    is_decoy: bool
    rule: str
    file: str = ""


def judge_diffs(root: Path, every: int, *, apart: bool) -> Iterator[BlamedDiff]:
    """Judge each failure with its own fix and with every decoy."""
    known = [fix for fix in fixes(root) if is_kept_apart(fix.repo) is apart][::every]
    for fix in known:
        text = read(fix.red)
        analysis, family = analyse(text), build_tool(text)
        yield judge_diff(fix, family, analysis, fix.changed, is_decoy=False)
        for other in known:
            if other.repo == fix.repo and not {*other.changed} & {*fix.changed} and len(other.changed) < MOST_FILES:
                yield judge_diff(fix, family, analysis, other.changed, is_decoy=True)


def judge_diff(
    fix: Fix, family: str, analysis: EvidenceAnalysis, changed: Sequence[str], *, is_decoy: bool
) -> BlamedDiff:
    excerpts = "\n".join(region.excerpt for region in analysis.regions)
    said = judge_job(JobFacts(name="job", analysis=analysis, text=excerpts, target=_GREEN), tuple(changed))
    if said.origin is not FailureOrigin.CHANGE:
        return BlamedDiff(fix, family, is_decoy, "")
    reasons = {reason.sign: reason for reason in said.reasons if reason.speaks_for is FailureOrigin.CHANGE}
    rule = next(sign for sign in (*_BY_DIFF, _REFUSED) if sign in reasons)
    return BlamedDiff(fix, family, is_decoy, rule, next(iter(reasons[rule].names), ""))


def _row(what: str, judged: Sequence[BlamedDiff], *, refused: bool) -> str:
    if not judged:
        return f"| {what} | 0 | - | - | - |"
    blamed = [100.0 * bool(one.rule and (one.rule == _REFUSED) is refused) for one in judged]
    by_repository: dict[str, list[float]] = {}
    for one, value in zip(judged, blamed, strict=True):
        by_repository.setdefault(one.fix.repo, []).append(value)
    sign = -1 if judged[0].is_decoy else 1
    family, worst = worst_family([(one.family,) for one in judged], [sign * value for value in blamed])
    over = fmean(map(fmean, by_repository.values()))
    return f"| {what} | {len(judged)} | {fmean(blamed):.1f} | {over:.1f} | {abs(worst):.1f} ({family}) |"


def report(root: Path, *, every: int = 1, apart: bool = False) -> None:
    which = "kept apart" if apart else "that may be looked at"
    judged = list(judge_diffs(root, every, apart=apart))
    real, decoys = ([one for one in judged if one.is_decoy is kind] for kind in (False, True))
    print(f"## Verdicts on diffs: repositories {which}\n")
    print("| blamed | diffs | mean % | over repositories % | worst family % |\n|---|--:|--:|--:|---|")
    print(_row("the real fix", real, refused=False))
    print(_row("another fix of the project", decoys, refused=False))
    print(_row("the real fix, only because a compiler refuses the code", real, refused=True))
    print(_row("another fix, only because a compiler refuses the code", decoys, refused=True))
    for kind, name in ((real, "real"), (decoys, "another")):
        print(f"\n{name}: {', '.join(f'{rule} {count}' for rule, count in _count_rules(kind)) or 'nothing'}")
    print()


def _count_rules(judged: Sequence[BlamedDiff]) -> list[tuple[str, int]]:
    return Counter(one.rule for one in judged if one.rule).most_common()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", type=Path, metavar="PATH", help=f"the folder that holds {FIXES}")
    parser.add_argument("--quick", action="store_true", help="a few logs")
    parser.add_argument("--kept-apart", action="store_true", help="measure the repositories that nothing was chosen on")
    parser.add_argument("--wrong", action="store_true", help="name the failures whose decoys are blamed")
    chosen = parser.parse_args()
    every = QUICK_EVERY if chosen.quick else 1
    if not chosen.wrong:
        report(chosen.logs, every=every, apart=chosen.kept_apart)
        return
    for one in judge_diffs(chosen.logs, every, apart=False):
        if one.is_decoy and one.rule not in ("", _REFUSED):
            print(f"{one.fix.name}: {one.rule} {one.file}")


if __name__ == "__main__":
    main()
