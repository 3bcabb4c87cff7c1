"""Compute how much of each budget a run has used; the functions are pure."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

from hummingbird.core.journal import EndReason
from hummingbird.core.limits import (
    CHAT_ITERATIONS,
    SOFT_SHARE,
    SUBAGENT_ITERATIONS,
    WORKFLOW_CONTEXT_TOKENS,
    WORKFLOW_ITERATIONS,
)


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Ceilings of one run; None means no ceiling. `warns` shows soft notices from 80 % on (workflows only)."""

    iterations: int = WORKFLOW_ITERATIONS
    context_tokens: int | None = WORKFLOW_CONTEXT_TOKENS
    usd: Decimal | None = None
    seconds: float | None = None
    usd_per_day: Decimal | None = None
    warns: bool = True


CHAT_LIMITS = RunLimits(iterations=CHAT_ITERATIONS, context_tokens=None, warns=False)


def sub_agent_limits(limits: RunLimits, spent_usd: Decimal) -> RunLimits:
    """Return the limits of a sub-agent: its own iterations, and what the parent has left of its money."""
    left = None if limits.usd is None else max(Decimal(0), limits.usd - spent_usd)
    return replace(limits, iterations=SUBAGENT_ITERATIONS, usd=left, warns=False)


@dataclass(frozen=True, slots=True)
class BudgetUsage:
    """What a run has used so far; `unpriced` counts answered calls whose price is not known."""

    iterations: int
    context_tokens: int
    usd: Decimal
    unpriced: int
    seconds: float
    usd_today: Decimal
    window: int


@dataclass(frozen=True, slots=True)
class BudgetPressure:
    """The used share of one budget, and how much is left in words."""

    reason: EndReason
    budget: str
    share: float
    left: str

    @property
    def is_final(self) -> bool:
        return self.share >= 1.0

    @property
    def is_soft(self) -> bool:
        return SOFT_SHARE <= self.share < 1.0


def budget_pressures(limits: RunLimits, spent: BudgetUsage) -> list[BudgetPressure]:
    """Return the state of every budget before a call, the most pressing first."""
    return sorted(_all_pressures(limits, spent), key=lambda pressure: -pressure.share)


def context_ceiling(limits: RunLimits, window: int) -> int:
    """Return the tokens that the context may have: the run's own limit, and never more than the model's window."""
    return min(limits.context_tokens or window, window)


def _all_pressures(limits: RunLimits, spent: BudgetUsage) -> Iterator[BudgetPressure]:
    left = limits.iterations - spent.iterations
    # The call that uses up the budget is the final one, so with one left the share counts as full.
    share = 1.0 if left <= 1 else spent.iterations / limits.iterations
    yield BudgetPressure(EndReason.MAX_ITERATIONS, "iterations", share, f"{left} of {limits.iterations} turns")
    most = context_ceiling(limits, spent.window)
    tokens = f"{max(0, most - spent.context_tokens):,} of {most:,} tokens of context"
    yield BudgetPressure(EndReason.CONTEXT_LIMIT, "context", spent.context_tokens / most, tokens)
    if limits.usd is not None:
        yield _money_pressure("money", limits.usd, spent.usd, spent.unpriced)
    if limits.usd_per_day is not None:
        yield _money_pressure("money of the day", limits.usd_per_day, spent.usd_today, spent.unpriced)
    if limits.seconds is not None:
        time = f"{max(0.0, limits.seconds - spent.seconds):.0f} of {limits.seconds:.0f} seconds"
        share = spent.seconds / limits.seconds if limits.seconds > 0 else 1.0
        yield BudgetPressure(EndReason.TIME_LIMIT, "time", share, time)


def money_exhausted_reason(limits: RunLimits, usd: Decimal, unpriced: int, usd_today: Decimal) -> str:
    """Return which ceiling on money is reached, as part of a sentence; empty if none is."""
    if limits.usd is not None and _money_pressure("", limits.usd, usd, unpriced).is_final:
        return f"the money of this run (${limits.usd:.2f}) is used up"
    if limits.usd_per_day is not None and _money_pressure("", limits.usd_per_day, usd_today, unpriced).is_final:
        return f"the money of the day (${limits.usd_per_day:.2f}) is used up"
    return ""


def day_budget_exhausted_reason(limits: RunLimits, spent: BudgetUsage) -> str:
    """Return why a chat run cannot start on the day's budget, as a sentence; empty if it can.

    A workflow starts anyway: it has gathered its evidence before it asks a model, so its final answer is worth the
    money.
    """
    if (
        limits.warns
        or spent.iterations
        or not money_exhausted_reason(replace(limits, usd=None), Decimal(0), 0, spent.usd_today)
    ):
        return ""
    return (
        f"The money of the day is used up (${spent.usd_today:.2f} of ${limits.usd_per_day:.2f}), so no model was "
        "asked. Raise budgets.usd_per_day, or go on tomorrow."
    )


def _money_pressure(budget: str, ceiling: Decimal, usd: Decimal, unpriced: int) -> BudgetPressure:
    """Treat a ceiling as reached if it cannot be checked, because the price of the model is not known."""
    if unpriced or ceiling <= 0:
        return BudgetPressure(
            EndReason.COST_LIMIT, budget, 1.0, "an unknown amount of money" if unpriced else "no money"
        )
    left = f"${max(Decimal(0), ceiling - usd):.4f} of ${ceiling:.4f}"
    return BudgetPressure(EndReason.COST_LIMIT, budget, float(usd / ceiling), left)
