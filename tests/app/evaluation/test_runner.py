"""Many trials: what they may spend, what they come to, and which of them there are."""

from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path

import pytest

from hummingbird.app.evaluation import cases
from hummingbird.app.evaluation.cases import select_cases
from hummingbird.app.evaluation.report import summarize_models, worst_mean_score
from hummingbird.app.evaluation.runner import SharedBudget, plan_trials
from hummingbird.app.evaluation.scores import TrialScores, VerdictGrade
from hummingbird.app.evaluation.trials import (
    Trial,
    TrialResult,
    TrialSettings,
    find_workflow,
    recording_path,
    run_trial,
)
from hummingbird.config.loader import load_config
from hummingbird.core.errors import UsageError
from hummingbird.core.limits import FINDING_NEAR_LINES
from hummingbird.core.usage import Charge, TokenUsage, sum_charges
from hummingbird.lab.case import LabCase, case_names, find_case

CASE = find_case("network")


def test_no_number_of_runs_at_once_spends_more_than_the_purse_holds() -> None:
    purse = SharedBudget(Decimal(6), jobs=3)
    with ExitStack() as running:
        shares = [running.enter_context(purse.share()) for _ in range(3)]
        assert shares == [Decimal(2)] * 3
        purse.pay(Decimal(2))
    with purse.share() as share:
        assert share == Decimal(4) / 3
        purse.pay(Decimal(4))
    with purse.share() as share:
        assert share == 0


def test_without_a_ceiling_there_is_no_share() -> None:
    purse = SharedBudget(None, jobs=2)
    with purse.share() as share:
        purse.pay(Decimal(100))
        assert share is None


def result(model: str, grade: VerdictGrade | None, usd: str | None = "0.5") -> TrialResult:
    charge = Charge(
        model, "turn", "answered", TokenUsage(fresh=50, cache_read=50), None if usd is None else Decimal(usd)
    )
    scores = None if grade is None else TrialScores(verdicts=(grade,))
    return TrialResult(
        trial=Trial(case=CASE, model=model), scores=scores, bill=sum_charges([charge]), seconds=2.0, turns=3
    )


def test_a_summary_holds_means_precision_and_costs() -> None:
    told = [
        result("a", VerdictGrade.RIGHT),
        result("a", VerdictGrade.WRONG),
        result("a", VerdictGrade.ABSTAINED),
        result("a", None),
    ]
    (found,) = summarize_models(told)
    assert (found.trials, found.failed, found.score) == (4, 1, 1.5 / 4)
    assert (found.verdicts.share, found.verdicts.precision) == (1 / 3, 0.5)
    assert (found.usd, found.usd_each, found.cache_share) == (Decimal(2), Decimal("0.5"), 0.5)
    assert (found.seconds, found.turns) == (2.0, 3.0)


def test_a_sum_with_an_unknown_price_is_no_sum() -> None:
    (found,) = summarize_models([result("a", VerdictGrade.RIGHT), result("a", VerdictGrade.RIGHT, None)])
    assert found.usd is None


def test_the_worst_model_decides_whether_it_is_good_enough() -> None:
    assert worst_mean_score([result("a", VerdictGrade.RIGHT), result("b", VerdictGrade.ABSTAINED)]) == 0.5


def test_all_models_of_a_case_stand_next_to_each_other() -> None:
    found = plan_trials([CASE, find_case("hostile")], ["a", "b"], repeat=2)
    assert [(one.case.name, one.model, one.number) for one in found][:5] == [
        ("network", "a", 1),
        ("network", "a", 2),
        ("network", "b", 1),
        ("network", "b", 2),
        ("hostile", "a", 1),
    ]


def test_cases_are_named_or_are_folders_or_folders_of_cases(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / "mine" / name).mkdir(parents=True)
        (tmp_path / "mine" / name / "case.json").write_text("{}")
    (tmp_path / "empty").mkdir()
    assert [case.name for case in select_cases([])] == case_names()
    assert [case.name for case in select_cases([str(tmp_path / "mine"), "hostile", "hostile"])] == [
        "one",
        "two",
        "hostile",
    ]
    assert [case.name for case in select_cases([str(tmp_path / "mine" / "two")])] == ["two"]
    with pytest.raises(UsageError, match="There is no case 'nope': name one of compiler-error"):
        select_cases(["nope"])
    with pytest.raises(UsageError, match=r"holds no case\.json"):
        select_cases([str(tmp_path / "empty")])


def test_nothing_that_was_recorded_is_written_over(tmp_path: Path) -> None:
    place = recording_path(tmp_path, CASE, "anthropic:claude/x", 1)
    assert place == tmp_path / "network" / "anthropic_claude_x" / "journal.jsonl"
    place.parent.mkdir(parents=True)
    place.touch()
    with pytest.raises(UsageError, match="was recorded before"):
        recording_path(tmp_path, CASE, "anthropic:claude/x", 1)
    assert recording_path(tmp_path, CASE, "anthropic:claude/x", 2).parent.name == "anthropic_claude_x-2"


def test_the_event_of_a_case_decides_which_workflow_it_is_for() -> None:
    embedded = load_config(None, None)
    assert find_workflow(embedded, "pipeline") == "analyze-failures"
    assert find_workflow(embedded, "merge_request") == "code-review"
    with pytest.raises(UsageError, match="name one with --workflow"):
        find_workflow(embedded, "note")


async def test_a_case_that_is_far_too_long_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "case.json").write_text(" " * (cases.CASE_BYTES + 1))
    done = await run_trial(
        Trial(case=LabCase(tmp_path), model="digest"),
        TrialSettings(configuration=load_config(None, None), environment={}),
    )
    assert done.scores is None
    assert "is larger than 1,048,576 bytes" in done.failed


def test_the_bounds_hold_together() -> None:
    assert FINDING_NEAR_LINES < cases.CASE_LINES
    assert cases.CASE_BYTES < cases.RECORDING_BYTES
