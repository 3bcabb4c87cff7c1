"""Budgets (L6) and when they press (L7). Pure: facts in, pressures out."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

from hummingbird.domain.journal import EndReason
from hummingbird.domain.limits import (
    CHAT_ITERATIONS,
    SOFT_SHARE,
    SUBAGENT_ITERATIONS,
    WORKFLOW_CONTEXT_TOKENS,
    WORKFLOW_ITERATIONS,
)


@dataclass(frozen=True, slots=True)
class Limits:
    """Ceilings of one run; None means none of its own. `warns`: soft notices from 80 % (workflows only)."""

    iterations: int = WORKFLOW_ITERATIONS
    context_tokens: int | None = WORKFLOW_CONTEXT_TOKENS
    usd: Decimal | None = None
    seconds: float | None = None
    usd_per_day: Decimal | None = None
    warns: bool = True


CHAT = Limits(iterations=CHAT_ITERATIONS, context_tokens=None, warns=False)


def for_subagent(limits: Limits, spent_usd: Decimal) -> Limits:
    """A sub-agent has its own iterations and draws its money from what the parent has left."""
    left = None if limits.usd is None else max(Decimal(0), limits.usd - spent_usd)
    return replace(limits, iterations=SUBAGENT_ITERATIONS, usd=left, warns=False)


@dataclass(frozen=True, slots=True)
class Spent:
    """What a run has used so far. `unpriced`: answered calls whose price nobody knows."""

    iterations: int
    context_tokens: int
    usd: Decimal
    unpriced: int
    seconds: float
    usd_today: Decimal
    window: int


@dataclass(frozen=True, slots=True)
class Pressure:
    reason: EndReason
    budget: str
    share: float
    left: str

    @property
    def final(self) -> bool:
        return self.share >= 1.0

    @property
    def soft(self) -> bool:
        return SOFT_SHARE <= self.share < 1.0


def pressures(limits: Limits, spent: Spent) -> list[Pressure]:
    """Every budget's state before a call, the most pressing first."""
    return sorted(_all(limits, spent), key=lambda pressure: -pressure.share)


def ceiling(limits: Limits, window: int) -> int:
    """Tokens that the context may have: the run's own bound, and never more than the model reads."""
    return min(limits.context_tokens or window, window)


def _all(limits: Limits, spent: Spent) -> Iterator[Pressure]:
    left = limits.iterations - spent.iterations
    # the call that uses up the budget is the final one, so with one left the share counts as full
    share = 1.0 if left <= 1 else spent.iterations / limits.iterations
    yield Pressure(EndReason.MAX_ITERATIONS, "iterations", share, f"{left} of {limits.iterations} turns")
    most = ceiling(limits, spent.window)
    tokens = f"{max(0, most - spent.context_tokens):,} of {most:,} tokens of context"
    yield Pressure(EndReason.CONTEXT_LIMIT, "context", spent.context_tokens / most, tokens)
    if limits.usd is not None:
        yield _money("money", limits.usd, spent.usd, spent.unpriced)
    if limits.usd_per_day is not None:
        yield _money("money of the day", limits.usd_per_day, spent.usd_today, spent.unpriced)
    if limits.seconds is not None:
        time = f"{max(0.0, limits.seconds - spent.seconds):.0f} of {limits.seconds:.0f} seconds"
        share = spent.seconds / limits.seconds if limits.seconds > 0 else 1.0
        yield Pressure(EndReason.TIME_LIMIT, "time", share, time)


def no_money(limits: Limits, usd: Decimal, unpriced: int, usd_today: Decimal) -> str:
    """Which ceiling on money is reached, for a sentence; empty if none is."""
    if limits.usd is not None and _money("", limits.usd, usd, unpriced).final:
        return f"the money of this run (${limits.usd:.2f}) is used up"
    if limits.usd_per_day is not None and _money("", limits.usd_per_day, usd_today, unpriced).final:
        return f"the money of the day (${limits.usd_per_day:.2f}) is used up"
    return ""


def spent_before(limits: Limits, spent: Spent) -> str:
    """Why a run of a chat has nothing to begin with, as a sentence; empty if it has. A workflow's last word is worth
    its money also then, for it has the evidence before it asks anybody."""
    if limits.warns or spent.iterations or not no_money(replace(limits, usd=None), Decimal(0), 0, spent.usd_today):
        return ""
    return (
        f"The money of the day is used up (${spent.usd_today:.2f} of ${limits.usd_per_day:.2f}), so no model was "
        "asked. Raise budgets.usd_per_day, or go on tomorrow."
    )


def _money(budget: str, ceiling: Decimal, usd: Decimal, unpriced: int) -> Pressure:
    """A ceiling that cannot be checked is treated as reached: the price of the model is unknown."""
    if unpriced or ceiling <= 0:
        return Pressure(EndReason.COST_LIMIT, budget, 1.0, "an unknown amount of money" if unpriced else "no money")
    left = f"${max(Decimal(0), ceiling - usd):.4f} of ${ceiling:.4f}"
    return Pressure(EndReason.COST_LIMIT, budget, float(usd / ceiling), left)
