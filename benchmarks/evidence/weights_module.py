"""Weights as the text of the module that ships them. The same weights give the same text."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

from benchmarks.rivals.setup import ROOT
from hummingbird.evidence.logs.line_scores import SCALES, WINDOWS, ScoreWeights

SHIPPED = ROOT / "src" / "hummingbird" / "evidence" / "logs" / "weights.py"
WIDTH = 120
_ABOUT = '''"""Weights of the features of log lines, learned from labelled logs by `benchmarks/evidence/training.py`.

Do not edit by hand. The values are in the order of `LineSort`, `WINDOWS`, `SCALES` and `FLAGS`.
"""

from hummingbird.evidence.logs.line_scores import ScoreWeights

'''


def written(weights: ScoreWeights, path: Path = SHIPPED) -> None:
    path.write_text(text(weights), encoding="utf-8")


def text(weights: ScoreWeights) -> str:
    windows = zip(weights.around, (name for name, _, _ in WINDOWS), strict=True)
    scales = zip(weights.places, (name for name, _ in SCALES), strict=True)
    lines = [
        "WEIGHTS = ScoreWeights(",
        *_tuple("    plain=(", weights.plain),
        *_tuple("    rare=(", weights.rare),
        "    around=(",
        *(line for values, name in windows for line in _tuple(f"        (  # {name}", values)),
        "    ),",
        "    places=(",
        *(line for values, name in scales for line in _tuple(f"        (  # {name}", values)),
        "    ),",
        *_tuple("    flags=(", weights.flags),
        f"    constant={weights.constant:g},",
        ")  # fmt: skip",
    ]
    return _ABOUT + "\n".join(lines) + "\n"


def _tuple(opening: str, values: Sequence[float]) -> list[str]:
    indent = " " * (len(opening) - len(opening.lstrip()))
    listed = fill(
        " ".join(f"{value:g}," for value in values),
        width=WIDTH,
        initial_indent=f"{indent}    ",
        subsequent_indent=f"{indent}    ",
        break_on_hyphens=False,
    )
    return [opening, listed, f"{indent}),"]
