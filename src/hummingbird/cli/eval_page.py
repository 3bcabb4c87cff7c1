"""Scores as Markdown, for people and for files, and as lines of JSON, for programs. Pure."""

import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from hummingbird.assembly.evaluation.scores import Grade, Scores
from hummingbird.assembly.evaluation.summary import Graded, Summary, summaries
from hummingbird.assembly.evaluation.trials import Result
from hummingbird.domain.eval_limits import FAILED_CHARS
from hummingbird.domain.text import shortened
from hummingbird.service.wording import code

_NONE = "–"
_SIGNS = {Grade.RIGHT: "right", Grade.WRONG: "**wrong**", Grade.ABSTAINED: "abstains"}
_CASES = (
    "| case | score | verdict | by the change | cause | evidence | findings | false claims | rules | USD | tokens | s "
    "| turns |"
)
_MODELS = (
    "| model | runs | failed | score | verdict right | when it says one | by the change right | when it says so "
    "| cause found | evidence | findings | false claims | rules right | USD a run | cached | s | turns |"
)


def markdown(results: Sequence[Result]) -> str:
    by_model: dict[str, list[Result]] = {}
    for result in results:
        by_model.setdefault(result.trial.model, []).append(result)
    parts = [part for model, found in by_model.items() for part in _of_model(model, found)]
    return "\n".join([*parts, "## Together", "", *_headed(_MODELS), *map(_model_row, summaries(results))])


def _of_model(model: str, results: Sequence[Result]) -> list[str]:
    remarks = [f"- {code(result.trial.case.name)}: {said}" for result in results for said in _remarks(result)]
    return [f"## {code(model)}", "", *_headed(_CASES), *map(_case_row, results), "", *remarks, *[""] * bool(remarks)]


def _remarks(result: Result) -> Iterator[str]:
    if result.scores is None:
        yield f"failed: {code(result.failed, FAILED_CHARS)}"
        return
    yield from result.scores.claims.fared
    if result.scores.total is None:
        yield "not scored: `expected` of its case.json says nothing"
    if broken := result.scores.broken:
        yield f"must not be in an answer: {', '.join(map(code, broken))}"


def _headed(heads: str) -> tuple[str, str]:
    columns = heads.count("|") - 2
    return heads, "|---|" + "--:|" * columns


def _case_row(result: Result) -> str:
    trial, found = result.trial, result.scores
    name = code(trial.case.name) + (f" #{trial.number}" if trial.number > 1 else "")
    if found is None:
        cells = ["0.00", "failed", *([_NONE] * 6)]
    else:
        cells = [
            _share(found.total),
            _grades(found.verdicts),
            _grades(found.caused),
            _share(found.cause),
            _share(found.evidence),
            _findings(found),
            f"{found.claims.wrong} of {found.claims.made}",
            _grades([found.rules] if found.rules else []),
        ]
    usage = result.bill.usage
    costs = [
        _usd(result.bill.cost_usd),
        f"{usage.context + usage.output:,}",
        f"{result.seconds:.1f}",
        str(result.turns),
    ]
    return f"| {' | '.join([name, *cells, *costs])} |"


def _model_row(one: Summary) -> str:
    cells = [
        code(one.model),
        str(one.trials),
        str(one.failed),
        _share(one.score),
        _share(one.verdicts.share),
        _share(one.verdicts.precision),
        _share(one.caused.share),
        _share(one.caused.precision),
        _share(one.cause),
        _share(one.evidence),
        _share(one.found),
        f"{one.wrong_claims} of {one.claims}",
        _share(one.rules.share),
        _usd(one.usd_each),
        f"{one.cache_share:.0%}",
        f"{one.seconds:.1f}",
        f"{one.turns:.1f}",
    ]
    return f"| {' | '.join(cells)} |"


def _grades(grades: Sequence[Grade]) -> str:
    return ", ".join(_SIGNS[grade] for grade in grades) or _NONE


def _findings(found: Scores) -> str:
    if found.found is None:
        return _NONE
    return _share(found.found) + (f", {found.extra} more" if found.extra else "")


def _share(part: float | None) -> str:
    return _NONE if part is None else f"{part:.2f}"


def _usd(cost: Decimal | None) -> str:
    return "unknown" if cost is None else f"{cost:.4f}"


def json_lines(results: Sequence[Result]) -> str:
    """One object a run, then one a model; `kind` tells them apart."""
    told = [*map(_run_object, results), *map(_model_object, summaries(results))]
    return "\n".join(json.dumps(one, ensure_ascii=True) for one in told)


def _run_object(result: Result) -> dict[str, Any]:
    trial, usage = result.trial, result.bill.usage
    return {
        "kind": "run",
        "case": trial.case.name,
        "model": trial.model,
        "workflow": result.workflow,
        "number": trial.number,
        "replayed": trial.recording is not None,
        "failed": shortened(result.failed, FAILED_CHARS) or None,
        "score": _rounded(result.total),
        "scores": None if result.scores is None else _scores(result.scores),
        "usd": _number(result.bill.cost_usd),
        "tokens_in": usage.context,
        "tokens_out": usage.output,
        "cache_share": round(result.bill.cache_share, 4),
        "seconds": round(result.seconds, 3),
        "turns": result.turns,
    }


def _scores(found: Scores) -> dict[str, Any]:
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


def _model_object(one: Summary) -> dict[str, Any]:
    return {
        "kind": "model",
        "model": one.model,
        "runs": one.trials,
        "failed": one.failed,
        "score": _rounded(one.score),
        "verdict": _graded(one.verdicts),
        "caused_by_change": _graded(one.caused),
        "rules": _graded(one.rules),
        "cause_found": one.cause,
        "evidence": one.evidence,
        "findings": one.found,
        "findings_extra": one.extra,
        "claims": one.claims,
        "claims_false": one.wrong_claims,
        "must_not": one.broken,
        "usd": _number(one.usd),
        "usd_each": _number(one.usd_each),
        "cache_share": round(one.cache_share, 4),
        "seconds": round(one.seconds, 3),
        "turns": round(one.turns, 2),
    }


def _graded(one: Graded) -> dict[str, Any]:
    return {"right": one.right, "wrong": one.wrong, "abstained": one.abstained, "precision": one.precision}


def _rounded(score: float | None) -> float | None:
    return None if score is None else round(score, 4)


def _number(cost: Decimal | None) -> float | None:
    return None if cost is None else float(cost)
