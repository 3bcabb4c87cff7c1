"""Find the lines of a diff that can carry a comment, by path and line number.

A diff is foreign text: lines that do not follow the rules of a unified diff are skipped, and nothing is raised.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

_HUNK = re.compile(r"@@ -([0-9]{1,9})(?:,([0-9]{1,9}))? \+([0-9]{1,9})(?:,([0-9]{1,9}))? @@")
_ADDED, _REMOVED, _SAME = "+", "-", " "


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffPosition:
    """A line of a diff.

    An added line has only `new_line`, a removed one only `old_line`, an unchanged one both.
    """

    old_path: str
    new_path: str
    old_line: int = 0
    new_line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDiff:
    """The changes of one file.

    `text` is a unified diff without its header, empty where GitLab shows none. `hidden`: the file may have changes that
    GitLab does not show, because it is too large or not text. `is_new`: the file did not exist before. `modes` holds
    both modes where they differ.
    """

    old_path: str
    new_path: str
    text: str
    hidden: bool = False
    is_new: bool = False
    modes: str = ""


@dataclass(frozen=True, slots=True)
class CommitComparison:
    """Everything that differs between two commits; `is_complete` says that no changed file is missing."""

    files: Sequence[FileDiff] = ()
    is_complete: bool = True


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a hunk.

    `old` and `new` are its line numbers, 0 on the side where it does not exist. `text` is the line without sign and
    line end.
    """

    old: int
    new: int
    text: str


@dataclass(frozen=True, slots=True)
class _DiffSide:
    """One side of one file: its lines by number, and the numbers in order."""

    file: FileDiff
    lines: Mapping[int, DiffLine]
    numbers: list[int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "numbers", sorted(self.lines))


class Diff:
    """The diff of a merge request, by path and line.

    New lines are found under a file's new path; old lines under either path, because people call a renamed file by its
    new name.
    """

    def __init__(self, files: Iterable[FileDiff] = ()) -> None:
        self._new: dict[str, _DiffSide] = {}
        self._old: dict[str, _DiffSide] = {}
        renamed: dict[str, _DiffSide] = {}
        for file in files:
            old, new = _index_lines(file)
            self._new.setdefault(file.new_path, _DiffSide(file, new))
            self._old.setdefault(file.old_path, _DiffSide(file, old))
            renamed.setdefault(file.new_path, _DiffSide(file, old))
        self._old = renamed | self._old

    def __contains__(self, path: object) -> bool:
        return path in self._new or path in self._old

    def find_position(self, path: str, line: int, *, old: bool = False) -> DiffPosition | None:
        """Return the position of a line, or None where GitLab takes no comment."""
        side = self._find_side(path, old=old)
        found = side.lines.get(line) if side else None
        if side is None or found is None:
            return None
        file = side.file
        return DiffPosition(old_path=file.old_path, new_path=file.new_path, old_line=found.old, new_line=found.new)

    def line_text(self, path: str, line: int, *, old: bool = False) -> str:
        """Return the text of a line, or an empty string if the diff does not show it."""
        side = self._find_side(path, old=old)
        found = side.lines.get(line) if side else None
        return found.text if found else ""

    def nearest_lines(self, path: str, line: int, *, old: bool = False, most: int = 6) -> tuple[int, ...]:
        """Return the numbers of the lines nearest to this one, in order."""
        side = self._find_side(path, old=old)
        if side is None:
            return ()
        at = bisect_left(side.numbers, line)
        around = side.numbers[max(0, at - most) : at + most]
        return tuple(sorted(sorted(around, key=lambda number: abs(number - line))[:most]))

    def iter_lines(self, *, old: bool = False) -> Iterator[tuple[str, int, str]]:
        """Yield path, number and text of all lines of one side."""
        for path, side in (self._old if old else self._new).items():
            for number in side.numbers:
                yield path, number, side.lines[number].text

    def _find_side(self, path: str, *, old: bool) -> _DiffSide | None:
        return (self._old if old else self._new).get(path)


def parse_diff_lines(text: str) -> Iterator[DiffLine]:
    """Yield the lines of all hunks, in order.

    A hunk has as many lines as its header says: anything after them, or before the first hunk, is skipped.
    """
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


def _index_lines(file: FileDiff) -> tuple[dict[int, DiffLine], dict[int, DiffLine]]:
    """Return the lines by old and by new number; of lines that claim the same number, the first counts."""
    old: dict[int, DiffLine] = {}
    new: dict[int, DiffLine] = {}
    for line in parse_diff_lines(file.text):
        if line.old:
            old.setdefault(line.old, line)
        if line.new:
            new.setdefault(line.new, line)
    return old, new
