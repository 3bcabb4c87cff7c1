"""Every budget, when it presses, and what the model is told."""

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pytest

from hummingbird.agent.budget import CHAT_LIMITS, BudgetUsage, RunLimits, budget_pressures, sub_agent_limits
from hummingbird.core.errors import ProviderUnavailable
from hummingbird.core.journal import EndReason, ModelCalled
from hummingbird.core.messages import NoticeKind
from hummingbird.core.protocols.model import ModelReply, ModelRequest
from hummingbird.core.protocols.tools import ToolContext
from hummingbird.core.usage import Charge, TokenUsage
from tests.agent.stage import CountingTool, DaySpending, notices_in, paused, stage, tool
from tests.standins.scripted_model import ScriptedClock, ScriptedModel, ScriptLine, text_reply, tool_call_reply

NOTHING_SPENT = BudgetUsage(0, 0, Decimal(0), 0, 0.0, Decimal(0), 200_000)
USD = Decimal("0.01")


@dataclass(frozen=True)
class Case:
    """A budget that ten calls use up: soft after eight, full after ten (iterations: final with the tenth)."""

    limits: RunLimits
    reason: EndReason
    left: str
    soft_after: int = 8
    full_after: int = 10


CASES = {
    "iterations": Case(RunLimits(iterations=10), EndReason.MAX_ITERATIONS, "2 of 10 turns", full_after=9),
    "context": Case(RunLimits(context_tokens=1_000), EndReason.CONTEXT_LIMIT, "of 1,000 tokens of context"),
    "money": Case(RunLimits(usd=USD * 10), EndReason.COST_LIMIT, "$0.0200 of $0.1000"),
    "day": Case(RunLimits(usd_per_day=USD * 10), EndReason.COST_LIMIT, "$0.0200 of $0.1000"),
    "time": Case(RunLimits(seconds=100.0), EndReason.TIME_LIMIT, "20 of 100 seconds"),
}


def growing(clock: ScriptedClock, upto: int) -> list[ScriptLine]:
    """Answers of which each takes ten seconds and 100 tokens more of the window than the one before."""

    def line(number: int) -> ScriptLine:
        def answer(_: ModelRequest) -> ModelReply:
            clock.advance(10)
            usage = TokenUsage(fresh=100 * number)
            return replace(tool_call_reply(("count", "{}")), usage=usage)

        return answer

    return [line(number) for number in range(1, upto + 1)]


@pytest.mark.parametrize("name", CASES)
async def test_each_budget_warns_once_at_eighty_percent_and_ends_with_a_final_call(name: str) -> None:
    """The same escalation for each budget."""
    case, clock = CASES[name], ScriptedClock()
    model = ScriptedModel([*growing(clock, case.full_after), text_reply("the answer")])
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
    """In chat the soft notice made models give up early."""
    case, clock = CASES[name], ScriptedClock()
    model = ScriptedModel([*growing(clock, case.full_after), text_reply("the answer")])
    setup: dict[str, Any] = {"spending": DaySpending(), "project": "p"} if name == "day" else {}
    limits = replace(case.limits, warns=False)
    on = stage(model, tools=[CountingTool()], limits=limits, clock=clock, **setup)
    outcome = await on.run()
    assert outcome.reason is case.reason
    assert on.notices(NoticeKind.SOFT_BUDGET) == []
    assert len(on.notices(NoticeKind.FINAL)) == 1


async def test_two_budgets_warn_each_for_itself() -> None:
    clock = ScriptedClock()
    model = ScriptedModel([*growing(clock, 9), text_reply("done")])
    on = stage(model, tools=[CountingTool()], limits=RunLimits(usd=USD * 10, seconds=100.0), clock=clock)
    await on.run()
    assert {entry.about for entry in on.notices(NoticeKind.SOFT_BUDGET)} == {"money", "time"}


def test_the_defaults_are_those_of_the_requirement() -> None:
    assert (RunLimits().iterations, RunLimits().context_tokens, RunLimits().warns) == (30, 60_000, True)
    assert (CHAT_LIMITS.iterations, CHAT_LIMITS.context_tokens, CHAT_LIMITS.warns) == (90, None, False)
    assert RunLimits().usd is None
    assert RunLimits().seconds is None


