"""What many results come to, for each model. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import fmean

from hummingbird.assembly.evaluation.scores import Grade
from hummingbird.assembly.evaluation.trials import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Graded:
    """How often a verdict was right, wrong or left open."""

    right: int = 0
    wrong: int = 0
    abstained: int = 0

    @property
    def share(self) -> float | None:
        """Of all, those that were right."""
        every = self.right + self.wrong + self.abstained
        return self.right / every if every else None

    @property
    def precision(self) -> float | None:
        """Of those that said something, those that were right."""
        return self.right / (self.right + self.wrong) if self.right + self.wrong else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Means over the trials of one model; a trial that could not be run scores 0, and a case that expects nothing is
    in none of them. `usd` None: some prices are unknown."""

    model: str
    trials: int
    failed: int
    score: float | None
    verdicts: Graded
    caused: Graded
    rules: Graded
    cause: float | None
    evidence: float | None
    found: float | None
    extra: int
    claims: int
    wrong_claims: int
    broken: int
    usd: Decimal | None
    usd_each: Decimal | None
    cache_share: float
    seconds: float
    turns: float


def summaries(results: Iterable[Result]) -> list[Summary]:
    by_model: dict[str, list[Result]] = {}
    for result in results:
        by_model.setdefault(result.trial.model, []).append(result)
    return [_summary(model, found) for model, found in by_model.items()]


def _summary(model: str, results: Sequence[Result]) -> Summary:
    scored = [result.scores for result in results if result.scores is not None]
    costs = [result.bill.cost_usd for result in results]
    usd = None if None in costs else sum((cost for cost in costs if cost is not None), Decimal(0))
    context = sum(result.bill.usage.context for result in results)
    return Summary(
        model=model,
        trials=len(results),
        failed=len(results) - len(scored),
        score=_mean(result.total for result in results),
        verdicts=graded(grade for one in scored for grade in one.verdicts),
        caused=graded(grade for one in scored for grade in one.caused),
        rules=graded(one.rules for one in scored if one.rules is not None),
        cause=_mean(one.cause for one in scored),
        evidence=_mean(one.evidence for one in scored),
        found=_mean(one.found for one in scored),
        extra=sum(one.extra for one in scored),
        claims=sum(one.claims.made for one in scored),
        wrong_claims=sum(one.claims.wrong for one in scored),
        broken=sum(bool(one.broken) for one in scored),
        usd=usd,
        usd_each=None if usd is None else usd / len(results),
        cache_share=sum(result.bill.usage.cache_read for result in results) / context if context else 0.0,
        seconds=fmean(result.seconds for result in results),
        turns=fmean(result.turns for result in results),
    )


def graded(grades: Iterable[Grade]) -> Graded:
    found = list(grades)
    return Graded(**{grade.value: found.count(grade) for grade in Grade})


def _mean(parts: Iterable[float | None]) -> float | None:
    known = [part for part in parts if part is not None]
    return fmean(known) if known else None


def overall(results: Sequence[Result]) -> float | None:
    """What --fail-under looks at: the worst model's mean. None where nothing was scored."""
    return min((one.score for one in summaries(results) if one.score is not None), default=None)
