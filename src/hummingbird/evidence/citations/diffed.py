"""Unified diffs as places: which lines of which files they show, before and after the change. Knows nothing else."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_FILE = re.compile(r"(?:---|\+\+\+) (?:[ab]/)?(.+?)(?:\t.*)?")
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@.*")


@dataclass(frozen=True, slots=True)
class Shown:
    """A line of a file that a diff shows, without its sign. `numbers`: before and after the change, where it is."""

    text: str
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Lines of a file, both ends included."""

    path: str
    first: int
    last: int


def is_diff(text: str) -> bool:
    return text.startswith(("diff --git ", "@@ -", "--- ")) or ("\n@@ -" in text and "\n+++ " in text)


def shown(lines: Iterable[str]) -> Iterator[Shown]:
    old = new = 0
    for line in lines:
        if found := _HUNK.fullmatch(line):
            old, new = int(found[1]), int(found[3])
        elif line.startswith(("diff --git ", "+++ ", "--- ")):
            continue
        elif old or new:
            sign = line[:1]
            numbers = (old,) if sign == "-" else (new,) if sign == "+" else (old, new)
            yield Shown(line[1:], numbers)
            old, new = old + (sign != "+"), new + (sign != "-")


def stretches(lines: Iterable[str]) -> Iterator[Stretch]:
    """By what the heads of hunks announce."""
    paths = ["", ""]
    for line in lines:
        if line.startswith(("--- ", "+++ ")) and (named := _FILE.fullmatch(line)):
            paths[line.startswith("+++ ")] = named[1]
        elif found := _HUNK.fullmatch(line):
            for path, first, count in ((paths[0], found[1], found[2]), (paths[1], found[3], found[4])):
                if path and path != "/dev/null":
                    yield Stretch(path, int(first), int(first) + max(1, int(count or 1)) - 1)