def test_without_a_ceiling_of_its_own_the_context_ceiling_is_the_models_window() -> None:
    spent = replace(NOTHING_SPENT, context_tokens=90, window=100)
    [context] = [p for p in budget_pressures(CHAT_LIMITS, spent) if p.budget == "context"]
    assert context.share == 0.9


def test_a_ceiling_above_the_models_window_is_the_window() -> None:
    spent = replace(NOTHING_SPENT, context_tokens=100, window=100)
    [context] = [p for p in budget_pressures(RunLimits(context_tokens=60_000), spent) if p.budget == "context"]
    assert context.is_final


def test_a_subagent_has_fifty_iterations_and_its_parents_remaining_money() -> None:
    limits = sub_agent_limits(RunLimits(usd=Decimal(1)), Decimal("0.4"))
    assert (limits.iterations, limits.usd) == (50, Decimal("0.6"))
    assert sub_agent_limits(RunLimits(usd=Decimal(1)), Decimal(2)).usd == Decimal(0)
    assert sub_agent_limits(RunLimits(), Decimal(2)).usd is None


async def test_a_tool_is_told_what_a_subagent_may_spend() -> None:
    told: list[Decimal | None] = []

    async def delegate(context: ToolContext) -> str:
        told.append(context.remaining_usd())
        return f"told {len(told)}"

    model = ScriptedModel(
        [tool_call_reply(("delegate", "{}")), tool_call_reply(("delegate", "{}")), text_reply("done")]
    )
    await stage(model, tools=[tool("delegate", delegate)], limits=RunLimits(usd=USD * 5)).run()
    assert told == [USD * 4, USD * 3]


async def test_what_one_subagent_spends_the_others_no_longer_have() -> None:
    """Sub-agents draw from one remainder, also while they run side by side."""
    left: list[Decimal | None] = []

    async def delegate(n: int, context: ToolContext) -> str:
        context.charge(Charge("x:y", "sub-agent", "answered", TokenUsage(fresh=5), Decimal("0.3")))
        left.append(context.remaining_usd())
        return f"report {n}"

    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    wanted = [("delegate", f'{{"n":{n}}}') for n in range(4)]
    model = ScriptedModel([tool_call_reply(*wanted), text_reply("done")])
    on = stage(model, tools=[tool("delegate", delegate, schema=schema)], limits=RunLimits(usd=Decimal(1) + USD))
    await on.run()
    assert left == [Decimal("0.7"), Decimal("0.4"), Decimal("0.1"), Decimal(0)]


async def test_what_a_tool_spent_on_models_counts_against_the_money_of_the_run() -> None:
    async def delegate(context: ToolContext) -> str:
        context.charge(Charge("x:y", "sub-agent", "answered", TokenUsage(fresh=5), Decimal("0.5")))
        return "report"

    model = ScriptedModel([tool_call_reply(("delegate", "{}")), text_reply("done")])
    outcome = await stage(model, tools=[tool("delegate", delegate)], limits=RunLimits(usd=Decimal("0.5"))).run()
    assert outcome.reason is EndReason.COST_LIMIT
    assert outcome.bill.known_usd == Decimal("0.52")


async def test_with_a_money_ceiling_an_unknown_price_makes_the_next_call_the_final_one() -> None:
    """A ceiling that cannot be checked counts as reached."""
    model = ScriptedModel([tool_call_reply(("look", "{}")), text_reply("done")], usd=None)
    on = stage(model, tools=[tool()], limits=RunLimits(usd=Decimal(100)))
    outcome = await on.run()
    assert (outcome.reason, outcome.iterations) == (EndReason.COST_LIMIT, 2)
    assert outcome.bill.cost_usd is None


async def test_without_a_money_ceiling_an_unknown_price_does_not_matter() -> None:
    model = ScriptedModel([tool_call_reply(("look", "{}")), text_reply("done")], usd=None)
    assert (await stage(model, tools=[tool()]).run()).reason is EndReason.COMPLETED


async def test_a_ceiling_of_nothing_leaves_one_final_call() -> None:
    """What a sub-agent gets whose parent has no money left."""
    model = ScriptedModel([text_reply("done")])
    outcome = await stage(model, limits=RunLimits(usd=Decimal(0))).run()
    assert outcome.reason is EndReason.COST_LIMIT
    assert len(notices_in(model.requests[0], NoticeKind.FINAL)) == 1


