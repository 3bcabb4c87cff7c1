"""One closer look at what a reader kept: the rows, what they are worth and whether anything stands out at all."""

from dataclasses import dataclass

from hummingbird.evidence.logs.baseline import Baseline
from hummingbird.evidence.logs.bits import bit
from hummingbird.evidence.logs.cues import Sort
from hummingbird.evidence.logs.reader import Kept
from hummingbird.evidence.logs.rows import Rows, rows_of
from hummingbird.evidence.logs.scoring import Weights, scores
from hummingbird.evidence.logs.standing import SIGNS, Standing, standing
from hummingbird.evidence.logs.steps import Steps
from hummingbird.evidence.logs.weights import WEIGHTS

TROUBLE = SIGNS | bit(Sort.RED, Sort.SUMMARY, Sort.CASCADE, Sort.TIMEOUT, Sort.NETWORK, Sort.MEMORY, Sort.SPACE)


@dataclass(frozen=True, slots=True)
class Looked:
    rows: Rows
    standing: Standing
    steps: Steps
    total: int
    size: int

    @property
    def stands_out(self) -> bool:
        return any(mark & TROUBLE for mark in self.rows.marks)


def look(kept: Kept, baseline: Baseline | None = None, weights: Weights = WEIGHTS) -> Looked:
    rows = rows_of(kept)
    values = scores(rows, weights)
    if baseline is not None:
        values = baseline.weighed(rows.texts, values)
    return Looked(rows, standing(rows, values), kept.steps, kept.total, kept.size)
