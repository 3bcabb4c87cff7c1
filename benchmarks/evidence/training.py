"""Learns the weights of the log engine: `python -m benchmarks.evidence.training PATH [--write] [--cross-validate]`.

PATH is the folder ci-logs. Runs in an environment of its own, which `training-requirements.txt` beside this file
describes:

    python -m venv .venv-training
    .venv-training/bin/pip install -r benchmarks/evidence/training-requirements.txt
    PYTHONPATH=src .venv-training/bin/python -m benchmarks.evidence.training PATH

Learns from the repositories that are not kept apart (see `split`).

Without `--write` the shipped weights stay as they are. How the numbers are learned is `regression`'s affair.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.evidence import weights_module
from benchmarks.evidence.averages import Averages
from benchmarks.evidence.examples import Example, example
from benchmarks.evidence.labels import LOGS, labels
from benchmarks.evidence.left_out import by_unseen, judged
from benchmarks.evidence.quality import BUDGETS
from benchmarks.evidence.regression import Table, fitted
from benchmarks.evidence.split import split_by_repository
from hummingbird.evidence.logs.line_scores import ScoreWeights
from hummingbird.evidence.logs.weights import WEIGHTS

MEASURES = ("hit", "recall", "full")
Row = dict[int, Averages]


def main() -> None:
    chosen = _chosen()
    marked, _ = split_by_repository(labels(_holder(chosen.logs)), lambda label: label.repo)
    examples = [example(label) for label in marked]
    tables = [Table(one) for one in examples]
    weights = fitted(tables)
    print(f"{len(examples)} logs, {sum(map(len, (one.marked for one in examples))):,} rows; {_apart(weights)}\n")
    if chosen.cross_validate:
        _cross_validate(examples, tables, weights, chosen.folds, families=chosen.families)
    if chosen.write:
        weights_module.written(weights)
        print(f"Written: {weights_module.SHIPPED.name}")


def _chosen() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", type=Path, metavar="PATH", help=f"the folder {LOGS}, or the one that holds it")
    parser.add_argument("--write", action="store_true", help="replace the shipped weights by the ones learned")
    parser.add_argument("--cross-validate", action="store_true", help="judge each repository by weights without it")
    parser.add_argument("--families", action="store_true", help="judge each language by weights without it, too")
    parser.add_argument("--folds", type=int, metavar="N", help="leave out a share of the repositories, not each alone")
    return parser.parse_args()


def _holder(path: Path) -> Path:
    path = path.resolve()
    return path.parent if path.name == LOGS else path


def _apart(weights: ScoreWeights) -> str:
    """Whether `--write` would change anything."""
    if weights == WEIGHTS:
        return "what was learned is what ships."
    pairs = zip(_flat(weights), _flat(WEIGHTS), strict=True)
    return f"the learned weights differ from the shipped ones by at most {max(abs(a - b) for a, b in pairs):.2f}."


def _flat(weights: ScoreWeights) -> Iterator[float]:
    for values in (weights.plain, weights.rare, *weights.around, *weights.places, weights.flags, (weights.constant,)):
        yield from values


def _cross_validate(
    examples: Sequence[Example],
    tables: Sequence[Table],
    weights: ScoreWeights,
    folds: int | None,
    *,
    families: bool,
) -> None:
    def fit(places: Sequence[int]) -> ScoreWeights:
        return fitted([tables[at] for at in places])

    unseen = judged(by_unseen(examples, fit, folds), BUDGETS)
    left_out = f"{folds} folds of repositories" if folds else "one repository left out at a time"
    shipped = judged(((one, WEIGHTS) for one in examples), BUDGETS)
    learned = judged(((one, weights) for one in examples), BUDGETS)
    rows = {"shipped weights": shipped, "learned from all": learned, left_out: unseen}
    if families:
        rows["one language left out at a time"] = judged(by_unseen(examples, fit, None, _family), BUDGETS)
    _table(rows, (shipped, unseen))


def _family(one: Example) -> str:
    return one.label.families[-1]


def _table(rows: dict[str, Row], gap: tuple[Row, Row]) -> None:
    titles = [f"{measure} % in {budget:,}" for budget in BUDGETS for measure in MEASURES]
    print(f"| weights | {' | '.join(titles)} |")
    print(f"|---|{'--:|' * len(titles)}")
    for name, row in rows.items():
        print(f"| {name} | {' | '.join(f'{value:.1f}' for value in _values(row))} |")
    apart = [seen - unseen for seen, unseen in zip(*map(_values, gap), strict=True)]
    print(f"| gap to the shipped ones | {' | '.join(f'{value:+.1f}' for value in apart)} |\n")


def _values(row: Row) -> list[float]:
    return [getattr(row[budget], measure) for budget in BUDGETS for measure in MEASURES]


if __name__ == "__main__":
    main()
