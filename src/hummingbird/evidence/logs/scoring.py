"""What each row is worth: a sum of learned weights over what is known of it.

Linear on purpose: the same row always gets the same score for reasons that can be listed. Chooses nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hummingbird.evidence.logs.rows import Rows

_HALF = 17
_LOW = (1 << _HALF) - 1


@dataclass(frozen=True, slots=True)
class Weights:
    """One number per sort for the line itself (plain, and by rarity), per window and sort, per bucket and per flag."""

    plain: Sequence[float]
    rare: Sequence[float]
    around: Sequence[Sequence[float]]
    places: Sequence[Sequence[float]]
    flags: Sequence[float]
    constant: float


def scores(rows: Rows, weights: Weights) -> list[float]:
    if not rows.marks:
        return []
    own = [plain + rare * weight for plain, rare, weight in zip(weights.plain, weights.rare, rows.weight, strict=True)]
    values = _added([weights.constant] * len(rows.marks), own, rows.marks)
    values = _added(values, weights.flags, rows.flags)
    for window, bits in zip(weights.around, rows.around, strict=True):
        values = _added(values, [value * weight for value, weight in zip(window, rows.weight, strict=True)], bits)
    for scale, buckets in zip(weights.places, rows.places, strict=True):
        values = [value + scale[bucket] for value, bucket in zip(values, buckets, strict=True)]
    return values


def _added(values: Sequence[float], worth: Sequence[float], bits: Sequence[int]) -> list[float]:
    """To each value the worth of the bits that are set. Worked out once per half of the bits, because halves recur."""
    lows = {low: _sum(worth, low) for low in {each & _LOW for each in bits}}
    highs = {high: _sum(worth[_HALF:], high) for high in {each >> _HALF for each in bits}}
    return [value + lows[each & _LOW] + highs[each >> _HALF] for value, each in zip(values, bits, strict=True)]


def _sum(worth: Sequence[float], bits: int) -> float:
    total = 0.0
    while bits:
        last = bits & -bits
        total += worth[last.bit_length() - 1]
        bits ^= last
    return total
