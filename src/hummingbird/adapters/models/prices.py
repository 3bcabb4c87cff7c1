"""What a call costs (M7): rates from genai-prices, or the operator's own; None where nobody knows.

Refuses to guess: a model without a price is unknown, never free. Reads nothing from the network.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from hummingbird.domain.usage import Usage

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice

Price: TypeAlias = Callable[[Usage], Decimal | None]
Now: TypeAlias = Callable[[], datetime]

MILLION = Decimal(1_000_000)
SELLERS = MappingProxyType(
    {
        "anthropic": "anthropic",
        "vertex-anthropic": "google",
        "gemini": "google",
        "vertex-gemini": "google",
        "openai": "openai",
    }
)
# What our usage can be priced by. Other rates (searches, audio, pages) are for things we never buy.
_COUNTED = ("input_mtok", "cache_read_mtok", "cache_write_mtok", "output_mtok")
_RECKONED_THERE = ("requests_kcount", "output_reasoning_mtok")


@dataclass(frozen=True, slots=True)
class PriceOverride:
    """USD per million tokens. A cache rate that is not given is the rate of fresh input."""

    fresh: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None


@dataclass(frozen=True, slots=True)
class _Rates:
    """`above`: the tier holds for requests with more input tokens than this; it prices the whole request."""

    above: int
    fresh: Decimal
    cache_read: Decimal
    cache_write: Decimal
    output: Decimal

    def cost(self, usage: Usage) -> Decimal:
        total = (
            self.fresh * usage.fresh
            + self.cache_read * usage.cache_read
            + self.cache_write * usage.cache_write
            + self.output * usage.output
        )
        return total / MILLION


def free(usage: Usage) -> Decimal:  # noqa: ARG001 - a Price
    """The price of replaying what was paid for once."""
    return Decimal(0)


def _utc_now() -> datetime:
    return datetime.now(tz=UTC)


def priced(
    model: str,
    provider: str | None,
    overrides: Mapping[str, PriceOverride] = MappingProxyType({}),
    *,
    written: Iterable[str] = (),
    base_url: str | None = None,
    now: Now = _utc_now,
) -> Price:
    """The price of `provider:model`. Overrides are found by the names it was `written` as, else by that one,
    else by the model's alone.

    A provider we have no seller for is looked up by `base_url`: a model on one's own machine has no price.
    """
    for name in (*written, f"{provider}:{model}", model):
        if (override := overrides.get(name)) is not None:
            return _overridden(override).cost
    return _ListPrice(model, SELLERS.get(provider or ""), base_url, now)


def _overridden(override: PriceOverride) -> _Rates:
    read = override.fresh if override.cache_read is None else override.cache_read
    write = override.fresh if override.cache_write is None else override.cache_write
    return _Rates(0, override.fresh, read, write, override.output)


class _ListPrice:
    """Looks the model up at the first call. Prices change by date and hour, so the rates are picked per call."""

    def __init__(self, model: str, seller: str | None, base_url: str | None, now: Now) -> None:
        self._model = model
        self._seller = seller
        self._base_url = base_url
        self._now = now
        self._found: ModelInfo | None = None
        self._searched = False
        self._tiers: dict[int, tuple[_Rates, ...]] = {}

    def __call__(self, usage: Usage) -> Decimal | None:
        if not self._searched:
            self._found = _find(self._model, self._seller, self._base_url)
            self._searched = True
        if self._found is None:
            return None
        listed = self._found.get_prices(self._now())
        # By id: price lists live as long as the model that `_found` holds.
        if (tiers := self._tiers.get(id(listed))) is None:
            tiers = self._tiers[id(listed)] = _tiers(listed)
        if not tiers:
            return _reckoned(listed, usage)
        context = usage.context
        return next(rates for rates in tiers if context > rates.above or not rates.above).cost(usage)


def _find(model: str, seller: str | None, base_url: str | None) -> "ModelInfo | None":
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 - 0.25 s, and only a real model needs it

    if seller is None and base_url is None:
        return None
    snapshot = get_snapshot()
    for name in dict.fromkeys((model, model.partition("@")[0])):
        try:
            return snapshot.find_provider_model(name, None, seller, None if seller else base_url)[1]
        except LookupError:
            continue
    return None


def _tiers(listed: "ModelPrice") -> tuple[_Rates, ...]:
    """Highest tier first, the one from 0 last; nothing if this list has rates that we leave to the library.

    Why not simply the library for all: it takes 0.17 ms a call, this takes a few microseconds.
    """
    if listed.input_mtok is None or any(getattr(listed, key) is not None for key in _RECKONED_THERE):
        return ()
    rates = [getattr(listed, key) for key in _COUNTED]
    starts = {tier.start for rate in rates for tier in getattr(rate, "tiers", ())}
    return tuple(_rates_above(start, rates) for start in sorted(starts | {0}, reverse=True))


def _rates_above(start: int, rates: "list[object]") -> _Rates:
    fresh, read, write, output = (_at(rate, start) for rate in rates)
    assert fresh is not None
    return _Rates(
        start,
        fresh,
        fresh if read is None else read,  # without a rate of their own they are input like any other
        fresh if write is None else write,
        Decimal(0) if output is None else output,
    )


def _at(rate: object, start: int) -> Decimal | None:
    from genai_prices.types import TieredPrices  # noqa: PLC0415 - already imported by `_find`

    if not isinstance(rate, TieredPrices):
        assert rate is None or isinstance(rate, Decimal)
        return rate
    return next((tier.price for tier in reversed(rate.tiers) if start >= tier.start), rate.base)


def _reckoned(listed: "ModelPrice", usage: Usage) -> Decimal | None:
    from genai_prices.types import Usage as Counted  # noqa: PLC0415 - already imported by `_find`

    if listed.input_mtok is None and listed.output_mtok is None:
        return None
    counted = Counted(
        input_tokens=usage.context,  # inclusive there: the cache counts are part of it
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
        output_tokens=usage.output,
        output_reasoning_tokens=min(usage.reasoning, usage.output),
    )
    return listed.calc_price(counted)["total_price"]
