"""L6, L7: every budget, when it presses, and what the model is told."""

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pytest

from hummingbird.agent.budget import CHAT, Limits, Spent, for_subagent, pressures
from hummingbird.domain.errors import Unavailable
from hummingbird.domain.journal import EndReason, ModelCalled
from hummingbird.domain.messages import NoticeKind
from hummingbird.domain.usage import Charge, Usage
from hummingbird.lab.scripted import Line, ScriptedClock, ScriptedModel, calls, says
from hummingbird.ports.model import ModelReply, ModelRequest
from hummingbird.ports.tool import ToolContext
from tests.agent.stage import CountingTool, DaySpending, notices_in, paused, stage, tool

NOTHING_SPENT = Spent(0, 0, Decimal(0), 0, 0.0, Decimal(0), 200_000)
USD = Decimal("0.01")


@dataclass(frozen=True)
class Case:
    """A budget that ten calls use up: soft after eight, full after ten (iterations: final with the tenth)."""

    limits: Limits
    reason: EndReason
    left: str
    soft_after: int = 8
    full_after: int = 10


CASES = {
    "iterations": Case(Limits(iterations=10), EndReason.MAX_ITERATIONS, "2 of 10 turns", full_after=9),
    "context": Case(Limits(context_tokens=1_000), EndReason.CONTEXT_LIMIT, "of 1,000 tokens of context"),
    "money": Case(Limits(usd=USD * 10), EndReason.COST_LIMIT, "$0.0200 of $0.1000"),
    "day": Case(Limits(usd_per_day=USD * 10), EndReason.COST_LIMIT, "$0.0200 of $0.1000"),
    "time": Case(Limits(seconds=100.0), EndReason.TIME_LIMIT, "20 of 100 seconds"),
}


def growing(clock: ScriptedClock, upto: int) -> list[Line]:
    """Answers of which each takes ten seconds and 100 tokens more of the window than the one before."""

    def line(number: int) -> Line:
        def answer(_: ModelRequest) -> ModelReply:
            clock.pass_by(10)
            usage = Usage(fresh=100 * number)
            return replace(calls(("count", "{}")), usage=usage)

        return answer

    return [line(number) for number in range(1, upto + 1)]


@pytest.mark.parametrize("name", CASES)
async def test_each_budget_warns_once_at_eighty_percent_and_ends_with_a_final_call(name: str) -> None:
    """L7: the same escalation for each budget."""
    case, clock = CASES[name], ScriptedClock()
    model = ScriptedModel([*growing(clock, case.full_after), says("the answer")])
    setup: dict[str, Any] = {"spending": DaySpending(), "project": "p"} if name == "day" else {}
    on = stage(model, tools=[CountingTool()], limits=case.limits, clock=clock, **setup)
    outcome = await on.run()
    on.consumed()
    assert (outcome.reason, outcome.text, outcome.answered) == (case.reason, "the answer", True)
    soft = [len(notices_in(request, NoticeKind.SOFT_BUDGET)) for request in model.requests]
    assert soft == [0] * case.soft_after + [1] * (len(soft) - case.soft_after)
    assert case.left in notices_in(model.requests[case.soft_after], NoticeKind.SOFT_BUDGET)[0]
    final = [len(notices_in(request, NoticeKind.FINAL)) for request in model.requests]
    assert final == [0] * case.full_after + [1]
    assert [entry.final for entry in on.written(ModelCalled)] == [False] * case.full_after + [True]
    assert model.requests[-1].disable_tools is False


@pytest.mark.parametrize("name", CASES)
async def test_chat_is_never_warned_but_ends_the_same_way(name: str) -> None:
    """L7: in chat the soft notice made models give up early."""
    case, clock = CASES[name], ScriptedClock()
    model = ScriptedModel([*growing(clock, case.full_after), says("the answer")])
    setup: dict[str, Any] = {"spending": DaySpending(), "project": "p"} if name == "day" else {}
    limits = replace(case.limits, warns=False)
    on = stage(model, tools=[CountingTool()], limits=limits, clock=clock, **setup)
    outcome = await on.run()
    assert outcome.reason is case.reason
    assert on.notices(NoticeKind.SOFT_BUDGET) == []
    assert len(on.notices(NoticeKind.FINAL)) == 1


