"""What a green log of the same job is worth: `python -m benchmarks.evidence.pairs PATH [--quick]`.

Each red log has its error lines marked by number; a carriage return ends a line there too, else the numbers point
beside the errors. A few intervals hold a thousand lines of one repeated trace, so three shares are shown, each a mean
over pairs:

- distinct: of the marked lines that differ, with six letters or digits at least, those that can be read in the preview;
- marked: of all marked lines that are not blank, those whose text can be read, however often it was shown;
- once: the same, but a line that was shown stands for one marked line only. No budget holds a thousand lines, so its
  ceiling is far below one.

Rivals with the green log: a line diff; the way of CiDiff (labri-progress/cidiff, written down here in a few lines, not
its program), which takes lines as the same that differ in numbers alone and lets moved ones go; logdetective's
extractor in an environment of its own, on the red log and on what the green one leaves of it.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import astuple, dataclass
from difflib import SequenceMatcher
from pathlib import Path
from statistics import fmean

from benchmarks.evidence import detective, engine
from benchmarks.evidence.arguments import chosen
from benchmarks.evidence.labels import Pair, pairs, read
from benchmarks.evidence.scoring import ENOUGH, LONG, Page, found, lines_of, plain, unnumbered, within
from benchmarks.evidence.strategies import ceiling, half_and_half, head_and_tail, keyword, last_of, tail

BUDGET = 4608
LETTERS = 6
QUICK = 2
_VARYING = re.compile(r"\d+")

Contender = Callable[[str, str, int], str]  # the red log, the green one, the budget


@dataclass(frozen=True, slots=True)
class Shares:
    distinct: float
    marked: float
    once: float


def marked_lines(red: str, errors: Iterable[tuple[int, int]]) -> list[str]:
    """The marked lines in order, each number once though intervals may overlap, without blank ones."""
    lines = lines_of(red)
    numbers = sorted({number for first, last in errors for number in range(first, last + 1)})
    return list(filter(None, (plain(lines[number - 1]) for number in numbers)))


def telling(lines: Iterable[str]) -> list[str]:
    """Distinct lines that say something; all of them where none does."""
    distinct = dict.fromkeys(lines)
    return [line for line in distinct if sum(map(str.isalnum, line)) >= LETTERS] or list(distinct)


def shares(marked: Sequence[str], preview: str) -> Shares:
    page, wanted = Page(preview), telling(marked)
    once = Counter(marked) & Counter(plain(unnumbered(line)) for line in lines_of(preview))
    return Shares(found(wanted, page) / len(wanted), found(marked, page) / len(marked), once.total() / len(marked))


def absent(red: str, green: str, budget: int) -> str:
    """What a plain diff shows: lines the green log has not, in order, until the budget is full."""
    known = set(map(plain, lines_of(green)))
    return within("\n".join(line for line in map(plain, lines_of(red)) if line not in known), budget)


def differing(red: str, green: str, budget: int) -> str:
    """What a line diff adds, in order, the last ones: a failure ends a log."""
    return last_of(reversed(_added(list(map(plain, lines_of(red))), list(map(plain, lines_of(green))))), budget)


def differing_first(red: str, green: str, budget: int) -> str:
    """The same from its beginning."""
    return within("\n".join(_added(list(map(plain, lines_of(red))), list(map(plain, lines_of(green))))), budget)


def unmoved(red: str, green: str, budget: int) -> str:
    """CiDiff's way: lines alike but for numbers are one line, and what stands elsewhere in the green log was moved."""
    kept = dropped(red, green)
    return last_of(reversed(kept.split("\n")), budget)


def dropped(red: str, green: str) -> str:
    """The red log without lines that the green one has, be it with other numbers."""
    known = {_VARYING.sub("0", plain(line)) for line in lines_of(green)}
    return "\n".join(line for line in map(plain, lines_of(red)) if _VARYING.sub("0", line) not in known)


def _added(red: list[str], green: list[str]) -> list[str]:
    """As `diff` says it. Both ends that are alike are left out first, and lines of one log alone cannot match."""
    both = set(green).intersection(red)
    places = [number for number, line in enumerate(red) if line in both]
    matcher = SequenceMatcher(
        None, [red[at] for at in places], [line for line in green if line in both], autojunk=False
    )
    same = {places[at] for block in matcher.get_matching_blocks() for at in range(block.a, block.a + block.size)}
    return [line for number, line in enumerate(red) if number not in same]


