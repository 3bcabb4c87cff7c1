"""Which lines of a diff can carry a comment (W2): the lines that the forge shows of each file, by their numbers.

A diff is somebody's text: what does not follow the rules of a unified diff is no line here, and nothing is raised.
Knows neither a forge nor what the comments say.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

_HUNK = re.compile(r"@@ -([0-9]{1,9})(?:,([0-9]{1,9}))? \+([0-9]{1,9})(?:,([0-9]{1,9}))? @@")
_ADDED, _REMOVED, _SAME = "+", "-", " "


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A line of a diff. An added line has `new_line` alone, a removed one `old_line`, an unchanged one both."""

    old_path: str
    new_path: str
    old_line: int = 0
    new_line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDiff:
    """`text` is a unified diff without its header; empty where the forge shows none. `hidden`: it may have changed in
    ways that the forge does not show, for it is too large, or no text. `born`: it was not there before. `modes`: both,
    where they differ."""

    old_path: str
    new_path: str
    text: str
    hidden: bool = False
    born: bool = False
    modes: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything between two commits. `whole`: no file is missing that differs."""

    files: Sequence[FileDiff] = ()
    whole: bool = True


@dataclass(frozen=True, slots=True)
class DiffLine:
    """`old` and `new` are its numbers, 0 on the side where it is not. `text` is the line without sign and line end."""

    old: int
    new: int
    text: str


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of one file: its lines by number, and the numbers in order."""

    file: FileDiff
    lines: Mapping[int, DiffLine]
    numbers: list[int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "numbers", sorted(self.lines))


class Diff:
    """The diff of a merge request, by path and line. New lines are found under a file's new path; old ones under
    either, for people name a renamed file by what it is called now."""

    def __init__(self, files: Iterable[FileDiff] = ()) -> None:
        self._new: dict[str, _Side] = {}
        self._old: dict[str, _Side] = {}
        renamed: dict[str, _Side] = {}
        for file in files:
            old, new = _sides(file)
            self._new.setdefault(file.new_path, _Side(file, new))
            self._old.setdefault(file.old_path, _Side(file, old))
            renamed.setdefault(file.new_path, _Side(file, old))
        self._old = renamed | self._old

    def __contains__(self, path: object) -> bool:
        return path in self._new or path in self._old

    def spot(self, path: str, line: int, *, old: bool = False) -> Spot | None:
        """None: nothing can be said there."""
        side = self._side(path, old=old)
        found = side.lines.get(line) if side else None
        if side is None or found is None:
            return None
        file = side.file
        return Spot(old_path=file.old_path, new_path=file.new_path, old_line=found.old, new_line=found.new)

    def text(self, path: str, line: int, *, old: bool = False) -> str:
        """What stands there; empty if nothing does."""
        side = self._side(path, old=old)
        found = side.lines.get(line) if side else None
        return found.text if found else ""

    def near(self, path: str, line: int, *, old: bool = False, most: int = 6) -> tuple[int, ...]:
        """Numbers of the lines nearest to that one, in order."""
        side = self._side(path, old=old)
        if side is None:
            return ()
        at = bisect_left(side.numbers, line)
        around = side.numbers[max(0, at - most) : at + most]
        return tuple(sorted(sorted(around, key=lambda number: abs(number - line))[:most]))

    def lines(self, *, old: bool = False) -> Iterator[tuple[str, int, str]]:
        """All of one side: under which path, at which number, what stands there."""
        for path, side in (self._old if old else self._new).items():
            for number in side.numbers:
                yield path, number, side.lines[number].text

    def _side(self, path: str, *, old: bool) -> _Side | None:
        return (self._old if old else self._new).get(path)


def lines_of(text: str) -> Iterator[DiffLine]:
    """The lines of all hunks, in order. A hunk has as many lines as its head says: what comes after them, and what
    stands before the first hunk, is none of them."""
    old = new = old_left = new_left = 0
    for line in text.removesuffix("\n").split("\n"):  # no other character ends a line of a diff
        if hunk := _HUNK.match(line):
            old, new = int(hunk[1]), int(hunk[3])
            old_left, new_left = int(hunk[2] or 1), int(hunk[4] or 1)
            continue
        sign, said = line[:1] or _SAME, line[1:].removesuffix("\r")  # mailers drop the sign of an empty line
        if sign == _ADDED and new_left:
            yield DiffLine(0, new, said)
        elif sign == _REMOVED and old_left:
            yield DiffLine(old, 0, said)
        elif sign == _SAME and old_left and new_left:
            yield DiffLine(old, new, said)
        else:
            continue
        if sign != _ADDED:
            old, old_left = old + 1, old_left - 1
        if sign != _REMOVED:
            new, new_left = new + 1, new_left - 1


def _sides(file: FileDiff) -> tuple[dict[int, DiffLine], dict[int, DiffLine]]:
    """By old and by new number. Of lines that claim the same number, the first counts."""
    old: dict[int, DiffLine] = {}
    new: dict[int, DiffLine] = {}
    for line in lines_of(file.text):
        if line.old:
            old.setdefault(line.old, line)
        if line.new:
            new.setdefault(line.new, line)
    return old, new
