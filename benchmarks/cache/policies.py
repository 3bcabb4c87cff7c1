"""Ways to place cache breakpoints on the same requests, and the best there is, by search.

In an append-only conversation only the longest live entry matters: a breakpoint can always be put exactly on it.
So the best placement is a path through (request, longest entry): every possible last breakpoint of every request is
tried against every possible entry before it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.cache.investigation import Sent, without_marks
from tests.standins.vendors.anthropic_prompt import Block, rendered
from tests.standins.vendors.cache import AnthropicCache
from tests.standins.vendors.models import claude
from tests.standins.vendors.tokens import tokens

MARK = {"type": "ephemeral"}


@dataclass(frozen=True, slots=True)
class Rates:
    """USD per million tokens."""

    fresh: float
    read: float
    write: float
    output: float


@dataclass(frozen=True, slots=True)
class Cost:
    usd: float
    fresh: int
    read: int
    written: int


def bill(sent: Sequence[Sent], bodies: Sequence[dict[str, Any]], rates: Rates) -> Cost:
    """What these bodies would have cost at these moments, by the simulated cache."""
    now = 0.0
    cache = AnthropicCache(lambda: now)
    usd, fresh, read, written = 0.0, 0, 0, 0
    for one, body in zip(sent, bodies, strict=True):
        now = one.at
        reading = cache.read(body)
        cache.commit(reading)
        used = reading.usage
        fresh += used["input_tokens"]
        read += used["cache_read_input_tokens"]
        written += used["cache_creation_input_tokens"]
        usd += one.output_tokens * rates.output
    usd += fresh * rates.fresh + read * rates.read + written * rates.write
    return Cost(usd / 1e6, fresh, read, written)


def ours(sent: Sequence[Sent]) -> list[dict[str, Any]]:
    return [one.body for one in sent]


def none(sent: Sequence[Sent]) -> list[dict[str, Any]]:
    return [without_marks(one.body) for one in sent]


def automatic(sent: Sequence[Sent]) -> list[dict[str, Any]]:
    return [{**without_marks(one.body), "cache_control": MARK} for one in sent]


def system_and_last_three(sent: Sequence[Sent]) -> list[dict[str, Any]]:
    """What many agents do: the system prompt and the last three messages."""
    bodies = []
    for one in sent:
        body = without_marks(one.body)
        if isinstance(body.get("system"), list):
            body["system"][-1]["cache_control"] = MARK
        for message in body["messages"][-3:]:
            marked = (
                [b for b in message["content"] if "thinking" not in b["type"]]
                if isinstance(message["content"], list)
                else []
            )
            if marked:
                marked[-1]["cache_control"] = MARK
        bodies.append(body)
    return bodies


def best(sent: Sequence[Sent], rates: Rates) -> list[dict[str, Any]]:
    """The cheapest placement, found by trying all of them."""
    plans = [_places(one.body) for one in sent]
    # reachable[m] = (cost so far, last breakpoints chosen) where the longest entry ends after m blocks
    reachable: dict[int, tuple[float, tuple[int, ...]]] = {0: (0.0, ())}
    for sizes, allowed in plans:
        after: dict[int, tuple[float, tuple[int, ...]]] = {}
        for have, (cost, chosen) in reachable.items():
            for last in (have, *(place for place in allowed if place > have)):
                price = sizes[have] * rates.read + (sizes[last] - sizes[have]) * rates.write
                price += (sizes[-1] - sizes[last]) * rates.fresh
                known = after.get(last)
                if known is None or cost + price < known[0]:
                    after[last] = (cost + price, (*chosen, last))
        reachable = after
    lasts = min(reachable.values())[1]
    bodies, have = [], 0
    for one, last in zip(sent, lasts, strict=True):
        bodies.append(_marked(one.body, {have, last} - {0}))
        have = last
    return bodies


def _places(body: dict[str, Any]) -> tuple[list[int], list[int]]:
    """Cumulated sizes after 0, 1, 2… blocks, and the counts of blocks after which a breakpoint is allowed."""
    model = claude(str(body["model"]))
    blocks = rendered(without_marks(body), model)
    sizes = [0]
    for block in blocks:
        sizes.append(sizes[-1] + tokens(block.raw))
    least = model.cache_minimum if model else 1024
    return sizes, [n for n, block in enumerate(blocks, 1) if block.cacheable and sizes[n] >= least]


def _marked(body: dict[str, Any], places: set[int]) -> dict[str, Any]:
    bare = without_marks(body)
    for number, block in enumerate(rendered(bare, claude(str(body["model"]))), 1):
        if number in places:
            _raw(block)["cache_control"] = MARK
    return bare


def _raw(block: Block) -> dict[str, Any]:
    raw: dict[str, Any] = block.raw
    return raw


POLICIES: dict[str, Callable[[Sequence[Sent]], list[dict[str, Any]]]] = {
    "Hummingbird": ours,
    "automatic caching": automatic,
    "system + last three messages": system_and_last_three,
    "no caching": none,
}