async def test_two_budgets_warn_each_for_itself() -> None:
    """L7"""
    clock = ScriptedClock()
    model = ScriptedModel([*growing(clock, 9), says("done")])
    on = stage(model, tools=[CountingTool()], limits=Limits(usd=USD * 10, seconds=100.0), clock=clock)
    await on.run()
    assert {entry.about for entry in on.notices(NoticeKind.SOFT_BUDGET)} == {"money", "time"}


def test_the_defaults_are_those_of_the_requirement() -> None:
    """L6"""
    assert (Limits().iterations, Limits().context_tokens, Limits().warns) == (30, 60_000, True)
    assert (CHAT.iterations, CHAT.context_tokens, CHAT.warns) == (90, None, False)
    assert Limits().usd is None
    assert Limits().seconds is None


def test_without_a_ceiling_of_its_own_the_context_ceiling_is_the_models_window() -> None:
    """L6"""
    spent = replace(NOTHING_SPENT, context_tokens=90, window=100)
    [context] = [p for p in pressures(CHAT, spent) if p.budget == "context"]
    assert context.share == 0.9


def test_a_ceiling_above_the_models_window_is_the_window() -> None:
    """L6"""
    spent = replace(NOTHING_SPENT, context_tokens=100, window=100)
    [context] = [p for p in pressures(Limits(context_tokens=60_000), spent) if p.budget == "context"]
    assert context.final


def test_a_subagent_has_fifty_iterations_and_its_parents_remaining_money() -> None:
    """L6"""
    limits = for_subagent(Limits(usd=Decimal(1)), Decimal("0.4"))
    assert (limits.iterations, limits.usd) == (50, Decimal("0.6"))
    assert for_subagent(Limits(usd=Decimal(1)), Decimal(2)).usd == Decimal(0)
    assert for_subagent(Limits(), Decimal(2)).usd is None


async def test_a_tool_is_told_what_a_subagent_may_spend() -> None:
    """L6"""
    told: list[Decimal | None] = []

    async def delegate(context: ToolContext) -> str:
        told.append(context.remaining_usd())
        return f"told {len(told)}"

    model = ScriptedModel([calls(("delegate", "{}")), calls(("delegate", "{}")), says("done")])
    await stage(model, tools=[tool("delegate", delegate)], limits=Limits(usd=USD * 5)).run()
    assert told == [USD * 4, USD * 3]


async def test_what_one_subagent_spends_the_others_no_longer_have() -> None:
    """L6: sub-agents draw from one remainder, also while they run side by side."""
    left: list[Decimal | None] = []

    async def delegate(n: int, context: ToolContext) -> str:
        context.charge(Charge("x:y", "sub-agent", "answered", Usage(fresh=5), Decimal("0.3")))
        left.append(context.remaining_usd())
        return f"report {n}"

    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    wanted = [("delegate", f'{{"n":{n}}}') for n in range(4)]
    model = ScriptedModel([calls(*wanted), says("done")])
    on = stage(model, tools=[tool("delegate", delegate, schema=schema)], limits=Limits(usd=Decimal(1) + USD))
    await on.run()
    assert left == [Decimal("0.7"), Decimal("0.4"), Decimal("0.1"), Decimal(0)]


async def test_what_a_tool_spent_on_models_counts_against_the_money_of_the_run() -> None:
    """L6, L15"""

    async def delegate(context: ToolContext) -> str:
        context.charge(Charge("x:y", "sub-agent", "answered", Usage(fresh=5), Decimal("0.5")))
        return "report"

    model = ScriptedModel([calls(("delegate", "{}")), says("done")])
    outcome = await stage(model, tools=[tool("delegate", delegate)], limits=Limits(usd=Decimal("0.5"))).run()
    assert outcome.reason is EndReason.COST_LIMIT
    assert outcome.bill.known_usd == Decimal("0.52")


async def test_with_a_money_ceiling_an_unknown_price_makes_the_next_call_the_final_one() -> None:
    """L6: a ceiling that cannot be checked counts as reached."""
    model = ScriptedModel([calls(("look", "{}")), says("done")], usd=None)
    on = stage(model, tools=[tool()], limits=Limits(usd=Decimal(100)))
    outcome = await on.run()
    assert (outcome.reason, outcome.iterations) == (EndReason.COST_LIMIT, 2)
    assert outcome.bill.cost_usd is None


async def test_without_a_money_ceiling_an_unknown_price_does_not_matter() -> None:
    """L6"""
    model = ScriptedModel([calls(("look", "{}")), says("done")], usd=None)
    assert (await stage(model, tools=[tool()]).run()).reason is EndReason.COMPLETED


