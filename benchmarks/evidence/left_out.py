"""What weights are worth for repositories they were not learned from: folds, and the product's previews with them."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from benchmarks.evidence.averages import Averages, Judged, averages
from benchmarks.evidence.examples import Example
from benchmarks.evidence.scoring import score, within
from hummingbird.evidence.logs.line_scores import ScoreWeights
from hummingbird.evidence.logs.log_preview import LogPreview, ScoredLog, score_log
from hummingbird.evidence.logs.log_reader import CandidateLines

Fit = Callable[[Sequence[int]], ScoreWeights]  # from the places of the examples to learn from


class Weighed(LogPreview):
    """The product's preview of a log that was read already, with other weights."""

    def __init__(self, kept: CandidateLines, weights: ScoreWeights) -> None:
        super().__init__()
        self._by_weights = score_log(kept, weights=weights)

    def score(self) -> ScoredLog:
        return self._by_weights


def folds(repos: Sequence[str], count: int | None = None) -> list[set[str]]:
    """Each repository in one fold: one fold each, or so many of about the same number of logs."""
    sizes = sorted(Counter(repos).items(), key=lambda item: (-item[1], item[0]))
    if count is None or count >= len(sizes):
        return [{repo} for repo, _ in sizes]
    found: list[set[str]] = [set() for _ in range(count)]
    held = [0] * count
    for repo, logs in sizes:
        smallest = held.index(min(held))
        found[smallest].add(repo)
        held[smallest] += logs
    return found


def by_unseen(
    examples: Sequence[Example],
    fit: Fit,
    count: int | None = None,
    group: Callable[[Example], str] = lambda one: one.label.repo,
) -> Iterator[tuple[Example, ScoreWeights]]:
    """Each example with weights that were learned without its repository, or without the family that `group` names."""
    repos = list(map(group, examples))
    for fold in folds(repos, count):
        weights = fit([at for at, repo in enumerate(repos) if repo not in fold])
        yield from ((one, weights) for one, repo in zip(examples, repos, strict=True) if repo in fold)


def judged(pairs: Iterator[tuple[Example, ScoreWeights]], budgets: Sequence[int]) -> dict[int, Averages]:
    found: dict[int, list[Judged]] = {budget: [] for budget in budgets}
    for one, weights in pairs:
        reading = Weighed(one.kept, weights)
        for budget in budgets:
            found[budget].append(_judged(one, reading.text(budget), budget))
    return {budget: averages(of) for budget, of in found.items()}


def _judged(one: Example, shown: str, budget: int) -> Judged:
    kept = within(shown, budget)
    label = one.label
    points = score(label.lines, label.blocks, kept)
    return Judged(label.repo, label.source, points, 0.0, one.kept.size, kept != shown)
