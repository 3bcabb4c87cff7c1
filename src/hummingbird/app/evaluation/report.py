"""Formats scores as Markdown for people and as lines of JSON for programs."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import fmean
from typing import Any

from hummingbird.app.evaluation.cases import FAILED_CHARS
from hummingbird.app.evaluation.scores import TrialScores, VerdictGrade
from hummingbird.app.evaluation.trials import TrialResult
from hummingbird.core.text import shorten_line
from hummingbird.service.note_text import inline_code


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeCounts:
    """How often a verdict was right, wrong or left open."""

    right: int = 0
    wrong: int = 0
    abstained: int = 0

    @property
    def share(self) -> float | None:
        """Return the share of right verdicts among all."""
        every = self.right + self.wrong + self.abstained
        return self.right / every if every else None

    @property
    def precision(self) -> float | None:
        """Return the share of right verdicts among those that were given."""
        return self.right / (self.right + self.wrong) if self.right + self.wrong else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSummary:
    """Means over the trials of one model.

    A trial that could not be run scores 0; a case that expects nothing is not counted. `usd` is None if some prices are
    unknown.
    """

    model: str
    trials: int
    failed: int
    score: float | None
    verdicts: GradeCounts
    caused: GradeCounts
    rules: GradeCounts
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


def summarize_models(results: Iterable[TrialResult]) -> list[ModelSummary]:
    by_model: dict[str, list[TrialResult]] = {}
    for result in results:
        by_model.setdefault(result.trial.model, []).append(result)
    return [_summarize_model(model, found) for model, found in by_model.items()]


def _summarize_model(model: str, results: Sequence[TrialResult]) -> ModelSummary:
    scored = [result.scores for result in results if result.scores is not None]
    costs = [result.bill.cost_usd for result in results]
    usd = None if None in costs else sum((cost for cost in costs if cost is not None), Decimal(0))
    context = sum(result.bill.usage.context for result in results)
    return ModelSummary(
        model=model,
        trials=len(results),
        failed=len(results) - len(scored),
        score=_mean(result.total for result in results),
        verdicts=count_grades(grade for one in scored for grade in one.verdicts),
        caused=count_grades(grade for one in scored for grade in one.caused),
        rules=count_grades(one.rules for one in scored if one.rules is not None),
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


def count_grades(grades: Iterable[VerdictGrade]) -> GradeCounts:
    found = list(grades)
    return GradeCounts(**{grade.value: found.count(grade) for grade in VerdictGrade})


def _mean(parts: Iterable[float | None]) -> float | None:
    known = [part for part in parts if part is not None]
    return fmean(known) if known else None


def worst_mean_score(results: Sequence[TrialResult]) -> float | None:
    """Return the mean of the worst model, which --fail-under compares; None if nothing was scored."""
    return min((one.score for one in summarize_models(results) if one.score is not None), default=None)


_NONE = "–"
_GRADE_WORDS = {VerdictGrade.RIGHT: "right", VerdictGrade.WRONG: "**wrong**", VerdictGrade.ABSTAINED: "abstains"}
_CASE_COLUMNS = (
    "| case | score | verdict | by the change | cause | evidence | findings | false claims | rules | USD | tokens | s "
    "| turns |"
)
_MODEL_COLUMNS = (
    "| model | runs | failed | score | verdict right | when it says one | by the change right | when it says so "
    "| cause found | evidence | findings | false claims | rules right | USD a run | cached | s | turns |"
)


def results_markdown(results: Sequence[TrialResult]) -> str:
    by_model: dict[str, list[TrialResult]] = {}
    for result in results:
        by_model.setdefault(result.trial.model, []).append(result)
    parts = [part for model, found in by_model.items() for part in _model_section(model, found)]
    return "\n".join(
        [*parts, "## Together", "", *_table_head(_MODEL_COLUMNS), *map(_model_row, summarize_models(results))]
    )


def _model_section(model: str, results: Sequence[TrialResult]) -> list[str]:
    remarks = [
        f"- {inline_code(result.trial.case.name)}: {said}" for result in results for said in _result_remarks(result)
    ]
    return [
        f"## {inline_code(model)}",
        "",
        *_table_head(_CASE_COLUMNS),
        *map(_case_row, results),
        "",
        *remarks,
        *[""] * bool(remarks),
    ]


def _result_remarks(result: TrialResult) -> Iterator[str]:
    if result.scores is None:
        yield f"failed: {inline_code(result.failed, FAILED_CHARS)}"
        return
    yield from result.scores.claims.fared
    if result.scores.total is None:
        yield "not scored: `expected` of its case.json says nothing"
    if broken := result.scores.broken:
        yield f"must not be in an answer: {', '.join(map(inline_code, broken))}"


def _table_head(heads: str) -> tuple[str, str]:
    columns = heads.count("|") - 2
    return heads, "|---|" + "--:|" * columns


def _case_row(result: TrialResult) -> str:
    trial, found = result.trial, result.scores
    name = inline_code(trial.case.name) + (f" #{trial.number}" if trial.number > 1 else "")
    if found is None:
        cells = ["0.00", "failed", *([_NONE] * 6)]
    else:
        cells = [
            _share_cell(found.total),
            _grades_cell(found.verdicts),
            _grades_cell(found.caused),
            _share_cell(found.cause),
            _share_cell(found.evidence),
            _findings_cell(found),
            f"{found.claims.wrong} of {found.claims.made}",
            _grades_cell([found.rules] if found.rules else []),
        ]
    usage = result.bill.usage
    costs = [
        _usd_cell(result.bill.cost_usd),
        f"{usage.context + usage.output:,}",
        f"{result.seconds:.1f}",
        str(result.turns),
    ]
    return f"| {' | '.join([name, *cells, *costs])} |"


def _model_row(one: ModelSummary) -> str:
    cells = [
        inline_code(one.model),
        str(one.trials),
        str(one.failed),
        _share_cell(one.score),
        _share_cell(one.verdicts.share),
        _share_cell(one.verdicts.precision),
        _share_cell(one.caused.share),
        _share_cell(one.caused.precision),
        _share_cell(one.cause),
        _share_cell(one.evidence),
        _share_cell(one.found),
        f"{one.wrong_claims} of {one.claims}",
        _share_cell(one.rules.share),
        _usd_cell(one.usd_each),
        f"{one.cache_share:.0%}",
        f"{one.seconds:.1f}",
        f"{one.turns:.1f}",
    ]
    return f"| {' | '.join(cells)} |"


def _grades_cell(grades: Sequence[VerdictGrade]) -> str:
    return ", ".join(_GRADE_WORDS[grade] for grade in grades) or _NONE


def _findings_cell(found: TrialScores) -> str:
    if found.found is None:
        return _NONE
    return _share_cell(found.found) + (f", {found.extra} more" if found.extra else "")


def _share_cell(part: float | None) -> str:
    return _NONE if part is None else f"{part:.2f}"


def _usd_cell(cost: Decimal | None) -> str:
    return "unknown" if cost is None else f"{cost:.4f}"


def results_json_lines(results: Sequence[TrialResult]) -> str:
    """Return one JSON object per run, then one per model; `kind` tells them apart."""
    objects = [*map(_run_object, results), *map(_model_object, summarize_models(results))]
    return "\n".join(json.dumps(one, ensure_ascii=True) for one in objects)


def _run_object(result: TrialResult) -> dict[str, Any]:
    trial, usage = result.trial, result.bill.usage
    return {
        "kind": "run",
        "case": trial.case.name,
        "model": trial.model,
        "workflow": result.workflow,
        "number": trial.number,
        "replayed": trial.recording is not None,
        "failed": shorten_line(result.failed, FAILED_CHARS) or None,
        "score": _round_score(result.total),
        "scores": None if result.scores is None else _scores_object(result.scores),
        "usd": _to_float(result.bill.cost_usd),
        "tokens_in": usage.context,
        "tokens_out": usage.output,
        "cache_share": round(result.bill.cache_share, 4),
        "seconds": round(result.seconds, 3),
        "turns": result.turns,
    }


def _scores_object(found: TrialScores) -> dict[str, Any]:
    return {
        "verdict": [grade.value for grade in found.verdicts],
        "caused_by_change": [grade.value for grade in found.caused],
        "stated": [{"verdict": one.verdict, "caused_by_change": one.caused} for one in found.said],
        "cause_found": found.cause,
        "evidence": found.evidence,
        "findings": found.found,
        "findings_extra": found.extra,
        "claims": found.claims.made,
        "claims_false": found.claims.wrong,
        "fared": list(found.claims.fared),
        "must_not": list(found.broken),
        "rules": found.rules,
    }


def _model_object(one: ModelSummary) -> dict[str, Any]:
    return {
        "kind": "model",
        "model": one.model,
        "runs": one.trials,
        "failed": one.failed,
        "score": _round_score(one.score),
        "verdict": _grades_object(one.verdicts),
        "caused_by_change": _grades_object(one.caused),
        "rules": _grades_object(one.rules),
        "cause_found": one.cause,
        "evidence": one.evidence,
        "findings": one.found,
        "findings_extra": one.extra,
        "claims": one.claims,
        "claims_false": one.wrong_claims,
        "must_not": one.broken,
        "usd": _to_float(one.usd),
        "usd_each": _to_float(one.usd_each),
        "cache_share": round(one.cache_share, 4),
        "seconds": round(one.seconds, 3),
        "turns": round(one.turns, 2),
    }


def _grades_object(one: GradeCounts) -> dict[str, Any]:
    return {"right": one.right, "wrong": one.wrong, "abstained": one.abstained, "precision": one.precision}


def _round_score(score: float | None) -> float | None:
    return None if score is None else round(score, 4)


def _to_float(cost: Decimal | None) -> float | None:
    return None if cost is None else float(cost)
