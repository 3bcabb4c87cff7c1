"""Whether fingerprints are equal for the same failure and different for another: `… PATH [--quick]`.

Who is the same is decided without them: by the mutator, and for two real runs by equal texts once colours, numbers,
the home of the checkout and the order of lines are taken away.
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import combinations
from pathlib import Path

from benchmarks.evidence.arguments import chosen
from benchmarks.evidence.labels import FIXES, Label, fixes, labels, read
from benchmarks.evidence.mutator import rerun
from benchmarks.evidence.split import is_kept_apart, repository_key
from hummingbird.evidence.fingerprints import compute_fingerprint
from hummingbird.evidence.regions import EvidenceAnalysis

SEEDS = (1, 2, 3)
SHOWN = 12  # pairs to judge by eye
_HOMES = ("hummingbird.evidence",)
_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_CHECKOUT = re.compile(r"/(?:home|Users)/travis/build")
_NUMBERS = re.compile(r"0x[0-9a-f]+|\b(?=[a-f]*[0-9])[0-9a-f]{6,}\b|[0-9]+(?:[.,][0-9]+)*")


@dataclass
class Share:
    """How many of some pairs have equal fingerprints."""

    pairs: int = 0
    equal: int = 0
    found: list[str] = field(default_factory=list)

    def add(self, equal: bool, name: str = "") -> None:
        self.pairs += 1
        self.equal += equal
        if equal and name:
            self.found.append(name)

    def row(self, what: str, wanted: str) -> str:
        share = f"{self.equal / self.pairs:.2%}" if self.pairs else "—"
        return f"| {what} | {self.pairs:,} | {self.equal:,} | {share} | {wanted} |"


@dataclass(frozen=True)
class Chunk:
    """What a person marked in a log, its fingerprint, and the same without what anybody would leave out."""

    label: Label
    text: str
    plainly: frozenset[str]
    print_: str

    @property
    def name(self) -> str:
        return f"{self.label.repo} {self.label.path.name.partition('.')[0][-14:]}"


def report(logs: Path, *, quick: bool) -> None:
    chunks = [_chunk(label) for label in labels(logs)[:: 10 if quick else 1]]
    seeds = SEEDS[:1] if quick else SEEDS
    print("## Fingerprints: the same failure in two runs, and different failures\n")
    print("| pairs | number | equal | share | wanted |\n|---|--:|--:|--:|---|")
    _print_reruns(chunks, seeds)
    others = _print_real_pairs(chunks)
    _print_edges(chunks)
    _print_whole_logs(chunks)
    _print_best_regions(logs, chunks, 10 if quick else 1)
    print(f"\n{_microseconds(chunks):.1f} µs a line.\n")
    _print_doubtful(others)


def _chunk(label: Label) -> Chunk:
    text = "\n".join(label.blocks)
    return Chunk(label, text, _plainly(text), compute_fingerprint(text.split("\n")))


def _plainly(text: str) -> frozenset[str]:
    without = _NUMBERS.sub("#", _CHECKOUT.sub("~", _COLOURS.sub("", text)))
    return frozenset(" ".join(line.split()) for line in without.split("\n") if line.strip())


def _print_reruns(chunks: list[Chunk], seeds: tuple[int, ...]) -> None:
    every, changed = Share(), Share()
    for number, chunk in enumerate(chunks):
        for seed in seeds:
            again = rerun(chunk.text, 1000 * seed + number)
            equal = compute_fingerprint(again.split("\n")) == chunk.print_
            every.add(equal)
            if again != chunk.text:
                changed.add(equal)
    print(every.row("a chunk and its second run, simulated", "≥ 98 %"))
    print(changed.row("those of them where the second run differs", "≥ 98 %"))


def _print_real_pairs(chunks: list[Chunk]) -> Share:
    same, near, far = Share(), Share(), Share()
    for one, other in combinations(chunks, 2):
        equal = one.print_ == other.print_
        neighbours = one.label.repo == other.label.repo
        if one.plainly != other.plainly:
            (near if neighbours else far).add(equal, f"{one.name} = {other.name}" if neighbours else "")
        elif neighbours and one.text != other.text:
            same.add(equal)
    print(same.row("two real runs of a project, the same text but for numbers and order", "≥ 98 %"))
    print(near.row("different texts, same project", "≤ 1 %"))
    print(far.row("different texts, different projects", "≤ 1 %"))
    return near


def _print_edges(chunks: list[Chunk]) -> None:
    shares = {"one line more above": (1, 0), "one line more below": (0, 1), "two lines more below": (0, 2)}
    found = {what: Share() for what in shares}
    for around, first, last in filter(None, map(_place, chunks)):
        right = compute_fingerprint(around[first:last])
        for what, (above, below) in shares.items():
            found[what].add(compute_fingerprint(around[max(0, first - above) : last + below]) == right)
    for what, share in found.items():
        print(share.row(f"a chunk and itself with {what}", "—"))


def _place(chunk: Chunk) -> tuple[list[str], int, int] | None:
    """The lines of the log, and where in them the first block is."""
    lines = chunk.label.text().replace("\r", "").split("\n")
    block = chunk.label.blocks[0].replace("\r", "").split("\n")
    first, last, size = block[0].strip(), block[-1].strip(), len(block)
    for at in range(len(lines) - size, -1, -1):
        if first and first in lines[at] and last in lines[at + size - 1]:
            return lines, at, at + size
    return None


def _print_whole_logs(chunks: list[Chunk]) -> None:
    analyse = _analyse()
    if analyse is None:
        print("| whole logs, the best region of each | — | — | — | ≥ 98 % |")
        return
    share = Share()
    for number, chunk in enumerate(chunks):
        text = chunk.label.text()
        prints = [_best(analyse(one)) for one in (text, rerun(text, number))]
        share.add(prints[0] == prints[1] != "")
    print(share.row("whole logs and their second runs, simulated: the best region of each", "≥ 98 %"))


def _print_best_regions(logs: Path, chunks: list[Chunk], every: int) -> None:
    """Compare the best region of whole logs: other failures may stand in them, and the engine may show one of those."""
    engine = _analyse()
    if engine is None:
        return
    seen: list[tuple[str, object, str]] = [
        (repository_key(chunk.label.repo), chunk.plainly, _best(engine(chunk.label.text()))) for chunk in chunks
    ]
    _print_sides("the same chunk", "different chunks", seen)
    if (logs / FIXES).exists():
        known = fixes(logs)[::every]
        _print_sides(
            "jobs of one build",
            "different builds",
            [(repository_key(fix.repo), read(fix.patch), _best(engine(read(fix.red)))) for fix in known],
        )


def _print_sides(alike: str, unlike: str, seen: Sequence[tuple[str, object, str]]) -> None:
    """Print the shares of equal best regions, apart for repositories that are kept apart."""
    for apart, side in ((False, "may be looked at"), (True, "kept apart")):
        same, other = Share(), Share()
        inside = [one for one in seen if is_kept_apart(one[0]) is apart]
        for (repo, truth, found), (other_repo, other_truth, other_found) in combinations(inside, 2):
            if repo == other_repo:
                (same if truth == other_truth else other).add(found == other_found != "")
        print(same.row(f"best regions, {alike}, repositories {side}", "≥ 98 %"))
        print(other.row(f"best regions, {unlike}, repositories {side}", "≤ 1 %"))


def _best(found: EvidenceAnalysis) -> str:
    return found.regions[0].fingerprint if found.regions else ""


def _analyse() -> Callable[[str], EvidenceAnalysis] | None:
    for home in _HOMES:
        try:
            wanted: Callable[[str], EvidenceAnalysis] | None = getattr(import_module(home), "analyse", None)
        except ModuleNotFoundError as error:
            if error.name != home:
                raise
            continue
        if callable(wanted):
            return wanted
    return None


def _microseconds(chunks: list[Chunk]) -> float:
    """Best of five: other work on the machine only ever adds."""
    regions = [chunk.text.split("\n") for chunk in chunks]
    took = []
    for _ in range(5):
        before = time.process_time()
        for region in regions:
            compute_fingerprint(region)
        took.append(time.process_time() - before)
    return min(took) / sum(map(len, regions)) * 1e6


def _print_doubtful(others: Share) -> None:
    if others.found:
        print("Different texts of one project with equal fingerprints, to be judged by eye:\n")
        for name in _some(others.found):
            print(f"- {name}")
        print()


def _some(names: list[str]) -> Iterator[str]:
    yield from names[:SHOWN]
    if len(names) > SHOWN:
        yield f"… and {len(names) - SHOWN} more"


if __name__ == "__main__":
    path, in_a_hurry = chosen(__doc__)
    report(path, quick=in_a_hurry)
