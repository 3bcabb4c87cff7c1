"""The lines under a closer look, with everything about each that its score is made of.

A row knows its own sorts, those of its neighbours by distance, and where it stands: how far before the end of a step
that failed, how often the log says the same. Nothing here has a weight.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, zip_longest

from ahocorasick_rs import BytesAhoCorasick

from hummingbird.evidence.logs.bits import bit
from hummingbird.evidence.logs.cleaning import cleaned
from hummingbird.evidence.logs.cues import Sort
from hummingbird.evidence.logs.glance import worth_a_look
from hummingbird.evidence.logs.marking import marks
from hummingbird.evidence.logs.reader import Kept

# name → how many lines away, first and last; before is negative
WINDOWS = (
    ("1 before", -1, -1), ("1 after", 1, 1), ("4 before", -4, -2), ("4 after", 2, 4), ("10 before", -10, -5),
    ("10 after", 5, 10), ("25 before", -25, -11), ("25 after", 11, 25),
)  # fmt: skip
FARTHEST = 25
FROM_END = (1, 3, 6, 12, 25, 50, 100, 200, 400, 1000)
SAME = (2, 3, 6, 15, 60)
LENGTH = (1, 12, 40, 120, 250)
PREFIX = (2, 5, 15, 60)
CORE = bit(Sort.HEAD, Sort.COMPILER, Sort.LINT, Sort.SETTING, Sort.THROWN)
NEAR_END = 60
NAMING = 30  # lines before an end, whose names are looked for elsewhere
SHAPE_BYTES = 120
_NAMES = re.compile(r"[A-Za-z_][\w.:/\\-]{7,120}")
_NAMES_MOST = 150
NAMED_CHARS = 200
NAMED_LINES = 8


@dataclass(frozen=True, slots=True)
class Rows:
    numbers: list[int]
    texts: list[str]
    marks: list[int]
    around: list[list[int]]  # by window, then by row: columns are what scores are made of
    places: list[list[int]]  # by scale, then by row: the bucket
    flags: list[int]
    weight: list[float]  # per sort: less the more lines are of it
    steps: list[int]  # which end the row stands before


SCALES = (("end", FROM_END), ("eof", FROM_END), ("same", SAME), ("length", LENGTH), ("prefix", PREFIX))
FLAGS = ("first end", "after ends", "in step", "two cores", "named", "named twice", "named near end", "near end")


def rows_of(kept: Kept) -> Rows:
    numbers = worth_a_look(kept)
    raws = [kept.lines[number] for number in numbers]
    texts = [cleaned(raw) for raw in raws]
    found = marks(texts, raws)
    where = _Where.of(kept, numbers)
    return Rows(
        numbers,
        texts,
        found,
        _around(numbers, found),
        _places(kept, where, texts, raws),
        _flags(where, texts, found),
        rarity(found),
        where.steps,
    )


@dataclass(frozen=True, slots=True)
class _Where:
    """For each row: which end of a failed step comes next, how far away it is, and whether its step had begun."""

    numbers: list[int]
    steps: list[int]
    distance: list[int]
    begun: list[bool]
    ends: int

    @classmethod
    def of(cls, kept: Kept, numbers: list[int]) -> "_Where":
        ends = kept.steps.ends(kept.total)
        begins = kept.steps.begins(ends)
        steps = [bisect_left(ends, number) for number in numbers]
        placed = list(zip(steps, numbers, strict=True))
        distance = [ends[step] - number if step < len(ends) else FROM_END[-1] for step, number in placed]
        begun = [step < len(ends) and number > begins[step] for step, number in placed]
        return cls(numbers, steps, distance, begun, len(ends))


def rarity(found: Sequence[int]) -> list[float]:
    counts = [0] * len(Sort)
    for mark, times in Counter(found).items():
        bits = mark
        while bits:
            last = bits & -bits
            counts[last.bit_length() - 1] += times
            bits ^= last
    return [(1 + count / 3) ** -0.5 for count in counts]


def _around(numbers: Sequence[int], found: Sequence[int]) -> list[list[int]]:
    """Gaps count as lines of no sort, so that neighbours are neighbours in the log too."""
    spread: list[int] = []
    at: list[int] = []
    last = -FARTHEST
    for number, mark in zip(numbers, found, strict=True):
        spread.extend([0] * min(number - last - 1, FARTHEST))
        at.append(len(spread))
        spread.append(mark)
        last = number
    spread.extend([0] * (FARTHEST + 1))
    unions = {width: _union(spread, width) for width in {stop - start + 1 for _, start, stop in WINDOWS}}
    seen = [(unions[stop - start + 1], start) for _, start, stop in WINDOWS]
    return [[union[place + start] for place in at] for union, start in seen]


def _union(marks_: list[int], width: int) -> list[int]:
    """For each place the bits of as many lines from there on."""
    size, union = 1, marks_
    while size < width:
        step = min(size, width - size)
        union = [one | other for one, other in zip_longest(union, union[step:], fillvalue=0)]
        size += step
    return union


def _places(kept: Kept, where: _Where, texts: Sequence[str], raws: Sequence[bytes]) -> list[list[int]]:
    shapes = [raw[:SHAPE_BYTES].translate(None, b"0123456789") for raw in raws]
    firsts = [text.lstrip()[:30].partition(" ")[0] for text in texts]
    alike, leading, same = Counter(shapes), Counter(firsts), kept.same
    measured = (
        where.distance,
        [kept.total - number + 1 for number in where.numbers],
        [max(same.get(number, 0), alike[shape]) for number, shape in zip(where.numbers, shapes, strict=True)],
        map(len, texts),
        [leading[first] for first in firsts],
    )
    return [
        [bisect_right(edges, value) for value in values] for (_, edges), values in zip(SCALES, measured, strict=True)
    ]


def _flags(where: _Where, texts: Sequence[str], found: Sequence[int]) -> list[int]:
    near = [0 <= away <= NEAR_END for away in where.distance]
    named = _named(texts, [0 <= away <= NAMING for away in where.distance])
    flags = []
    for mark, step, begun, close, names in zip(found, where.steps, where.begun, near, named, strict=True):
        core = mark & CORE
        flags.append(
            (step == 0)
            | (step >= where.ends) << 1
            | begun << 2
            | (core & (core - 1) > 0) << 3
            | (names > 0 and not close) << 4
            | (names > 1 and not close) << 5
            | (names > 0 and close) << 6
            | close << 7
        )
    return flags


def _named(texts: Sequence[str], near: Sequence[bool]) -> list[int]:
    """How many names each line shares with the last lines before the end: summaries name what failed."""
    last = [text[:NAMED_CHARS] for text, close in zip(texts, near, strict=True) if close]
    names = sorted({name for text in last for name in _NAMES.findall(text)})[:_NAMES_MOST]
    hits = [0] * len(texts)
    if not names:
        return hits
    beginnings = [text[:NAMED_CHARS].encode("utf-8", "replace") for text in texts]
    ends = list(accumulate(len(text) + 1 for text in beginnings))
    held: list[set[int]] = [set() for _ in names]  # by name
    at, end = 0, ends[0]
    for which, start, _ in BytesAhoCorasick([name.encode() for name in names]).find_matches_as_indexes(
        b"\n".join(beginnings)
    ):
        while start >= end:
            at += 1
            end = ends[at]
        held[which].add(at)
    for places in held:
        if 2 <= len(places) <= NAMED_LINES:
            for place in places:
                hits[place] += 1
    return hits
