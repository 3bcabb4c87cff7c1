"""A first glance at what a reader kept: which of its lines are worth a closer look, which costs a hundred times more.

Ranks places of trouble by a few words, by how often the log says the same and by how near a step failed after them.
The lines around the best ones, and the last lines of what failed, go on.
"""

import re
from bisect import bisect_left
from heapq import nlargest
from math import log, log10

from hummingbird.evidence.logs.reader import AFTER, BEFORE, STEP_TAIL, Kept

MOST_ROWS = 260
READ = 400
LAST_LINES, FIRST_LINES = 20, 3
_CALM = (b"warn", b"skip", b"pass", b" ok", b"deprecat", b"info", b"debug", b"xfail", b" 0 fail", b" 0 err", b"s: 0")
_LOUD = (b"<<< ", b"FAILED", b"--- FAIL", b"failed on line", b"panicked", b" error: ")
_BEGINNINGS = (b"FAIL", b"ERROR", b"FATAL", b"E  ")
_RED = re.compile(rb"\x1b\[(?:\d+;)*(?:31|91)")
_CODES = re.compile(rb"\x1b\[[\d;]*[mK]")


def worth_a_look(kept: Kept) -> list[int]:
    """Numbers of lines, ascending."""
    ends = kept.steps.ends(kept.total)
    looked = {*range(1, FIRST_LINES + 1), *range(kept.total - LAST_LINES, kept.total + 1)}
    for end in ends[:2]:
        looked.update(range(end - STEP_TAIL, end + 1))
    for place in _best_first(kept, ends):
        if len(looked) >= MOST_ROWS:
            break
        looked.update(range(place - BEFORE, place + AFTER + 1))
    return sorted(looked & kept.lines.keys())


def _best_first(kept: Kept, ends: list[int]) -> list[int]:
    """By what is known without reading them; then the best of them are read."""
    begins = kept.steps.begins(ends)
    ranked = []
    for number, times in kept.same.items():
        rank = 1.5 * (number in kept.strong) - log(times) / 2
        step = bisect_left(ends, number)
        if step < len(ends):
            rank += 1.5 * (number > begins[step]) + 0.5 * (step == 0) - log10(ends[step] - number + 10) / 2
        else:
            rank -= 2
        ranked.append((rank, number))
    best = nlargest(READ, ranked)
    return [number for _, number in sorted((-rank - _rank(kept.lines[number][:300]), number) for rank, number in best)]


def _rank(line: bytes) -> float:
    rank, lower = 0.0, line.lower()
    for word in _CALM:
        if word in lower:
            rank -= 1.5
            break
    if b"\x1b" in line:
        rank += 1.5 * (_RED.search(line) is not None)
        line = _CODES.sub(b"", line)
    if line.lstrip().startswith(_BEGINNINGS):
        return rank + 1.75
    for word in _LOUD:
        if word in line:
            return rank + 1.75
    return rank
