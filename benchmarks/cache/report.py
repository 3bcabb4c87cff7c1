"""Prints the bill of each policy as a ratio to the best possible one."""

from benchmarks.cache.investigation import MODEL, investigation
from benchmarks.cache.policies import POLICIES, Rates, best, bill
from hummingbird.adapters.models.prices import priced
from hummingbird.domain.usage import Usage


def rates() -> Rates:
    """Today's price list, per million tokens."""
    price = priced(MODEL, "anthropic")

    def per_million(usage: Usage) -> float:
        found = price(usage)
        assert found is not None, f"no price for {MODEL}"
        return float(found)

    million = 1_000_000
    return Rates(
        fresh=per_million(Usage(fresh=million)),
        read=per_million(Usage(cache_read=million)),
        write=per_million(Usage(cache_write=million)),
        output=per_million(Usage(output=million)),
    )


def report(*, quick: bool) -> None:
    price = rates()
    print(f"## Cache cost: simulated {MODEL} bill, ratio to the best possible placement\n")
    print("| turns (first run + resume) | requests | notices | policy | bill ÷ best | input read from cache |")
    print("|---|--:|--:|---|--:|--:|")
    for turns in (20,) if quick else (20, 50):
        sent, notices = investigation(turns)
        least = bill(sent, best(sent, price), price)
        label = f"{turns} + {max(3, turns // 3)}"
        for name, policy in {"best possible (search)": None, **POLICIES}.items():
            cost = least if policy is None else bill(sent, policy(sent), price)
            share = cost.read / (cost.read + cost.fresh + cost.written)
            print(f"| {label} | {len(sent)} | {notices} | {name} | {cost.usd / least.usd:.3f}× | {share:.0%} |")
    print()
