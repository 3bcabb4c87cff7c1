"""Anthropic's prompt cache, simulated from its documentation so that a bill can be computed without the vendor.

Pure but for an injected clock. A request is read first and committed when its response starts: until then nobody else
can read what it writes. It knows requests, not HTTP, and does not check them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.standins.vendors.anthropic_prompt import breakpoints, rendered, sequence
from tests.standins.vendors.models import Claude, claude
from tests.standins.vendors.refusals import Raw
from tests.standins.vendors.tokens import digest, tokens

# facts/llm.md 1, prompt caching: ttl 5m by default or 1h
TTL_S: dict[str, float] = {"5m": 300.0, "1h": 3600.0}
# facts/llm.md 1, prompt caching: a breakpoint searches back about 20 positions; the breakpoint is the first of them
LOOKBACK = 20
_TIERS = ("tools", "system", "messages")
_RUNS = frozenset({"tool_use", "tool_result"})
_IMAGES = frozenset({"image", "document"})


# what a hit adds to the lifetime that an entry has anyway
RENEWAL_S = 0.0


class Entries:
    """Which prefixes are cached until when. Putting one that lives renews it, for its own lifetime at least."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._expiry: dict[str, tuple[float, float]] = {}

    def alive(self, key: str) -> bool:
        expiry, _ = self._expiry.get(key, (float("-inf"), 0.0))
        return expiry > self._clock()

    def put(self, key: str, ttl_s: float) -> None:
        known = self._expiry[key][1] if self.alive(key) else 0.0
        lifetime = max(ttl_s, known)
        self._expiry[key] = (self._clock() + lifetime, lifetime)


@dataclass(frozen=True, slots=True)
class Reading:
    """What one request costs, and what it will write or renew in the cache once its response starts."""

    usage: Raw
    writes: tuple[tuple[str, float], ...]
    total: int


@dataclass(frozen=True, slots=True)
class _Position:
    """One block with the hash and the size of everything up to and including it."""

    key: str
    size: int
    kind: str
    ttl: str | None


class AnthropicCache:
    """One workspace's cache. `tool_choice_invalidates` is off for those who trust the one measurement against it."""

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        minimum: int | None = None,
        tool_choice_invalidates: bool = True,
    ) -> None:
        self._entries = Entries(clock)
        self._minimum = minimum
        self._tool_choice_invalidates = tool_choice_invalidates

    def read(self, body: Raw, model: str | None = None) -> Reading:
        """The usage of this request against the cache as it is now."""
        name = model or str(body.get("model"))
        positions, total = self._positions(body, name)
        marks = [at for at, position in enumerate(positions) if position.ttl and position.size >= self._least(name)]
        hit = max((found for mark in marks if (found := self._hit(positions, mark)) is not None), default=None)
        reached = -1 if hit is None else hit
        read = 0 if hit is None else positions[hit].size
        usage = _usage(total, read, [positions[at] for at in marks if at > reached])
        touched = sorted({*marks, *([] if hit is None else [hit])})
        return Reading(usage, tuple(self._write(positions[at]) for at in touched), total)

    def commit(self, reading: Reading) -> None:
        # facts/llm.md 1, prompt caching: an entry is readable once the first response starts
        for key, ttl_s in reading.writes:
            self._entries.put(key, ttl_s)

    def _write(self, position: _Position) -> tuple[str, float]:
        """What is there already is renewed for its own lifetime, whatever lifetime the marker asks for."""
        if position.ttl is None or self._entries.alive(position.key):
            return position.key, RENEWAL_S
        return position.key, TTL_S[position.ttl]

    def _least(self, model: str) -> int:
        known = claude(model)
        return self._minimum if self._minimum is not None else (known.cache_minimum if known else 1024)

    def _hit(self, positions: list[_Position], mark: int) -> int | None:
        """The longest entry that a breakpoint at `mark` can find."""
        # facts/llm.md 1, prompt caching: a run of tool_use or of tool_result blocks counts as one position
        counted = 0
        for at in range(mark, -1, -1):
            same_run = at < mark and positions[at].kind in _RUNS and positions[at].kind == positions[at + 1].kind
            counted += not same_run
            if counted > LOOKBACK:
                return None
            if self._entries.alive(positions[at].key):
                return at
        return None

    def _positions(self, body: Raw, model: str) -> tuple[list[_Position], int]:
        known = claude(model)
        blocks = rendered(body, known)
        marks = breakpoints(body, blocks)
        mixed = self._tier_keys(body, known)
        key, size = digest(known.id if known else model), 0
        found: list[_Position] = []
        for tier in _TIERS:
            key = digest(key, tier, mixed.get(tier))
            for at, block in enumerate(blocks):
                if block.tier != tier or block.clears:
                    continue
                key = digest(key, block.seen())
                size += tokens(block.raw)
                found.append(_Position(key, size, block.kind, marks.get(at)))
        return found, sum(tokens(block.raw) for block in blocks)

    def _tier_keys(self, body: Raw, model: Claude | None) -> dict[str, Any]:
        """What is mixed into the hash where a tier begins, beyond the blocks themselves."""
        # facts/llm.md 1, prompt caching: speed spoils system and messages; tool_choice, images, thinking and effort
        # spoil the messages only
        images = any(block.kind in _IMAGES for block in sequence(body))
        messages = [_thinking(body, model), (body.get("output_config") or {}).get("effort"), images]
        if self._tool_choice_invalidates:
            messages.append(body.get("tool_choice") or {"type": "auto"})
        return {"system": body.get("speed") or "standard", "messages": messages}


def _thinking(body: Raw, model: Claude | None) -> list[object]:
    asked = body.get("thinking") or {}
    default = "adaptive" if model and model.thinks_unasked else "disabled"
    return [asked.get("type", default), asked.get("budget_tokens")]


def _usage(total: int, read: int, writes: list[_Position]) -> Raw:
    """The exclusive count: input_tokens is the remainder that was neither read nor written."""
    # facts/llm.md 1: input_tokens is the uncached rest; context size = input + creation + read
    hours = max((write.size for write in writes if write.ttl == "1h"), default=read)
    written = max((write.size for write in writes), default=read)
    return {
        "input_tokens": total - written,
        "cache_creation_input_tokens": written - read,
        "cache_read_input_tokens": read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": written - hours,
            "ephemeral_1h_input_tokens": hours - read,
        },
    }
