"""The caches that work without being asked: OpenAI's and Gemini's, simulated from their documentation.

Both compare whole prefixes. Older OpenAI models and Gemini remember every prefix they have seen; OpenAI from gpt-5.6 on
remembers the ends of prompts and marked places, and bills for writing them. Units are messages, items or content parts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.standins.vendors.cache import RENEWAL_S, Entries
from tests.standins.vendors.tokens import digest, plain, tokens

# facts/llm.md 3: OpenAI caches prompts of 1024 tokens and more
OPENAI_MINIMUM = 1024
# facts/llm.md 3: lifetimes from gpt-5.6 on
OPENAI_TTL_S: dict[str, float] = {"30m": 1800.0, "12h": 43200.0}
# nobody promises a lifetime for the caches that are free; ten minutes is the lab's
FREE_TTL_S = 600.0
# facts/llm.md 3: at most four writes in a request, the implicit one counts
WRITES = 4


@dataclass(frozen=True, slots=True)
class PrefixReading:
    """What one prompt costs and will leave behind. `cached` and `written` are part of `total`."""

    total: int
    cached: int
    written: int
    writes: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in the prompt, after unit number `unit`, that shall be written for `ttl`."""

    unit: int
    ttl: str = "30m"


class FreeCache:
    """Every prefix of every prompt, from `minimum` tokens on; writing is free and not reported."""

    def __init__(self, clock: Callable[[], float], ttl_s: float = FREE_TTL_S) -> None:
        self._entries = Entries(clock)
        self._ttl_s = ttl_s

    def read(self, seed: object, units: Sequence[object], minimum: int) -> PrefixReading:
        chain = _chain(seed, units)
        long_enough = [(key, size) for key, size in chain if size >= minimum]
        cached = max((size for key, size in long_enough if self._entries.alive(key)), default=0)
        writes = tuple((key, self._ttl_s) for key, _ in long_enough)
        return PrefixReading(_total(chain), cached, 0, writes)

    def commit(self, reading: PrefixReading) -> None:
        for key, ttl_s in reading.writes:
            self._entries.put(key, ttl_s)


class MarkedCache:
    """OpenAI from gpt-5.6 on: only marked places and, unless switched off, the end of the prompt."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._entries = Entries(clock)

    def read(
        self, seed: object, units: Sequence[object], marks: Sequence[Mark], *, implicit: str | None = "30m"
    ) -> PrefixReading:
        chain = _chain(seed, units)
        hit = self._longest(chain)
        cached = hit[1] if hit else 0
        places = [mark for mark in marks if mark.unit < len(chain)][-(WRITES - (implicit is not None)) :]
        if implicit is not None and chain:
            places.append(Mark(len(chain) - 1, implicit))
        worth = [mark for mark in places if chain[mark.unit][1] >= OPENAI_MINIMUM]
        end = max((chain[mark.unit][1] for mark in worth), default=0)
        writes = [(chain[mark.unit][0], OPENAI_TTL_S[mark.ttl]) for mark in worth]
        renewed = [(hit[0], RENEWAL_S)] if hit else []
        return PrefixReading(_total(chain), cached, max(0, end - cached), (*renewed, *writes))

    def commit(self, reading: PrefixReading) -> None:
        for key, ttl_s in reading.writes:
            self._entries.put(key, ttl_s)

    def _longest(self, chain: list[tuple[str, int]]) -> tuple[str, int] | None:
        """The longest remembered prefix; there is no limit to how far back it may end."""
        return next(((key, size) for key, size in reversed(chain) if self._entries.alive(key)), None)


def _chain(seed: object, units: Sequence[object]) -> list[tuple[str, int]]:
    key, size, found = digest(seed), 0, []
    for unit in units:
        key = digest(key, plain(unit))
        size += tokens(unit)
        found.append((key, size))
    return found


def _total(chain: list[tuple[str, int]]) -> int:
    return chain[-1][1] if chain else 0
