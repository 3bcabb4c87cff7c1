"""The yardstick of the cache benchmark: its search really finds the cheapest placement of breakpoints."""

from itertools import combinations, product
from typing import Any

import pytest

from benchmarks.cache.investigation import Sent, without_marks
from benchmarks.cache.policies import MARK, Rates, best, bill, none
from tests.standins.vendors.anthropic_prompt import rendered
from tests.standins.vendors.models import claude

MODEL = "claude-opus-5"
RATES = Rates(fresh=5.0, read=0.5, write=6.25, output=25.0)


def talk(sizes: list[int]) -> list[Sent]:
    """Requests that grow by a question and an answer; sizes are bytes, four of them a token."""
    sent, messages = [], []
    for number, size in enumerate(sizes):
        messages.append({"role": "user", "content": [{"type": "text", "text": f"{number}" * size}]})
        body: dict[str, Any] = {"model": MODEL, "max_tokens": 1, "messages": [dict(m) for m in messages]}
        sent.append(Sent(60.0 * number, without_marks(body), 10))
        messages.append({"role": "assistant", "content": [{"type": "text", "text": "x" * 400}]})
    return sent


def all_placements(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The same body with every choice of up to four breakpoints."""
    count = len(rendered(body, claude(MODEL)))
    made = []
    for places in (p for n in range(5) for p in combinations(range(count), n)):
        bare = without_marks(body)
        for at, block in enumerate(rendered(bare, claude(MODEL))):
            if at in places:
                block.raw["cache_control"] = MARK
        made.append(bare)
    return made


@pytest.mark.thorough
@pytest.mark.parametrize("sizes", [[8000, 40, 4000], [100, 4000, 4000], [9000, 9000, 10], [2000, 2000, 2000]])
def test_no_choice_of_breakpoints_is_cheaper_than_the_one_found(sizes: list[int]) -> None:
    """Every placement of up to four breakpoints on every request, by the simulated cache itself."""
    sent = talk(sizes)
    found = bill(sent, best(sent, RATES), RATES).usd
    cheapest = min(bill(sent, bodies, RATES).usd for bodies in product(*(all_placements(one.body) for one in sent)))
    assert found == pytest.approx(cheapest)
    assert found < bill(sent, none(sent), RATES).usd
