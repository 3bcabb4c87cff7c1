"""Cases: a merge request of real lines, a finding on one of them, and what became of the branch.

The truth is the line's text, which stands once in the tree before and once or not at all in the one after; no mapper of
ours is asked. What cannot be created (a conflict, a text that is not alone) is another case with other dice.
"""

import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from benchmarks.positions.changing import KINDS, Branch, Conflict
from hummingbird.lab.gitlab.records import DiffFile
from hummingbird.lab.gitlab.repository import parse_diff

FILES = 4  # of one tree
TELLING_CHARS = 8


@dataclass(frozen=True, slots=True)
class Case:
    """`path` and `line` in the first head; `truth` the same in the second, None if it is gone. `between`: from head to
    head. `shown`: the merge request's diff in the end, on which positions have to be valid. `branch` is there until the
    next case is asked for."""

    kind: str
    path: str
    line: int
    truth: tuple[str, int] | None
    between: Sequence[DiffFile]
    shown: Sequence[DiffFile]
    branch: Branch
    heads: tuple[str, str]


def sources(folders: Sequence[Path]) -> list[Path]:
    """Texts of the usual size; without folders those of the running Python's library."""
    roots = folders or [Path(sysconfig.get_path("stdlib"))]
    found = [file for root in roots for file in sorted(root.rglob("*.py")) if "site-packages" not in file.parts]
    return [file for file in found if 2_000 <= file.stat().st_size <= 60_000]


def cases(number: int, files: Sequence[Path], seed: int = 1) -> Iterator[Case]:
    """As many of each kind, in turn."""
    dice, kinds = Random(seed), [*KINDS]
    for at in range(number):
        kind = kinds[at % len(kinds)]
        while True:
            with TemporaryDirectory() as folder:
                try:
                    case = _made(kind, Path(folder), files, dice)
                except (Conflict, UnicodeDecodeError):
                    continue
                yield case
            break


def _made(kind: str, folder: Path, files: Sequence[Path], dice: Random) -> Case:
    chosen = dice.sample(files, FILES + 1)
    texts = [file.read_bytes().decode().split("\n") for file in chosen]
    names = [f"{at}_{file.name}" for at, file in enumerate(chosen)]
    path, whole, donor = names[0], texts[0], texts[-1]
    first = dice.randrange(1, max(2, len(whole) - 40))
    last = min(len(whole), first + dice.randint(4, 40))
    at = dice.randrange(max(0, first - 2), min(len(whole), last + 2))
    text = " ".join(whole[at].split())
    if len(text) < TELLING_CHARS:
        raise Conflict("a line that says little")
    branch = Branch(folder, dice, path, text, donor)
    branch.git("init", "-q", "--template=", "-b", "main")
    for name, lines in zip(names[:-1], texts[:-1], strict=True):
        branch.write(name, lines)
    branch.write(path, whole[:first] + whole[last:])
    branch.commit()
    branch.git("checkout", "-q", "-b", "feature")
    branch.write(path, whole)
    branch.commit()
    branch.holder()
    before = branch.git("rev-parse", "HEAD").strip()
    KINDS[kind](branch)
    return _ended(kind, branch, at + 1, before)


def _ended(kind: str, branch: Branch, line: int, before: str) -> Case:
    after = branch.git("rev-parse", "HEAD").strip()
    base = branch.git("merge-base", "main", after).strip()
    found = [
        (path, number)
        for path in branch.paths()
        for number, text in enumerate(branch.lines(path), 1)
        if " ".join(text.split()) == branch.text
    ]
    if len(found) > 1:
        raise Conflict("the text stands more than once now")
    return Case(
        kind=kind,
        path=branch.path,
        line=line,
        truth=found[0] if found else None,
        between=parse_diff(branch.git("diff", "-M", before, after)),
        shown=parse_diff(branch.git("diff", "-M", base, after)),
        branch=branch,
        heads=(before, after),
    )
