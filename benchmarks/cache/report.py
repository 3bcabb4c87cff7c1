"""Prints the bill of each policy as a ratio to the best possible one."""

from benchmarks.cache.investigation import MODEL, investigation
from benchmarks.cache.policies import POLICIES, Rates, best, bill
from hummingbird.core.usage import TokenUsage
from hummingbird.models.prices import find_price

SEEDS = (7, 11, 23)


def rates() -> Rates:
    """Today's price list, per million tokens."""
    price = find_price(MODEL, "anthropic")

    def per_million(usage: TokenUsage) -> float:
        found = price(usage)
        assert found is not None, f"no price for {MODEL}"
        return float(found)

    million = 1_000_000
    return Rates(
        fresh=per_million(TokenUsage(fresh=million)),
        read=per_million(TokenUsage(cache_read=million)),
        write=per_million(TokenUsage(cache_write=million)),
        output=per_million(TokenUsage(output=million)),
    )


def report(*, quick: bool) -> None:
    price = rates()
    print(f"## Cache cost: simulated {MODEL} bill, ratio to the best possible placement\n")
    print(f"Worst of {len(SEEDS)} scripted investigations each. The resume comes inside the TTL.\n")
    print("| turns (first run + resume) | requests | notices | policy | bill ÷ best | input read from cache |")
    print("|---|--:|--:|---|--:|--:|")
    for turns, long in ((20, False),) if quick else ((20, False), (50, False), (20, True)):
        told = [investigation(turns, seed, long=long) for seed in SEEDS]
        label = f"{turns} + {max(3, turns // 3)}{', long answers' if long else ''}"
        for name, policy in {"best possible (search)": None, **POLICIES}.items():
            ratios, shares = [], []
            for sent, _ in told:
                least = bill(sent, best(sent, price), price)
                cost = least if policy is None else bill(sent, policy(sent), price)
                ratios.append(cost.usd / least.usd)
                shares.append(cost.read / (cost.read + cost.fresh + cost.written))
            sizes, notices = (f"{len(sent)}" for sent, _ in told), (f"{count}" for _, count in told)
            row = (label, "/".join(sizes), "/".join(notices), name, f"{max(ratios):.4f}×", f"{min(shares):.0%}")
            print(f"| {' | '.join(row)} |")
    print()
