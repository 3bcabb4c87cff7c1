"""Many trials: what they may spend, what they come to, and which of them there are."""

from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path

import pytest

from hummingbird.assembly.evaluation.cases import chosen
from hummingbird.assembly.evaluation.evaluating import Purse, planned
from hummingbird.assembly.evaluation.pointing import workflow_for
from hummingbird.assembly.evaluation.recordings import place_of
from hummingbird.assembly.evaluation.scores import Grade, Scores
from hummingbird.assembly.evaluation.summary import overall, summaries
from hummingbird.assembly.evaluation.trials import Result, Setting, Trial, tried
from hummingbird.config.load import load
from hummingbird.domain import eval_limits
from hummingbird.domain.errors import UsageFault
from hummingbird.domain.limits import FINDING_NEAR_LINES
from hummingbird.domain.usage import Charge, Usage, total
from hummingbird.lab.case import Case, find, names

CASE = find("network")


def test_no_number_of_runs_at_once_spends_more_than_the_purse_holds() -> None:
    purse = Purse(Decimal(6), jobs=3)
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
    purse = Purse(None, jobs=2)
    with purse.share() as share:
        purse.pay(Decimal(100))
        assert share is None


def result(model: str, grade: Grade | None, usd: str | None = "0.5") -> Result:
    charge = Charge(model, "turn", "answered", Usage(fresh=50, cache_read=50), None if usd is None else Decimal(usd))
    scores = None if grade is None else Scores(verdicts=(grade,))
    return Result(trial=Trial(case=CASE, model=model), scores=scores, bill=total([charge]), seconds=2.0, turns=3)


def test_a_summary_holds_means_precision_and_costs() -> None:
    told = [result("a", Grade.RIGHT), result("a", Grade.WRONG), result("a", Grade.ABSTAINED), result("a", None)]
    (found,) = summaries(told)
    assert (found.trials, found.failed, found.score) == (4, 1, 1.5 / 4)
    assert (found.verdicts.share, found.verdicts.precision) == (1 / 3, 0.5)
    assert (found.usd, found.usd_each, found.cache_share) == (Decimal(2), Decimal("0.5"), 0.5)
    assert (found.seconds, found.turns) == (2.0, 3.0)


def test_a_sum_with_an_unknown_price_is_no_sum() -> None:
    (found,) = summaries([result("a", Grade.RIGHT), result("a", Grade.RIGHT, None)])
    assert found.usd is None


def test_the_worst_model_decides_whether_it_is_good_enough() -> None:
    assert overall([result("a", Grade.RIGHT), result("b", Grade.ABSTAINED)]) == 0.5


def test_all_models_of_a_case_stand_next_to_each_other() -> None:
    found = planned([CASE, find("hostile")], ["a", "b"], repeat=2)
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
    assert [case.name for case in chosen([])] == names()
    assert [case.name for case in chosen([str(tmp_path / "mine"), "hostile", "hostile"])] == ["one", "two", "hostile"]
    assert [case.name for case in chosen([str(tmp_path / "mine" / "two")])] == ["two"]
    with pytest.raises(UsageFault, match="There is no case 'nope': name one of compiler-error"):
        chosen(["nope"])
    with pytest.raises(UsageFault, match=r"holds no case\.json"):
        chosen([str(tmp_path / "empty")])


def test_nothing_that_was_recorded_is_written_over(tmp_path: Path) -> None:
    place = place_of(tmp_path, CASE, "anthropic:claude/x", 1)
    assert place == tmp_path / "network" / "anthropic_claude_x" / "journal.jsonl"
    place.parent.mkdir(parents=True)
    place.touch()
    with pytest.raises(UsageFault, match="was recorded before"):
        place_of(tmp_path, CASE, "anthropic:claude/x", 1)
    assert place_of(tmp_path, CASE, "anthropic:claude/x", 2).parent.name == "anthropic_claude_x-2"


def test_the_event_of_a_case_decides_which_workflow_it_is_for() -> None:
    embedded = load(None, None)
    assert workflow_for(embedded, "pipeline") == "analyze-failures"
    assert workflow_for(embedded, "merge_request") == "code-review"
    with pytest.raises(UsageFault, match="name one with --workflow"):
        workflow_for(embedded, "note")


async def test_a_case_that_is_far_too_long_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "case.json").write_text(" " * (eval_limits.CASE_BYTES + 1))
    done = await tried(
        Trial(case=Case(tmp_path), model="digest"), Setting(configuration=load(None, None), environment={})
    )
    assert done.scores is None
    assert "is larger than 1,048,576 bytes" in done.failed


def test_the_bounds_hold_together() -> None:
    assert FINDING_NEAR_LINES < eval_limits.CASE_LINES
    assert eval_limits.CASE_BYTES < eval_limits.RECORDING_BYTES
