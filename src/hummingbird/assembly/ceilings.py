"""The ceilings of an agent's runs, from what a program may say of them (L6)."""

from dataclasses import replace
from decimal import Decimal

from hummingbird.agent.budget import CHAT, Limits
from hummingbird.domain.errors import UsageFault


def ceilings(
    iterations: int,
    context_tokens: int | None,
    usd: Decimal | float | None,
    usd_per_day: Decimal | float | None,
    seconds: float | None,
    *,
    warns: bool,
    kept: bool,
) -> Limits:
    """`kept`: whether what is spent in a day is on record. Raises UsageFault for what makes no sense."""
    if iterations < 1:
        raise UsageFault(f"max_iterations is {iterations}; give the agent at least one turn.")
    if context_tokens is not None and context_tokens < 1:
        raise UsageFault(f"context_limit is {context_tokens}; give a number of tokens, or None.")
    if usd_per_day is not None and not kept:
        raise UsageFault("max_usd_per_day needs sessions_dir: what was spent is recorded there.")
    return replace(
        CHAT,
        iterations=iterations,
        context_tokens=context_tokens,
        usd=_money(usd),
        usd_per_day=_money(usd_per_day),
        seconds=seconds,
        warns=warns,
    )


def _money(usd: Decimal | float | None) -> Decimal | None:
    return None if usd is None else Decimal(str(usd))
