"""Show the lines of a log that explain its failure, within a byte budget.

Regions grow from lead lines, best first. A line that repeats one already shown is worth less each time, so that another
failure is shown before the same one again. Only very long lines are cut, with a mark.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush, nlargest
from math import log1p

from hummingbird.core.limits import BASELINE_LINES
from hummingbird.evidence.logs.line_cues import LineSort, sort_bits
from hummingbird.evidence.logs.line_scores import (
    ERROR_SIGNS,
    LineFeatures,
    LineStanding,
    ScoreWeights,
    build_features,
    compute_standing,
    is_frame,
    score_rows,
)
from hummingbird.evidence.logs.log_reader import CandidateLines, LogReader, LogSteps, clean_log_line
from hummingbird.evidence.logs.weights import WEIGHTS

_NEW_BONUS, _KNOWN_PENALTY = 1.0, 5.0
_NO_WORDS = {code: None for code in range(128) if not chr(code).isalpha()}
_CHARS = 400


class Baseline:
    """The last green log of the same job: lines that it also has are no news in the red one.

    Feed it the whole green log. Keeps one hash per line, without digits and punctuation, in bounded memory.
    """

    def __init__(self) -> None:
        self._known: set[int] = set()
        self._rest = b""

    @classmethod
    def from_text(cls, text: str) -> "Baseline":
        baseline = cls()
        baseline.feed(text.encode("utf-8", "replace") + b"\n")
        return baseline

    def feed(self, chunk: bytes) -> None:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        self._rest = self._rest[: 4 * _CHARS]
        for line in lines:
            if len(self._known) < BASELINE_LINES:
                self._known.add(hash(_line_words(clean_log_line(line[: 4 * _CHARS]))))

    def contains(self, text: str) -> bool:
        """Tell whether the green log has this cleaned line of the red one; never so for a line without letters."""
        return bool(words := _line_words(text)) and hash(words) in self._known

    def adjust_scores(self, texts: Sequence[str], values: Sequence[float]) -> list[float]:
        """Lower the scores of known lines and raise those of new ones."""
        return [
            value - _KNOWN_PENALTY if hash(_line_words(text)) in self._known else value + _NEW_BONUS
            for text, value in zip(texts, values, strict=True)
        ]


def _line_words(text: str) -> str:
    return text[:_CHARS].translate(_NO_WORDS)


TROUBLE_MARKS = ERROR_SIGNS | sort_bits(
    LineSort.RED,
    LineSort.SUMMARY,
    LineSort.CASCADE,
    LineSort.TIMEOUT,
    LineSort.NETWORK,
    LineSort.MEMORY,
    LineSort.SPACE,
)


@dataclass(frozen=True, slots=True)
class ScoredLog:
    """The scored rows of a log, its steps, and its total of lines and bytes."""

    rows: LineFeatures
    standing: LineStanding
    steps: LogSteps
    total: int
    size: int

    @property
    def stands_out(self) -> bool:
        """Whether any line looks like trouble."""
        return any(mark & TROUBLE_MARKS for mark in self.rows.marks)


def score_log(kept: CandidateLines, baseline: Baseline | None = None, weights: ScoreWeights = WEIGHTS) -> ScoredLog:
    """Score the lines that a reader kept, relative to a green log if there is one."""
    rows = build_features(kept, None if baseline is None else baseline.contains)
    values = score_rows(rows, weights)
    if baseline is not None:
        values = [
            value if is_frame(mark, body) else adjusted
            for value, adjusted, mark, body in zip(
                values, baseline.adjust_scores(rows.texts, values), rows.marks, rows.bodies, strict=True
            )
        ]
    return ScoredLog(rows, compute_standing(rows, values), kept.steps, kept.total, kept.size)


MAX_LINE_CHARS = 240
_CUT_CHARS = 220
_REPEAT_PENALTY = 0.6  # what each repetition of the same words costs
_DELTA = 2.5  # how much less than its lead a line of a region may be worth
_SHARE = 0.34  # of the budget, for one region
_AHEAD = 3  # lines looked at before a region stops growing
_SPREAD_FROM = 2000  # bytes that regions have first; of the rest, a share is for leads alone
_SPREAD_SHARE, _SURE_SHARE = 0.5, 0.8  # the second one for leads that are printed only where something failed
_SPREAD_DROP = 2.5  # how much less than the best one such a lead may be worth
_APART = 3  # rows between them; nearer ones are found by the region that grows
_LEADS = 200  # lines that a region may grow from
_MIN_BYTES = 20  # no line fits into fewer bytes
_NO_LETTERS = re.compile(r"[^A-Za-z]+")
_BLANKS = re.compile(r"\s{2,}")


def shorten_line(text: str) -> str:
    """Cut a very long line, with a mark. Runs of blanks count as one character."""
    if len(text) <= MAX_LINE_CHARS:
        return text
    cut, read = 0, 0
    for blank in _BLANKS.finditer(text):
        if read + blank.start() - cut >= _CUT_CHARS:
            break
        read += blank.start() - cut + 1
        cut = blank.end()
    end = cut + max(0, _CUT_CHARS - read)
    return text if end >= len(text) else text[:end] + "…"


def repetition_key(text: str) -> str:
    """Return the first words of a line, without digits and punctuation, to recognise repetitions."""
    return " ".join(_NO_LETTERS.split(text[:80].strip().lower())[:5])


class LineChooser:
    """Chooses lines within a budget; `taken` holds the chosen rows and `room` the bytes left."""

    def __init__(
        self, rows: LineFeatures, standing: LineStanding, budget: int, *, share: float = _SHARE, apart: bool = False
    ) -> None:
        """With `apart`, regions do not reach over each other."""
        self.numbers = rows.numbers
        self.texts = rows.texts
        self.bodies = rows.bodies
        self.standing = standing
        self.room = budget
        self.apart = apart
        self.most = budget * share
        self.keys: dict[int, str] = {}  # by row: what its repetitions have in common
        self.times: dict[str, int] = {}
        self.seen: set[str] = set()
        self.taken: set[int] = set()
        self.skipped: list[int] = []  # folded frames of the regions, in the order of choice

    def choose(self, most_regions: int | None = None, *, spread: bool = False) -> list[list[int]]:
        """Return rows by region in the order of choice; the lead of each region comes first.

        With `spread`, leads that are about as good as the best one are taken before any region grows.
        """
        regions: list[list[int]] = []
        lead = self.standing.lead
        best = nlargest(_LEADS, range(len(lead)), key=lead.__getitem__)
        waiting = [(-lead[at], at, 0) for at in best if self.bodies[at]]
        heapify(waiting)
        if spread:
            regions = self._take_leads(waiting)
        while waiting and self.room > _MIN_BYTES and (most_regions is None or len(regions) < most_regions):
            worth, at, times = heappop(waiting)
            if at in self.taken or self.texts[at].strip() in self.seen:
                continue
            now = self.times.get(self._repetition_key(at), 0)
            if now != times:
                heappush(waiting, (-(lead[at] - _REPEAT_PENALTY * log1p(now)), at, now))
            elif (cost := self._take_line(at)) > 0:
                regions.append([at, *self._grow_region(at, -worth, self.most - cost)])
        return regions

    def _take_leads(self, waiting: list[tuple[float, int, int]]) -> list[list[int]]:
        """Take the best lines that are apart from each other, one line each, then let their regions grow."""
        lead = self.standing.lead
        rest = max(0, self.room - _SPREAD_FROM)
        floors = {False: self.room - rest * _SPREAD_SHARE, True: self.room - rest * _SURE_SHARE}
        least = -waiting[0][0] - _SPREAD_DROP if waiting else 0.0
        taken: list[tuple[int, float, int]] = []
        later = []
        while waiting and self.room > floors[True] and -waiting[0][0] >= least:
            worth, at, times = heappop(waiting)
            now = self.times.get(self._repetition_key(at), 0)
            if self.texts[at].strip() in self.seen:
                continue
            if now != times:
                heappush(waiting, (-(lead[at] - _REPEAT_PENALTY * log1p(now)), at, now))
            elif self.room <= floors[at in self.standing.sure] or any(abs(at - other) <= _APART for other, *_ in taken):
                later.append((worth, at, times))
            elif (cost := self._take_line(at)) > 0:
                taken.append((at, worth, cost))
        for one in later:
            heappush(waiting, one)
        return [[at, *self._grow_region(at, -worth, self.most - cost)] for at, worth, cost in taken]

    def take_skipped(self) -> None:
        """Fill the room that is left with the frames that were folded."""
        for at in self.skipped:
            if self._take_line(at) < 0:
                break

    def take_ends(self) -> None:
        """Take the first and the last line that are not blank, if they leave room for more."""
        said = [at for at, text in enumerate(self.texts) if text.strip()]
        for at in {said[0], said[-1]} if said else ():
            if len(shorten_line(self.texts[at])) * 4 < self.room:
                self._take_line(at)

    def _take_line(self, at: int) -> int:
        """Return the bytes used; 0 if the line is blank or already taken, -1 if there is no room."""
        text = self.texts[at].strip()
        if not text or not self.bodies[at].strip() or at in self.taken or text in self.seen:
            return 0
        cost = len(f"{self.numbers[at]}: {shorten_line(self.texts[at])}\n".encode("utf-8", "replace"))
        if cost > self.room:
            return -1
        self.room -= cost
        self.taken.add(at)
        self.seen.add(text)
        words = self._repetition_key(at)
        self.times[words] = self.times.get(words, 0) + 1
        return cost

    def _repetition_key(self, at: int) -> str:
        key = self.keys.get(at)
        if key is None:
            key = self.keys[at] = repetition_key(self.bodies[at])
        return key

    def _grow_region(self, lead: int, worth: float, most: float) -> list[int]:
        """Add lines above or below, whichever side is better, and return those added."""
        least = min(worth, self.standing.worth[lead]) - _DELTA
        grown: list[int] = []
        folded: list[int] = []
        reserved = 0  # about the bytes of the folded frames
        low = high = lead
        above, below = self._best_ahead(low, -1), self._best_ahead(high, 1)
        while most > 0 and max(above, below) >= least:
            at = high + 1 if below >= above else low - 1
            if at in self.standing.folded:
                folded.append(at)
                reserved += len(shorten_line(self.texts[at]))
                cost = 0
            elif reserved >= most and not self.standing.frames[at]:
                break  # what lies behind a folded trace is not worth more than its frames
            elif (cost := self._take_line(at)) < 0:
                break
            if at > high:
                high, below = at, self._best_ahead(at, 1)
            else:
                low, above = at, self._best_ahead(at, -1)
            if cost:
                grown.append(at)
                most -= cost
        for at in folded:
            if most > 0 and (cost := self._take_line(at)) > 0:
                grown.append(at)
                most -= cost
            else:
                self.skipped.append(at)
        return grown

    def _best_ahead(self, at: int, step: int) -> float:
        """Return the best worth of the next lines; two blank lines, or with `apart` another region, end the search."""
        numbers, texts, folded, worth = self.numbers, self.bodies, self.standing.folded, self.standing.worth
        best, lines, last = float("-inf"), 0, len(numbers) - 1
        while lines < _AHEAD:
            ahead = at + step
            if not 0 <= ahead <= last or numbers[ahead] - numbers[at] != step or (self.apart and ahead in self.taken):
                break
            at = ahead
            if at in folded:
                continue
            text = texts[at]
            if text and not text.isspace():
                lines += 1
                best = max(best, worth[at])
            elif lines == 0 and self._is_blank(at, at + step):
                break
        return best

    def _is_blank(self, at: int, ahead: int) -> bool:
        """Tell whether the line ahead follows in the log and is blank."""
        numbers = self.numbers
        return (
            0 <= ahead < len(numbers) and numbers[ahead] - numbers[at] == ahead - at and not self.bodies[ahead].strip()
        )


def format_lines(rows: Sequence[int], numbers: Sequence[int], texts: Sequence[str]) -> str:
    """Return the rows as numbered lines."""
    return "\n".join(f"{numbers[at]}: {shorten_line(texts[at])}" for at in rows)


def head_and_tail(rows: LineFeatures, total: int, budget_bytes: int) -> str:
    """Show the first and last lines of a log in which nothing stands out, and how many lines are left out.

    The beginning gets a third of the budget and the end the rest.
    """
    lines = [(number, f"{number}: {shorten_line(text)}") for number, text in zip(rows.numbers, rows.texts, strict=True)]
    sizes = [len(line.encode("utf-8", "replace")) + 1 for _, line in lines]
    if len(lines) == total and sum(sizes) - 1 <= budget_bytes:
        return "\n".join(line for _, line in lines)
    mark = f"[… {total} of {total} lines left out …]"
    room = budget_bytes - len(mark.encode()) - 1
    last, spent = len(lines), 0
    while last > 0 and spent + sizes[last - 1] <= room * 2 // 3:
        last -= 1
        spent += sizes[last]
    first = 0
    while first < last and lines[first][0] == first + 1 and spent + sizes[first] <= room:
        spent += sizes[first]
        first += 1
    left_out = total - first - (len(lines) - last)
    gap = [f"[… {left_out} of {total} lines left out …]"] if room >= 0 else []
    return "\n".join([*(line for _, line in lines[:first]), *gap, *(line for _, line in lines[last:])])


def preview(text: str, budget_bytes: int, *, baseline: str | None = None) -> str:
    """Return numbered lines in the order of the log, in at most `budget_bytes`; only very long lines are cut."""
    reading = LogPreview(None if baseline is None else Baseline.from_text(baseline))
    reading.feed(text.encode("utf-8", "replace"))
    return reading.text(budget_bytes)


class LogPreview:
    """Preview of a log that streams by: feed it everything, then call `text` with as many budgets as needed."""

    def __init__(self, baseline: Baseline | None = None) -> None:
        self._reader = LogReader()
        self._baseline = baseline
        self._looked: ScoredLog | None = None

    def feed(self, chunk: bytes) -> None:
        self._reader.feed(chunk)

    def score(self) -> ScoredLog:
        """Score the log, once; nothing may be fed afterwards."""
        if self._looked is None:
            self._looked = score_log(self._reader.finish(), self._baseline)
        return self._looked

    @property
    def stands_out(self) -> bool:
        return self.score().stands_out

    def text(self, budget_bytes: int, *, ends: bool = False) -> str:
        """Return the preview; with `ends`, it includes the first and the last line."""
        looked = self.score()
        if not looked.stands_out:
            return head_and_tail(looked.rows, looked.total, budget_bytes)
        chooser = LineChooser(looked.rows, looked.standing, budget_bytes + 1)  # no newline after the last line
        if ends:
            chooser.take_ends()
        chooser.choose(spread=True)
        chooser.take_skipped()
        return format_lines(sorted(chooser.taken), looked.rows.numbers, looked.rows.texts)
