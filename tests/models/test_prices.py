"""What a call costs."""

import random
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from genai_prices import Usage as Counted
from genai_prices.data_snapshot import get_snapshot

from hummingbird.core.usage import TokenUsage
from hummingbird.models.prices import SELLERS, PriceOverride, find_price, zero_price

USED = TokenUsage(fresh=1_000, cache_read=20_000, cache_write=3_000, output=500, reasoning=200)


def test_the_three_input_counts_each_have_their_own_rate() -> None:
    """Claude-opus-5-5: 4 / 0.2 / 5 / 20 USD per million."""
    cost = find_price("claude-opus-5-5", "anthropic")(USED)
    assert cost == Decimal("0.033")  # 0.004 + 0.004 + 0.015 + 0.010


@pytest.mark.parametrize(
    ("model", "provider"),
    [
        ("no-such-model", "anthropic"),
        ("llama-4", "openai-chat"),
        ("gpt-6.1-sol", None),
    ],
)
def test_a_model_nobody_prices_costs_unknown_and_never_zero(model: str, provider: str | None) -> None:
    assert find_price(model, provider)(USED) is None


def test_a_model_on_ones_own_machine_has_no_price_even_if_its_name_is_known() -> None:
    assert find_price("gpt-6.1-sol", "openai-chat", base_url="http://localhost:8000/v1")(USED) is None


def test_a_compatible_host_that_sells_models_is_found_by_its_address() -> None:
    cost = find_price("deepseek-chat", "openai-chat", base_url="https://api.deepseek.com/v1")(USED)
    assert cost is not None
    assert cost > 0


@pytest.mark.parametrize("provider", ["anthropic", "vertex-anthropic"])
def test_a_dated_vertex_name_is_the_same_model(provider: str) -> None:
    assert find_price("claude-opus-4-8@20260401", provider)(USED) == find_price("claude-opus-4-8", provider)(USED)


def test_a_long_prompt_reprices_the_whole_request() -> None:
    """Gpt-6.1-sol doubles its input rate above 272,000 tokens, cached ones included in the count."""
    price = find_price("gpt-6.1-sol", "openai")
    short, long = price(TokenUsage(fresh=2_000, cache_read=270_000)), price(TokenUsage(fresh=2_001, cache_read=270_000))
    assert short == Decimal("0.031")  # 0.004 + 0.027
    assert long == Decimal("0.062004")  # 0.008004 + 0.054


def test_prices_that_change_by_date_are_picked_per_call() -> None:
    """Gemini-4-argon doubles on 2026-12-01."""
    today = datetime(2026, 11, 30, tzinfo=UTC)
    price = find_price("gemini-4-argon", "gemini", now=lambda: today)
    before = price(USED)
    today = datetime(2026, 12, 1, tzinfo=UTC)
    assert before is not None
    assert price(USED) == before * 2


def test_an_override_wins_and_is_found_by_full_name_before_the_models() -> None:
    mine = PriceOverride(fresh=Decimal(1), output=Decimal(2), cache_read=Decimal("0.5"), cache_write=Decimal(3))
    other = PriceOverride(fresh=Decimal(9), output=Decimal(9))
    overrides = {"openai-chat:llama-4": mine, "llama-4": other}
    assert find_price("llama-4", "openai-chat", overrides)(USED) == Decimal("0.021")  # 0.001 + 0.010 + 0.009 + 0.001
    assert find_price("llama-4", "openai", overrides)(USED) == Decimal("0.2205")  # 9 USD for all 24,500


def test_replaying_costs_nothing() -> None:
    assert zero_price(USED) == 0


@pytest.mark.parametrize("seller", sorted({*SELLERS.values(), "openrouter", "perplexity", "deepseek"}))
def test_every_listed_model_costs_what_the_price_library_says(seller: str) -> None:
    """Our four rates per tier are a shortcut, not a second opinion."""
    snapshot = get_snapshot()
    provider = next(p for p in snapshot.providers if p.id == seller)
    chance = random.Random(seller)
    at = datetime(2026, 11, 15, 12, tzinfo=UTC)
    names = {hummingbird: ours for ours, hummingbird in SELLERS.items()}
    compared = 0
    for model in chance.sample(provider.models, min(40, len(provider.models))):
        listed = model.get_prices(at)
        if listed.input_mtok is None or snapshot.find_provider_model(model.id, None, seller, None)[1] is not model:
            continue
        url = None if seller in names else {"openrouter": "https://openrouter.ai/api/v1"}.get(seller)
        url = url or f"https://api.{seller}.{'ai' if seller == 'perplexity' else 'com'}"
        price = find_price(model.id, names.get(seller, "openai-chat"), base_url=url, now=lambda: at)
        for size in (0, 100_000, 100_001, 200_000, 200_001, 272_000, 272_001, 900_000):
            read, write = chance.randint(0, size // 2), chance.randint(0, size // 2)
            used = TokenUsage(size - read - write, read, write, output=700, reasoning=300)
            counted = Counted(
                input_tokens=size,
                cache_read_tokens=read,
                cache_write_tokens=write,
                output_tokens=700,
                output_reasoning_tokens=300,
            )
            assert price(used) == listed.calc_price(counted)["total_price"], model.id
            compared += 1
    assert compared


def test_nothing_is_imported_before_the_first_question() -> None:
    """Importing does nothing; the price table takes a quarter of a second to load."""
    code = (
        "import sys; from hummingbird.models.prices import find_price; find_price('gpt-6.1-sol', 'openai');"
        "sys.exit('genai_prices' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
