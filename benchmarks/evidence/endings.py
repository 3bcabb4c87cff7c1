"""Fit how the last lines of a log tell a failed job from a passed one, where no exit status does.

    python -m benchmarks.evidence.endings PATH

Takes every line that states an exit status out of red and green logs of repositories that may be looked at, and fits a
logistic regression in which each repository counts by the square root of its logs, and red as much as green. Prints the
constants for `hummingbird.evidence.logs.job_ending` and, with repositories and with whole families left out of the fit,
how well it does. Needs no library.
"""

import argparse
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import exp, log1p, sqrt
from pathlib import Path

from benchmarks.evidence.labels import FIXES, LOGS, PAIRS, fixes, labels, pairs, read
from benchmarks.evidence.split import build_tool, is_kept_apart
from hummingbird.evidence.logs.job_ending import ending_signs
from hummingbird.evidence.logs.log_preview import LogPreview

FOLDS = 5
SIGNS = 4
_STEPS, _RATE = 400, 0.5
_RIDGE = 1e-4
_STATUS = re.compile(
    r"exited with \d|[Yy]our build exited|[Yy]our build has been stopped|[Pp]rocess completed with exit code"
    r"|ERROR: Job failed|Job succeeded|No output has been received in the last|job exceeded the maximum"
    r"|marked build as|Finished: [SF]"
)


@dataclass(frozen=True, slots=True)
class JobEnd:
    """The signs at the end of one log, as the fit sees them."""

    repository: str
    families: tuple[str, ...]
    signs: tuple[float, ...]  # a constant, trouble, success, a step that passed
    failed: bool


def read_ends(root: Path) -> Iterator[JobEnd]:
    """Read the logs as they are, if they state no failed exit, and without what they state."""
    logs = [(fix.repo, path, failed) for fix in fixes(root) for path, failed in ((fix.red, True), (fix.green, False))]
    for pair in pairs(root):
        repository = pair.name.rpartition("_")[0]
        logs += [(repository, pair.red, True), (repository, pair.green, False)]
    logs += [(label.repo, label.path, True) for label in labels(root)]
    for repository, path, failed in logs:
        if is_kept_apart(repository):
            continue
        text = read(path)
        families = (build_tool(text), path.parts[-3])
        for one in (text, "\n".join(line for line in text.split("\n") if not _STATUS.search(line))):
            reading = LogPreview()
            reading.feed(one.encode("utf-8", "replace"))
            looked = reading.score()
            if not looked.steps.failed:
                trouble, success, passed = ending_signs(looked)
                yield JobEnd(repository, families, (1.0, log1p(trouble), log1p(success), float(passed)), failed)


def fit(ends: Sequence[JobEnd]) -> list[float]:
    """Return the weights of the signs, by gradient descent; zeros if there is nothing to learn from."""
    logs = Counter(end.repository for end in ends)
    shares = [1 / sqrt(logs[end.repository]) for end in ends]
    red = sum(share for share, end in zip(shares, ends, strict=True) if end.failed)
    shares = [share / (red if end.failed else sum(shares) - red) / 2 for share, end in zip(shares, ends, strict=True)]
    weights = [0.0] * SIGNS
    for _ in range(_STEPS):
        slopes = [_RIDGE * weight for weight in weights]
        for end, share in zip(ends, shares, strict=True):
            miss = share * (likelihood(end, weights) - end.failed)
            for at, sign in enumerate(end.signs):
                slopes[at] += miss * sign
        weights = [weight - _RATE * slope for weight, slope in zip(weights, slopes, strict=True)]
    return weights


def likelihood(end: JobEnd, weights: Sequence[float]) -> float:
    return 1 / (1 + exp(-sum(weight * sign for weight, sign in zip(weights, end.signs, strict=True))))


def rank_quality(ends: Sequence[JobEnd], values: Sequence[float]) -> float:
    """Return how often a red log gets a higher value than a green one; ties count half."""
    red = [value for end, value in zip(ends, values, strict=True) if end.failed]
    green = [value for end, value in zip(ends, values, strict=True) if not end.failed]
    wins = sum((one > other) + (one == other) / 2 for one in red for other in green)
    return wins / (len(red) * len(green) or 1)


def left_out_values(ends: Sequence[JobEnd], part: Callable[[JobEnd], object]) -> list[float]:
    """Return the value of each log by a fit without the logs of its part."""
    fits = {one: fit([end for end in ends if part(end) != one]) for one in {part(end) for end in ends}}
    return [likelihood(end, fits[part(end)]) for end in ends]


def report(root: Path) -> None:
    ends = list(read_ends(root))
    print(f"{len(ends)} logs, {sum(end.failed for end in ends)} of failed jobs.\n")
    names = ("constant", "log of 1 + lines of trouble", "log of 1 + lines of success", "a step passed")
    for name, weight in zip(names, fit(ends), strict=True):
        print(f"- {name}: {weight:.1f}")
    print("\n| left out | a red log ranks above a green one | green logs above 0.85 |\n|---|--:|--:|")
    folds = {repository: at % FOLDS for at, repository in enumerate(sorted({end.repository for end in ends}))}
    for what, part in (
        (f"one fifth of the repositories in turn ({FOLDS} fits)", lambda end: folds[end.repository]),
        ("each build tool in turn", lambda end: end.families[0]),
        ("each set in turn", lambda end: end.families[1]),
    ):
        values = left_out_values(ends, part)
        green = [value for end, value in zip(ends, values, strict=True) if not end.failed]
        print(f"| {what} | {rank_quality(ends, values):.3f} | {sum(value > 0.85 for value in green)} of {len(green)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", type=Path, metavar="PATH", help=f"the folder that holds {FIXES}, {LOGS} and {PAIRS}")
    report(parser.parse_args().logs)


if __name__ == "__main__":
    main()