async def test_a_ceiling_of_nothing_leaves_one_final_call() -> None:
    """L6: what a sub-agent gets whose parent has no money left."""
    model = ScriptedModel([says("done")])
    outcome = await stage(model, limits=Limits(usd=Decimal(0))).run()
    assert outcome.reason is EndReason.COST_LIMIT
    assert len(notices_in(model.requests[0], NoticeKind.FINAL)) == 1


async def test_the_day_budget_counts_what_other_runs_of_the_project_spent() -> None:
    """L6: checked before the call, so the very first one is final."""
    spending = DaySpending(Decimal(3))
    model = ScriptedModel([says("done")])
    on = stage(model, limits=Limits(usd_per_day=Decimal(3)), spending=spending, project="group/project")
    outcome = await on.run()
    assert outcome.reason is EndReason.COST_LIMIT
    assert set(spending.asked_for) == {"group/project"}
    assert len(notices_in(model.requests[0], NoticeKind.FINAL)) == 1


async def test_l6_a_chat_that_begins_with_the_days_money_spent_asks_no_model_and_says_so() -> None:
    """Message after message: each one would buy a last word, and a summary before it."""
    model, spending = ScriptedModel([]), DaySpending(Decimal(3))
    on = stage(model, limits=replace(CHAT, usd_per_day=Decimal(3)), spending=spending, project="p")
    for _ in range(2):
        outcome = await on.run()
        assert (outcome.reason, outcome.answered, outcome.iterations) == (EndReason.COST_LIMIT, False, 0)
        assert "The money of the day is used up ($3.00 of $3.00), so no model was asked." in outcome.sentence
    assert spending.today == Decimal(3)
    assert on.written(ModelCalled) == []


async def test_every_priced_answer_is_added_to_the_day() -> None:
    """L6"""
    spending = DaySpending()
    model = ScriptedModel([calls(("look", "{}")), says("done")])
    await stage(model, tools=[tool()], spending=spending, project="p").run()
    assert spending.today == USD * 2


async def test_retries_are_no_iterations() -> None:
    """L6"""
    model = ScriptedModel([Unavailable("busy"), Unavailable("busy"), calls(("look", "{}")), says("done")])
    outcome = await stage(model, tools=[tool()], limits=Limits(iterations=3)).run()
    assert (outcome.reason, outcome.iterations, len(model.requests)) == (EndReason.COMPLETED, 2, 4)


async def test_each_run_of_a_session_has_its_own_iterations_money_and_time() -> None:
    """L6: ceilings are per run."""
    clock = ScriptedClock()
    model = ScriptedModel([calls(("count", "{}")), says("1"), calls(("count", "{}")), says("2")])
    limits = Limits(iterations=3, usd=USD * 3, seconds=100.0)
    on = stage(model, tools=[CountingTool()], limits=limits, clock=clock)
    assert (await on.run()).reason is EndReason.COMPLETED
    clock.pass_by(1_000)
    second = await on.run()
    assert (second.reason, second.iterations) == (EndReason.COMPLETED, 2)
    assert second.bill.known_usd == USD * 4


async def test_the_size_of_a_request_is_guessed_before_it_is_sent() -> None:
    """L6: a huge result counts before the provider has seen it."""

    async def huge() -> str:
        return "x" * 8_000

    model = ScriptedModel([calls(("huge", "{}")), says("done")])
    outcome = await stage(model, tools=[tool("huge", huge)], limits=Limits(context_tokens=2_000)).run()
    assert outcome.reason is EndReason.CONTEXT_LIMIT


async def test_a_provider_that_counts_nothing_does_not_switch_the_context_budget_off() -> None:
    """L6: answers grow the conversation too."""
    words = replace(calls(("count", '{"a":"%s"}' % ("y" * 4_000))), usage=Usage())
    model = ScriptedModel([words, says("done")])
    outcome = await stage(model, tools=[CountingTool()], limits=Limits(context_tokens=1_000)).run()
    assert outcome.reason is EndReason.CONTEXT_LIMIT


async def test_a_pause_does_not_pass_the_budgets_by() -> None:
    """L6: a paused answer is an answered call like any other."""
    model = ScriptedModel([paused("part")] * 9)
    outcome = await stage(model, limits=Limits(iterations=3)).run()
    assert (outcome.reason, outcome.text, outcome.answered) == (EndReason.MAX_ITERATIONS, "part", False)
    assert outcome.iterations <= 3