def ranked(red: str, green: str, budget: int) -> str:
    """The same with numbers made alike and no line twice; lines that sound like failure first, later ones first."""
    known = {_VARYING.sub("0", plain(line)) for line in lines_of(green)}
    numbered = enumerate(map(plain, lines_of(red)))
    new = {line: number for number, line in numbered if line and _VARYING.sub("0", line) not in known}
    best = sorted(new, key=lambda line: (keyword(line), new[line]), reverse=True)
    kept = last_of(best, budget).split("\n")
    return "\n".join(sorted(kept, key=lambda line: new.get(line, -1)))


def contenders(stack: ExitStack | None = None) -> dict[str, Contender]:
    """Everybody who takes part; workers live as long as the stack, and without one they do not take part."""
    taking_part: dict[str, Contender] = {
        "first 8/9 + last 1/9 of the budget": lambda red, green, budget: head_and_tail(red, budget),
        "half head, half tail": lambda red, green, budget: half_and_half(red, budget),
        "end of the log, cleaned": lambda red, green, budget: tail(red, budget),
        "line diff with the green log, its first lines": differing_first,
        "line diff with the green log, its last lines": differing,
        "CiDiff's way: alike but for numbers, moved ones dropped, last lines": unmoved,
        "lines absent from the green log, in order": absent,
        "lines absent from the green log, ranked": ranked,
    }
    if stack is not None:
        taking_part.update(_detectives(stack))
    if ours := engine.preview():
        taking_part[f"{engine.NAME}, no green log"] = lambda red, green, budget: ours(red, budget)
        taking_part[f"{engine.NAME}, with the green log"] = lambda red, green, budget: ours(red, budget, baseline=green)
    return taking_part


def _detectives(stack: ExitStack) -> Iterator[tuple[str, Contender]]:
    if not (python := detective.interpreter()):
        return
    for variant in detective.VARIANTS:
        worker = stack.enter_context(detective.Detective(python, variant))
        yield f"logdetective {worker.version}, {variant}", _asking(worker)
        yield f"logdetective {worker.version}, {variant}, lines of the green log dropped", _asking_without(worker)


def _asking(worker: detective.Detective) -> Contender:
    return lambda red, green, budget: worker.ask(red, budget)[0]


def _asking_without(worker: detective.Detective) -> Contender:
    return lambda red, green, budget: worker.ask(dropped(red, green), budget)[0]


def most(marked: Sequence[str], budget: int) -> Shares:
    """About the most of each share: marked lines that cost least for what they count, as many as fit."""
    often = Counter(marked)
    short = {line: line[:ENOUGH] if len(line) > LONG else line for line in often}
    dearest_last = sorted(often, key=lambda line: len(short[line].encode()) / often[line])
    return Shares(
        shares(marked, ceiling(telling(marked), budget)).distinct,
        shares(marked, filled((short[line] for line in dearest_last), budget)).marked,
        shares(marked, filled(sorted(marked, key=len), budget)).once,
    )


def filled(lines: Iterable[str], budget: int) -> str:
    """Whole lines only, each that still fits."""
    kept: list[str] = []
    left = budget + 1
    for line in lines:
        size = len(line.encode("utf-8", "replace")) + 1
        if size <= left:
            kept.append(line)
            left -= size
    return "\n".join(kept)


def judge(given: Sequence[Pair]) -> dict[str, list[Shares]]:
    with ExitStack() as stack:
        taking_part = contenders(stack)
        judged: dict[str, list[Shares]] = {name: [] for name in [*taking_part, "the marked lines themselves (ceiling)"]}
        for pair in given:
            red, green = read(pair.red), read(pair.green)
            marked = marked_lines(red, pair.errors)
            shown = [shares(marked, within(show(red, green, BUDGET), BUDGET)) for show in taking_part.values()]
            for name, one in zip(judged, [*shown, most(marked, BUDGET)], strict=True):
                judged[name].append(one)
    return judged


def report(logs: Path, *, quick: bool) -> None:
    given = pairs(logs)[: QUICK if quick else None]
    print(f"## Evidence: share of marked error lines within {BUDGET:,} bytes, {len(given)} jobs red and green\n")
    print("| strategy | distinct | marked | once |\n|---|--:|--:|--:|")
    for name, judged in judge(given).items():
        means = map(fmean, zip(*map(astuple, judged), strict=True))
        print(f"| {name} | {' | '.join(f'{mean:.2f}' for mean in means)} |")
    print(f"\n{engine.ABSENT}" if engine.preview() is None else "")
    print("" if detective.interpreter() else f"{detective.ABSENT}\n")


if __name__ == "__main__":
    logs, quick = chosen(__doc__)
    report(logs, quick=quick)
