"""What a model call used and what it cost (L15, M7): normalised the same way for every provider."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts. `output` includes `reasoning`; the three input counts do not overlap."""

    fresh: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0

    @property
    def context(self) -> int:
        """How large the request was for the model."""
        return self.fresh + self.cache_read + self.cache_write

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.fresh + other.fresh,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.output + other.output,
            self.reasoning + other.reasoning,
        )


LOST = "outcome unknown"


@dataclass(frozen=True, slots=True)
class Charge:
    """One attempt in the ledger. `usage` None: the provider never said. `cost_usd` None: unknown price."""

    model: str
    purpose: str
    outcome: str
    usage: Usage | None = None
    cost_usd: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Bill:
    """The one sum that note, transcript, command line and dashboard all show (L15)."""

    attempts: int
    answered: int
    usage: Usage
    known_usd: Decimal
    unknown: int
    lost: int = 0  # attempts whose end nobody saw; the provider may have billed them

    @property
    def cache_share(self) -> float:
        """Which part of all input came from the provider's cache."""
        return self.usage.cache_read / self.usage.context if self.usage.context else 0.0

    @property
    def cost_usd(self) -> Decimal | None:
        """None while a call has an unknown price or end: a sum with holes is not a sum."""
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


def total(charges: Iterable[Charge]) -> Bill:
    usage, known, attempts, answered, unknown, lost = Usage(), Decimal(0), 0, 0, 0, 0
    for charge in charges:
        attempts += 1
        lost += charge.outcome == LOST
        if charge.usage is not None:
            answered += 1
            usage = usage + charge.usage
        if charge.cost_usd is not None:
            known += charge.cost_usd
        elif charge.usage is not None:
            unknown += 1
    return Bill(attempts, answered, usage, known, unknown, lost)
