"""Compute the cost of a model call from the rates of genai-prices, or from the operator's own.

A model without a known price has the cost None, never 0. Prices are not fetched over the network.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from hummingbird.core.usage import TokenUsage

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice

Price: TypeAlias = Callable[[TokenUsage], Decimal | None]
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
# The rates that apply to our usage. Other rates (searches, audio, pages) are for features that we never use.
_COUNTED = ("input_mtok", "cache_read_mtok", "cache_write_mtok", "output_mtok")
_LIBRARY_ONLY_RATES = ("requests_kcount", "output_reasoning_mtok")

_NO_CHAT = re.compile(
    r"audio|embedding|image|instruct|live|realtime|robotics|search|transcribe|tts|vision|[:.]ft|banana"
)


@dataclass(frozen=True, slots=True)
class PriceOverride:
    """The operator's rates in USD per million tokens. A missing cache rate means the rate of fresh input."""

    fresh: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None


@dataclass(frozen=True, slots=True)
class _TokenRates:
    """The rates of one tier. It applies to the whole request if that has more than `above` input tokens."""

    above: int
    fresh: Decimal
    cache_read: Decimal
    cache_write: Decimal
    output: Decimal

    def cost(self, usage: TokenUsage) -> Decimal:
        total = (
            self.fresh * usage.fresh
            + self.cache_read * usage.cache_read
            + self.cache_write * usage.cache_write
            + self.output * usage.output
        )
        return total / MILLION


def zero_price(usage: TokenUsage) -> Decimal:  # noqa: ARG001 - a Price
    """Return 0, the price of models that answer in this process."""
    return Decimal(0)


def _utc_now() -> datetime:
    return datetime.now(tz=UTC)


def find_price(
    model: str,
    provider: str | None,
    overrides: Mapping[str, PriceOverride] = MappingProxyType({}),
    *,
    written: Iterable[str] = (),
    base_url: str | None = None,
    now: Now = _utc_now,
) -> Price:
    """Return the function that computes the price of a model's usage.

    Overrides are looked up by the names in `written`, then by `provider:model`, then by the model's name alone. For a
    provider that is not in SELLERS, genai-prices looks up the seller by `base_url`; a model on a local server has no
    price.
    """
    for name in (*written, f"{provider}:{model}", model):
        if (override := overrides.get(name)) is not None:
            return _rates_from_override(override).cost
    return _ListPrice(model, SELLERS.get(provider or ""), base_url, now)


def list_chat_models() -> list[str]:
    """Return the names of the vendors' own chat models that have a list price, the newest families last."""
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 - 0.25 s

    prefixes = {"anthropic": "claude-", "google": "gemini-", "openai": "gpt-"}
    return [
        model.id
        for provider in get_snapshot().providers
        if provider.id in prefixes
        for model in provider.models
        if model.id.startswith(prefixes[provider.id]) and not _NO_CHAT.search(model.id)
    ]


def _rates_from_override(override: PriceOverride) -> _TokenRates:
    read = override.fresh if override.cache_read is None else override.cache_read
    write = override.fresh if override.cache_write is None else override.cache_write
    return _TokenRates(0, override.fresh, read, write, override.output)


class _ListPrice:
    """The list price of a model. It looks up the model at the first call, and the rates at each: they vary by time."""

    def __init__(self, model: str, seller: str | None, base_url: str | None, now: Now) -> None:
        self._model = model
        self._seller = seller
        self._base_url = base_url
        self._now = now
        self._found: ModelInfo | None = None
        self._searched = False
        self._tiers: dict[int, tuple[_TokenRates, ...]] = {}

    def __call__(self, usage: TokenUsage) -> Decimal | None:
        if not self._searched:
            self._found = _find_model_info(self._model, self._seller, self._base_url)
            self._searched = True
        if self._found is None:
            return None
        listed = self._found.get_prices(self._now())
        # Keyed by id, which stays valid because `_found` keeps the price lists alive.
        if (tiers := self._tiers.get(id(listed))) is None:
            tiers = self._tiers[id(listed)] = _parse_tiers(listed)
        if not tiers:
            return _library_price(listed, usage)
        context = usage.context
        return next(rates for rates in tiers if context > rates.above or not rates.above).cost(usage)


def _find_model_info(model: str, seller: str | None, base_url: str | None) -> "ModelInfo | None":
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


def _parse_tiers(listed: "ModelPrice") -> tuple[_TokenRates, ...]:
    """Return the tiers, the highest first and the one from 0 last; nothing if only the library can apply the rates.

    We do not use the library for all, because it takes 0.17 ms per call; this takes a few microseconds.
    """
    if listed.input_mtok is None or any(getattr(listed, key) is not None for key in _LIBRARY_ONLY_RATES):
        return ()
    rates = [getattr(listed, key) for key in _COUNTED]
    starts = {tier.start for rate in rates for tier in getattr(rate, "tiers", ())}
    return tuple(_rates_above(start, rates) for start in sorted(starts | {0}, reverse=True))


def _rates_above(start: int, rates: "list[object]") -> _TokenRates:
    fresh, read, write, output = (_rate_at(rate, start) for rate in rates)
    assert fresh is not None
    return _TokenRates(
        start,
        fresh,
        fresh if read is None else read,  # without their own rate, cached tokens cost as much as fresh input
        fresh if write is None else write,
        Decimal(0) if output is None else output,
    )


def _rate_at(rate: object, start: int) -> Decimal | None:
    from genai_prices.types import TieredPrices  # noqa: PLC0415 - already imported by `_find_model_info`

    if not isinstance(rate, TieredPrices):
        assert rate is None or isinstance(rate, Decimal)
        return rate
    return next((tier.price for tier in reversed(rate.tiers) if start >= tier.start), rate.base)


def _library_price(listed: "ModelPrice", usage: TokenUsage) -> Decimal | None:
    from genai_prices.types import Usage as Counted  # noqa: PLC0415 - already imported by `_find_model_info`

    if listed.input_mtok is None and listed.output_mtok is None:
        return None
    counted = Counted(
        input_tokens=usage.context,  # the library counts cached tokens as part of the input
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
        output_tokens=usage.output,
        output_reasoning_tokens=min(usage.reasoning, usage.output),
    )
    return listed.calc_price(counted)["total_price"]
