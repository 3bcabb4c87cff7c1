"""Count what model calls used and cost, normalised the same way for every provider."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Token counts of one or more calls.

    `output` includes `reasoning`; the three input counts (`fresh`, `cache_read`, `cache_write`) do not overlap.
    """

    fresh: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0

    @property
    def context(self) -> int:
        """Return the size of the request for the model, in tokens."""
        return self.fresh + self.cache_read + self.cache_write

    def __add__(self, other: "TokenUsage") -> "TokenUsage":
        return TokenUsage(
            self.fresh + other.fresh,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.output + other.output,
            self.reasoning + other.reasoning,
        )


OUTCOME_UNKNOWN = "outcome unknown"


@dataclass(frozen=True, slots=True)
class Charge:
    """One model call attempt in the usage ledger.

    `usage` is None when the provider never reported it, `cost_usd` is None when the price is unknown.
    """

    model: str
    purpose: str
    outcome: str
    usage: TokenUsage | None = None
    cost_usd: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Bill:
    """The sum of all charges, which notes, transcripts, the command line and the dashboard all show.

    `unknown` counts answered calls without a known price.
    """

    attempts: int
    answered: int
    usage: TokenUsage
    known_usd: Decimal
    unknown: int
    lost: int = 0  # attempts of unknown outcome; the provider may have billed them

    @property
    def cache_share(self) -> float:
        """Return the share of all input tokens that came from the provider's cache."""
        return self.usage.cache_read / self.usage.context if self.usage.context else 0.0

    @property
    def cost_usd(self) -> Decimal | None:
        """Return the total, or None while the price or the outcome of any call is unknown."""
        return None if self.unknown or self.lost else self.known_usd

    def __str__(self) -> str:
        money = f"${self.known_usd:.4f}"
        if self.unknown:
            part = f" ({money} known)" if self.known_usd else ""
            money = f"cost unknown for {self.unknown} of {self.answered} calls{part}"
        if self.lost:
            money += f", {self.lost} more of unknown outcome"
        used = self.usage
        calls = "1 model call" if self.answered == 1 else f"{self.answered} model calls"
        return f"{calls}, {used.context:,} tokens in ({self.cache_share:.0%} cached), {used.output:,} out, {money}"


def sum_charges(charges: Iterable[Charge]) -> Bill:
    """Add charges up to one bill."""
    usage, known, attempts, answered, unknown, lost = TokenUsage(), Decimal(0), 0, 0, 0, 0
    for charge in charges:
        attempts += 1
        lost += charge.outcome == OUTCOME_UNKNOWN
        if charge.usage is not None:
            answered += 1
            usage = usage + charge.usage
        if charge.cost_usd is not None:
            known += charge.cost_usd
        elif charge.usage is not None:
            unknown += 1
    return Bill(attempts, answered, usage, known, unknown, lost)
