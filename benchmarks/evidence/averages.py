"""Scores of many logs brought together: over logs, over repositories first, and how far chance reaches."""

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from benchmarks.evidence.scoring import Score

DRAWS = 1000
SEED = 7


@dataclass(frozen=True, slots=True)
class Judged:
    """One log's score and what it took."""

    repo: str
    source: str
    score: Score
    cpu_s: float
    size: int
    over: bool  # the strategy gave more than it was allowed


@dataclass(frozen=True, slots=True)
class Averages:
    """Shares are percent; `macro` is recall per repository, then over them, and `spread` half its 95 % interval."""

    logs: int
    hit: float
    recall: float
    full: float
    verbatim: float
    macro: float
    spread: float
    ms_per_mb: float
    over: int

    @property
    def mb_per_s(self) -> float:
        return 1000 / self.ms_per_mb if self.ms_per_mb else float("inf")


def averages(judged: Sequence[Judged]) -> Averages:
    def percent(share: Callable[[Score], float]) -> float:
        return 100 * fmean(share(one.score) for one in judged)

    repos = [fmean(one.score.recall for one in group) for group in grouped(judged, lambda one: one.repo).values()]
    return Averages(
        logs=len(judged),
        hit=percent(lambda score: score.hit),
        recall=percent(lambda score: score.recall),
        full=percent(lambda score: score.full),
        verbatim=percent(lambda score: score.verbatim),
        macro=100 * fmean(repos),
        spread=100 * half_interval(repos),
        ms_per_mb=1e9 * sum(one.cpu_s for one in judged) / sum(one.size for one in judged),
        over=sum(one.over for one in judged),
    )


def grouped(judged: Iterable[Judged], key: Callable[[Judged], str]) -> dict[str, list[Judged]]:
    groups: dict[str, list[Judged]] = defaultdict(list)
    for one in judged:
        groups[key(one)].append(one)
    return dict(sorted(groups.items()))


def half_interval(values: Sequence[float]) -> float:
    """Half of the 95 % bootstrap interval of the mean; logs of one repository are alike, so these are repositories."""
    chance = random.Random(SEED)
    means = sorted(fmean(chance.choices(values, k=len(values))) for _ in range(DRAWS))
    return (means[int(0.975 * DRAWS)] - means[int(0.025 * DRAWS)]) / 2
