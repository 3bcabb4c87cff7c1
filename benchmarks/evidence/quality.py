"""How much of what a person marked each strategy shows: `python -m benchmarks.evidence.quality PATH [--quick]`."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.evidence import detective, engine
from benchmarks.evidence.arguments import chosen
from benchmarks.evidence.averages import Averages, Judged, averages, grouped
from benchmarks.evidence.labels import Label, labels
from benchmarks.evidence.scoring import score, within
from benchmarks.evidence.strategies import STRATEGIES, Strategy, ceiling

BUDGETS = (4608, 2048)
QUICK_EVERY = 20
CEILING = "the label's own lines (ceiling)"

Answer = tuple[str, float]  # the preview and the CPU seconds it took
Contender = Callable[[Label, str, int], Answer]


def timed(strategy: Strategy) -> Contender:
    def answer(label: Label, text: str, budget: int) -> Answer:
        began = time.process_time()
        shown = strategy(text, budget)
        return shown, time.process_time() - began

    return answer


def _ceiling(label: Label, text: str, budget: int) -> Answer:
    return ceiling(label.lines, budget), 0.0


def contenders(stack: ExitStack) -> dict[str, Contender]:
    """Everybody who takes part, in the order of the table; workers live as long as the stack."""
    taking_part = {name: timed(strategy) for name, strategy in STRATEGIES.items()}
    taking_part.update(_detectives(stack))
    if ours := engine.preview():
        taking_part[engine.NAME] = timed(ours)
    return {**taking_part, CEILING: _ceiling}


def _detectives(stack: ExitStack) -> Iterator[tuple[str, Contender]]:
    if not (python := detective.interpreter()):
        return
    for variant in detective.VARIANTS:
        worker = stack.enter_context(detective.Detective(python, variant))
        yield f"logdetective {worker.version}, {variant}", _asking(worker)


def _asking(worker: detective.Detective) -> Contender:
    return lambda label, text, budget: worker.ask(text, budget)


def judged(label: Label, text: str, size: int, contender: Contender, budget: int) -> Judged:
    shown, cpu_s = contender(label, text, budget)
    kept = within(shown, budget)
    return Judged(label.repo, label.source, score(label.lines, label.blocks, kept), cpu_s, size, kept != shown)


Found = dict[tuple[int, str], list[Judged]]


def judge(marked: Sequence[Label], budgets: Sequence[int]) -> Found:
    with ExitStack() as stack:
        taking_part = contenders(stack)
        found: Found = {(budget, name): [] for budget in budgets for name in taking_part}
        for label in marked:
            text = label.text()
            size = len(text.encode("utf-8", "replace"))
            for budget, name in found:
                found[budget, name].append(judged(label, text, size, taking_part[name], budget))
    return found


def report(logs: Path, *, quick: bool) -> None:
    marked = labels(logs)[:: QUICK_EVERY if quick else 1]
    found = judge(marked, BUDGETS)
    size = sum(one.size for one in next(iter(found.values())))
    repos = len({label.repo for label in marked})
    print(f"## Evidence: {len(marked)} failed logs of {repos} repositories ({size / 1e6:.0f} MB), labelled by hand\n")
    for budget in BUDGETS:
        print(f"### Within {budget:,} bytes\n")
        _table({name: of for (of_budget, name), of in found.items() if of_budget == budget})
    _by_source({name: of for (budget, name), of in found.items() if budget == BUDGETS[0]})
    for missing, why in ((engine.preview() is None, engine.ABSENT), (not detective.interpreter(), detective.ABSENT)):
        print(f"{why}\n" if missing else "", end="")


def _table(found: dict[str, list[Judged]]) -> None:
    print("| strategy | hit % | recall % | full % | in one piece % | recall % per repository | CPU ms/MB | MB/s |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for name, of in found.items():
        print(_row(name, averages(of)))
    print()
    for name, of in found.items():
        if over := averages(of).over:
            print(f"{name} gave more than the budget for {over} logs; what was over did not count.\n")


def _row(name: str, mean: Averages) -> str:
    piece = "-" if name == CEILING else f"{mean.verbatim:.1f}"  # its lines are sorted by length
    speed = f"{mean.ms_per_mb:.1f} | {mean.mb_per_s:.0f}" if mean.ms_per_mb else "- | -"
    return (
        f"| {name} | {mean.hit:.1f} | {mean.recall:.1f} | {mean.full:.1f} | {piece} "
        f"| {mean.macro:.1f} ± {mean.spread:.1f} | {speed} |"
    )


def _by_source(found: dict[str, list[Judged]]) -> None:
    print(f"### By source, within {BUDGETS[0]:,} bytes: hit / recall / full %\n")
    sources = list(grouped(next(iter(found.values())), lambda one: one.source))
    print(f"| strategy | {' | '.join(sources)} |\n|---|{'--:|' * len(sources)}")
    for name, of in found.items():
        means = [averages(group) for group in grouped(of, lambda one: one.source).values()]
        print(f"| {name} | {' | '.join(f'{m.hit:.1f} / {m.recall:.1f} / {m.full:.1f}' for m in means)} |")
    print()


if __name__ == "__main__":
    logs, quick = chosen(__doc__)
    report(logs, quick=quick)
