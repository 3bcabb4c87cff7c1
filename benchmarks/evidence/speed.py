"""Megabytes a second on one core, and whether a longer log costs more per megabyte.

`python -m benchmarks.evidence.speed PATH [--quick]`. CPU time, since the machine may be shared; beside it what no
reader of a log can beat: counting its line ends, and copying and splitting it.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.evidence import engine, synthetic
from benchmarks.evidence.arguments import chosen
from benchmarks.evidence.labels import labels, packed

BUDGET = 4608
MB = 1_000_000
REPEATS, SIZES = 5, (1, 10, 100)
QUICK_LOGS, QUICK_SIZES = 10, (1, 2)


def cpu_s(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def _count(raw: Sequence[bytes]) -> None:
    for one in raw:
        one.count(b"\n")


def _split(raw: Sequence[bytes]) -> None:
    for one in raw:
        bytes(bytearray(one)).splitlines()  # a bytearray in between, since bytes(bytes) copies nothing


def _preview(ours: engine.Preview, texts: Sequence[str]) -> None:
    for text in texts:
        ours(text, BUDGET)


def rates(work: Callable[[], None], size: int, repeats: int) -> tuple[float, float]:
    """Best and median MB/s."""
    taken = [size / MB / max(cpu_s(work), 1e-9) for _ in range(repeats)]
    return max(taken), median(taken)


def report(logs: Path, *, quick: bool) -> None:
    raw = [packed(label.path) for label in labels(logs)[: QUICK_LOGS if quick else None]]
    size = sum(map(len, raw))
    repeats = 1 if quick else REPEATS
    print(f"## Evidence: speed on one core, {len(raw)} logs, {size / MB:.0f} MB, CPU time\n")
    print(f"| work | MB/s, best of {repeats} | median |\n|---|--:|--:|")
    for name, work in _works(raw).items():
        best, middle = rates(work, size, repeats)
        print(f"| {name} | {best:.0f} | {middle:.0f} |", flush=True)
    print()
    if ours := engine.preview():
        _slowest(ours, raw)
        _linear(ours, logs, QUICK_SIZES if quick else SIZES, repeats)
    else:
        print(f"{engine.ABSENT}\n")


def _works(raw: Sequence[bytes]) -> dict[str, Callable[[], None]]:
    works: dict[str, Callable[[], None]] = {
        r'`bytes.count(b"\n")`': lambda: _count(raw),
        "copy and `splitlines`": lambda: _split(raw),
    }
    if ours := engine.preview():
        texts = [one.decode("utf-8", "replace") for one in raw]
        works[f"{engine.NAME}, preview of {BUDGET:,} bytes"] = lambda: _preview(ours, texts)
    return works


def _slowest(ours: engine.Preview, raw: Sequence[bytes]) -> None:
    """The log that takes longest for its size shows what an average hides; tiny ones are all fixed cost."""
    large = [one for one in raw if len(one) > MB // 10] or list(raw)
    texts = [(one.decode("utf-8", "replace"), len(one)) for one in large]
    slow = min(rates(partial(_preview, ours, [text]), size, 3)[0] for text, size in texts)
    print(f"The slowest of the {len(large)} logs above 100 KB: {slow:.0f} MB/s.\n")


def _linear(ours: engine.Preview, logs: Path, sizes: Sequence[int], repeats: int) -> None:
    print("| real logs end to end, MB | CPU ms per MB | ÷ the shortest |\n|--:|--:|--:|")
    shortest = 0.0
    for size in sizes:
        text = synthetic.text(logs, size * MB)
        taken = min(cpu_s(partial(ours, text, BUDGET)) for _ in range(min(3, repeats))) * 1000 / size
        shortest = shortest or taken
        print(f"| {size} | {taken:.1f} | {taken / shortest:.2f}× |", flush=True)
    print()


if __name__ == "__main__":
    logs, quick = chosen(__doc__)
    report(logs, quick=quick)
