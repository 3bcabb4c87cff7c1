"""Learns weights from examples by logistic regression. The one place that knows numpy and scikit-learn.

Neither is a dependency of the project, so they are imported when they are needed and are untyped here.
"""

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from benchmarks.evidence.examples import Example, shares
from hummingbird.evidence.logs.line_cues import LineSort
from hummingbird.evidence.logs.line_scores import FLAGS, SCALES, WINDOWS, LineFeatures, ScoreWeights

STRENGTH = 0.15  # the inverse of how much large weights cost
MOST_ROUNDS = 3000
CLOSE = 1e-7  # so near the optimum that two decimals no longer depend on the solver's path
DECIMALS = 2
ABSENT = (
    "Training needs an environment of its own: `python -m venv .venv-training`, then `.venv-training/bin/pip install "
    "-r benchmarks/evidence/training-requirements.txt`, then run this with `PYTHONPATH=src .venv-training/bin/python`."
)


class Table:
    """An example as numbers: a line per row, a column per weight, in the order of `Weights`."""

    def __init__(self, example: Example) -> None:
        numpy = _part("numpy")
        self.columns = _columns(example.rows)
        self.marked = numpy.array(example.marked)
        self.shares = numpy.array(shares(example))


def fitted(tables: Sequence[Table]) -> ScoreWeights:
    """The same tables give the same weights: the solver starts at zero and draws nothing."""
    numpy, sparse = _part("numpy"), _part("scipy.sparse")
    model = _part("sklearn.linear_model").LogisticRegression(C=STRENGTH, tol=CLOSE, max_iter=MOST_ROUNDS)
    model.fit(
        sparse.vstack([table.columns for table in tables]),
        numpy.concatenate([table.marked for table in tables]),
        sample_weight=numpy.concatenate([table.shares for table in tables]),
    )
    return unpacked(model.coef_[0].tolist(), float(model.intercept_[0]))


def unpacked(values: Sequence[float], constant: float) -> ScoreWeights:
    """One long list in parts, rounded."""
    rest = iter([_rounded(value) for value in values])
    weights = ScoreWeights(
        plain=_next(rest, len(LineSort)),
        rare=_next(rest, len(LineSort)),
        around=tuple(_next(rest, len(LineSort)) for _ in WINDOWS),
        places=tuple(_next(rest, len(edges) + 1) for _, edges in SCALES),
        flags=_next(rest, len(FLAGS)),
        constant=_rounded(constant),
    )
    if left := len(list(rest)):
        raise ValueError(f"{left} values too many for the weights; make the columns follow `Weights`.")
    return weights


def _next(rest: Iterator[float], count: int) -> tuple[float, ...]:
    return tuple(next(rest) for _ in range(count))


def _rounded(value: float) -> float:
    return round(value, DECIMALS) + 0.0  # no minus zero


def _columns(rows: LineFeatures) -> Any:
    numpy = _part("numpy")
    rarity = numpy.array(rows.weight)
    own = _bits(rows.marks, len(LineSort))
    around = [_bits(window, len(LineSort)) * rarity for window in rows.around]
    scales = zip(SCALES, rows.places, strict=True)
    places = [_buckets(scale, len(edges) + 1) for (_, edges), scale in scales]
    parts = [own, own * rarity, *around, *places, _bits(rows.flags, len(FLAGS))]
    return _part("scipy.sparse").csr_matrix(numpy.hstack(parts))


def _bits(values: Sequence[int], count: int) -> Any:
    numpy = _part("numpy")
    return (numpy.array(values, dtype=numpy.int64)[:, None] >> numpy.arange(count) & 1).astype(float)


def _buckets(values: Sequence[int], count: int) -> Any:
    numpy = _part("numpy")
    return (numpy.array(values)[:, None] == numpy.arange(count)).astype(float)


def _part(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise SystemExit(ABSENT) from error
