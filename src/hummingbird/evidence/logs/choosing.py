"""Which lines to show within a budget: regions grow from the lines that lead, best first (V4).

A line that says the same as one already shown is worth less each time, so that another failure is heard before the
same one again. Lines are taken whole or not at all; only very long ones lose their end, and say so.
"""

import re
from collections.abc import Sequence
from heapq import heapify, heappop, heappush, nlargest
from math import log1p

from hummingbird.evidence.logs.rows import Rows
from hummingbird.evidence.logs.standing import Standing

SHOWN_CHARS = 240
_CUT_CHARS = 220
_SAME = 0.6  # what each repetition of the same words costs
_DELTA = 2.5  # how much less than its lead a line of a region may be worth
_SHARE = 0.34  # of the budget, for one region
_AHEAD = 3  # lines looked at before a region stops growing
_LEADS = 200  # lines that a region may grow from
_LEAST = 20  # bytes that no line fits into
_NO_LETTERS = re.compile(r"[^A-Za-z]+")
_BLANKS = re.compile(r"\s{2,}")


def shown(text: str) -> str:
    """Blanks do not count: what matters is how much of it can be read."""
    if len(text) <= SHOWN_CHARS:
        return text
    cut, read = 0, 0
    for blank in _BLANKS.finditer(text):
        if read + blank.start() - cut >= _CUT_CHARS:
            break
        read += blank.start() - cut + 1
        cut = blank.end()
    end = cut + max(0, _CUT_CHARS - read)
    return text if end >= len(text) else text[:end] + "…"


def words_of(text: str) -> str:
    return " ".join(_NO_LETTERS.split(text[:80].strip().lower())[:5])


class Chooser:
    """One choice: what was taken, and what room is left."""

    def __init__(
        self, rows: Rows, standing: Standing, budget: int, *, share: float = _SHARE, apart: bool = False
    ) -> None:
        """`apart`: regions do not reach over each other."""
        self.numbers = rows.numbers
        self.texts = rows.texts
        self.standing = standing
        self.room = budget
        self.apart = apart
        self.most = budget * share
        self.times: dict[str, int] = {}
        self.seen: set[str] = set()
        self.taken: set[int] = set()

    def choose(self, most_regions: int | None = None) -> list[list[int]]:
        """Rows by region, in the order they were chosen; the lead of each comes first."""
        regions: list[list[int]] = []
        lead = self.standing.lead
        best = nlargest(_LEADS, range(len(lead)), key=lead.__getitem__)
        waiting = [(-lead[at], at, 0) for at in best if self.texts[at]]
        heapify(waiting)
        while waiting and self.room > _LEAST and (most_regions is None or len(regions) < most_regions):
            worth, at, times = heappop(waiting)
            if at in self.taken or self.texts[at].strip() in self.seen:
                continue
            now = self.times.get(words_of(self.texts[at]), 0)
            if now != times:
                heappush(waiting, (-(lead[at] - _SAME * log1p(now)), at, now))
            elif (cost := self._take(at)) > 0:
                regions.append([at, *self._grown(at, -worth - _DELTA, self.most - cost)])
        return regions

    def take_ends(self) -> None:
        """The first line and the last one that say anything, if they leave room for more."""
        said = [at for at, text in enumerate(self.texts) if text.strip()]
        for at in {said[0], said[-1]} if said else ():
            if len(shown(self.texts[at])) * 4 < self.room:
                self._take(at)

    def _take(self, at: int) -> int:
        """What it cost; 0 if it was there or is blank, -1 if there is no room."""
        text = self.texts[at].strip()
        if not text or at in self.taken or text in self.seen:
            return 0
        cost = len(f"{self.numbers[at]}: {shown(self.texts[at])}\n".encode("utf-8", "replace"))
        if cost > self.room:
            return -1
        self.room -= cost
        self.taken.add(at)
        self.seen.add(text)
        words = words_of(text)
        self.times[words] = self.times.get(words, 0) + 1
        return cost

    def _grown(self, lead: int, least: float, most: float) -> list[int]:
        """Line by line to the better side."""
        grown: list[int] = []
        low = high = lead
        above, below = self._ahead(low, -1), self._ahead(high, 1)
        while most > 0 and max(above, below) >= least:
            at = high + 1 if below >= above else low - 1
            if (cost := self._take(at)) < 0:
                break
            if at > high:
                high, below = at, self._ahead(at, 1)
            else:
                low, above = at, self._ahead(at, -1)
            if cost:
                grown.append(at)
                most -= cost
        return grown

    def _ahead(self, at: int, step: int) -> float:
        """The best of the next lines; two blank ones end a region, and another region where they are to stay apart."""
        best, lines = float("-inf"), 0
        while lines < _AHEAD and self._follows(at, step) and not (self.apart and at + step in self.taken):
            at += step
            if self.texts[at].strip():
                lines += 1
                best = max(best, self.standing.worth[at])
            elif lines == 0 and self._follows(at, step) and not self.texts[at + step].strip():
                break
        return best

    def _follows(self, at: int, step: int) -> bool:
        return 0 <= at + step < len(self.numbers) and self.numbers[at + step] - self.numbers[at] == step


def lines_of(rows: Sequence[int], numbers: Sequence[int], texts: Sequence[str]) -> str:
    return "\n".join(f"{numbers[at]}: {shown(texts[at])}" for at in rows)