async def test_the_day_budget_counts_what_other_runs_of_the_project_spent() -> None:
    """Checked before the call, so the very first one is final."""
    spending = DaySpending(Decimal(3))
    model = ScriptedModel([text_reply("done")])
    on = stage(model, limits=RunLimits(usd_per_day=Decimal(3)), spending=spending, project="group/project")
    outcome = await on.run()
    assert outcome.reason is EndReason.COST_LIMIT
    assert set(spending.asked_for) == {"group/project"}
    assert len(notices_in(model.requests[0], NoticeKind.FINAL)) == 1


async def test_a_chat_that_begins_with_the_days_money_spent_asks_no_model_and_says_so() -> None:
    """Message after message: each one would buy a last word, and a summary before it."""
    model, spending = ScriptedModel([]), DaySpending(Decimal(3))
    on = stage(model, limits=replace(CHAT_LIMITS, usd_per_day=Decimal(3)), spending=spending, project="p")
    for _ in range(2):
        outcome = await on.run()
        assert (outcome.reason, outcome.answered, outcome.iterations) == (EndReason.COST_LIMIT, False, 0)
        assert "The money of the day is used up ($3.00 of $3.00), so no model was asked." in outcome.sentence
    assert spending.today == Decimal(3)
    assert on.written(ModelCalled) == []


async def test_every_priced_answer_is_added_to_the_day() -> None:
    spending = DaySpending()
    model = ScriptedModel([tool_call_reply(("look", "{}")), text_reply("done")])
    await stage(model, tools=[tool()], spending=spending, project="p").run()
    assert spending.today == USD * 2


async def test_retries_are_no_iterations() -> None:
    model = ScriptedModel(
        [ProviderUnavailable("busy"), ProviderUnavailable("busy"), tool_call_reply(("look", "{}")), text_reply("done")]
    )
    outcome = await stage(model, tools=[tool()], limits=RunLimits(iterations=3)).run()
    assert (outcome.reason, outcome.iterations, len(model.requests)) == (EndReason.COMPLETED, 2, 4)


async def test_each_run_of_a_session_has_its_own_iterations_money_and_time() -> None:
    """Ceilings are per run."""
    clock = ScriptedClock()
    model = ScriptedModel(
        [tool_call_reply(("count", "{}")), text_reply("1"), tool_call_reply(("count", "{}")), text_reply("2")]
    )
    limits = RunLimits(iterations=3, usd=USD * 3, seconds=100.0)
    on = stage(model, tools=[CountingTool()], limits=limits, clock=clock)
    assert (await on.run()).reason is EndReason.COMPLETED
    clock.advance(1_000)
    second = await on.run()
    assert (second.reason, second.iterations) == (EndReason.COMPLETED, 2)
    assert second.bill.known_usd == USD * 4


async def test_the_size_of_a_request_is_guessed_before_it_is_sent() -> None:
    """A huge result counts before the provider has seen it."""

    async def huge() -> str:
        return "x" * 8_000

    model = ScriptedModel([tool_call_reply(("huge", "{}")), text_reply("done")])
    outcome = await stage(model, tools=[tool("huge", huge)], limits=RunLimits(context_tokens=2_000)).run()
    assert outcome.reason is EndReason.CONTEXT_LIMIT


async def test_a_provider_that_counts_nothing_does_not_switch_the_context_budget_off() -> None:
    """Answers grow the conversation too."""
    words = replace(tool_call_reply(("count", '{"a":"%s"}' % ("y" * 4_000))), usage=TokenUsage())
    model = ScriptedModel([words, text_reply("done")])
    outcome = await stage(model, tools=[CountingTool()], limits=RunLimits(context_tokens=1_000)).run()
    assert outcome.reason is EndReason.CONTEXT_LIMIT


async def test_a_pause_does_not_pass_the_budgets_by() -> None:
    """A paused answer is an answered call like any other."""
    model = ScriptedModel([paused("part")] * 9)
    outcome = await stage(model, limits=RunLimits(iterations=3)).run()
    assert (outcome.reason, outcome.text, outcome.answered) == (EndReason.MAX_ITERATIONS, "part", False)
    assert outcome.iterations <= 3
