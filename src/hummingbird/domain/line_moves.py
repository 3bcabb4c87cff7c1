"""Where a line of one commit stands in another (W2), by the diff between the two, as a forge shows it.

    moves = LineMoves(await forge.compare(old, new))
    moves.of("src/ledger.py", 27)      # Stands(Fate.MOVED, "src/pages.py", 4)

A line that the diff leaves alone is shifted by what changes before it, and goes along when its file is renamed. One
that is taken away and stands again among the added lines has moved there, if that place is the only one, or if what is
around it agrees clearly best, seen from both ends. Nothing is guessed: UNKNOWN is an answer. Knows neither forges nor
findings.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from posixpath import splitext

from hummingbird.domain.diffs import Comparison, DiffLine, FileDiff, lines_of
from hummingbird.domain.findings import telling
from hummingbird.domain.review_limits import MOVE_AROUND_LINES, MOVE_CANDIDATES, MOVE_MARGIN, MOVE_WALK_LINES

_HEAD = re.compile(r"^@@ -([0-9]{1,9})(?:,([0-9]{1,9}))? \+([0-9]{1,9})(?:,([0-9]{1,9}))? @@", re.MULTILINE)
_WORDY = re.compile(r"\w{3}")


class Fate(StrEnum):
    SAME = "same"  # left alone, wherever it is by now
    MOVED = "moved"  # taken away here and put there
    CHANGED = "changed"  # others stand in its place
    GONE = "gone"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Stands:
    """`path` and `line`: where it stands; of CHANGED, where what stands in its place begins; empty of all others."""

    fate: Fate
    path: str = ""
    line: int = 0


class LineMoves:
    """From the first commit of a comparison to the second."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison
        self._files = {file.old_path: _File(file) for file in comparison.files if not file.born}
        every = [*self._files.values(), *(_File(file) for file in comparison.files if file.born)]
        self._removed = _by_text(file.old for file in every)
        self._added = _by_text(file.new for file in every)

    def of(self, path: str, line: int) -> Stands:
        """Of a line that was there. A forge's diff is somebody's text: what does not fit leads to UNKNOWN at worst."""
        file = self._files.get(path)
        if file is None:
            return Stands(Fate.SAME, path, line) if self._comparison.whole else Stands(Fate.UNKNOWN)
        if file.diff.hidden:
            return Stands(Fate.UNKNOWN)
        at = file.old.index.get(line)
        if at is None:
            return _same(file, _shifted(file.diff.text, line))
        if there := file.old.rows[at].new:
            return _same(file, there)
        return self._taken_away(file, at)

    def _taken_away(self, file: "_File", at: int) -> Stands:
        text = file.old.texts[at]
        here = _Place(file.old, at)
        places, others = self._added[text], [one for one in self._removed[text] if one != here]
        if max(len(places), len(others)) > MOVE_CANDIDATES:
            return Stands(Fate.UNKNOWN)
        found = sorted(((_agreement(here, place), place) for place in places), key=lambda one: -one[0])
        if not found or not (found[0][0] or _WORDY.search(text)):  # any file has lines without a word
            return self._not_found(file, at)
        (best, place), *rest = found
        rivals = [*(score for score, _ in rest), *(_agreement(other, place) for other in others)]
        if any(best - rival < MOVE_MARGIN for rival in rivals) or not (best or telling(text)):
            return Stands(Fate.UNKNOWN)
        if not best and file.instead(at):  # replaced where it stood, and its like added elsewhere
            return Stands(Fate.UNKNOWN)
        return Stands(Fate.MOVED, place.side.path, place.side.rows[place.at].new)

    def _not_found(self, file: "_File", at: int) -> Stands:
        """Unless it may stand in what is not shown: a file of the same kind."""
        kind = splitext(file.diff.old_path)[1]
        unseen = any(each.hidden and splitext(each.new_path)[1] == kind for each in self._comparison.files)
        if unseen or not self._comparison.whole:
            return Stands(Fate.UNKNOWN)
        instead = file.instead(at)
        return Stands(Fate.CHANGED, file.diff.new_path, instead) if instead else Stands(Fate.GONE)


class _Side:
    """The lines that one side of a file's diff has, in order; `texts` without what differs when code is indented."""

    def __init__(self, path: str, rows: Sequence[DiffLine], *, old: bool) -> None:
        self.path = path
        self.rows = [row for row in rows if (row.old if old else row.new)]
        self.numbers = [row.old if old else row.new for row in self.rows]
        self.texts = [" ".join(row.text.split()) for row in self.rows]
        self.index = {number: at for at, number in reversed([*enumerate(self.numbers)])}

    def alone(self) -> Iterable[int]:
        """Where the other side has nothing."""
        return (at for at, row in enumerate(self.rows) if not (row.old and row.new))

    def text(self, at: int, step: int) -> str | None:
        """`step` lines further on; None if the diff does not show that one."""
        to = self.index.get(self.numbers[at] + step)
        return None if to is None else self.texts[to]


class _File:
    def __init__(self, diff: FileDiff) -> None:
        self.diff = diff
        self.rows = [*lines_of(diff.text)]
        self.old = _Side(diff.old_path, self.rows, old=True)
        self.new = _Side(diff.new_path, self.rows, old=False)

    def instead(self, at: int) -> int:
        """The first of the added lines right behind the removed ones; 0 if there are none."""
        behind = self.rows[self.rows.index(self.old.rows[at]) :]
        following = next((row for row in behind if row.new), None)
        return following.new if following is not None and not following.old else 0


@dataclass(frozen=True, slots=True)
class _Place:
    side: _Side
    at: int


def _same(file: _File, line: int) -> Stands:
    return Stands(Fate.SAME, file.diff.new_path, line) if line > 0 else Stands(Fate.UNKNOWN)


def _shifted(text: str, line: int) -> int:
    """A line that stands in no hunk: the last one before it says by how much."""
    by = 0
    for head in _HEAD.finditer(text):
        old, old_lines, new, new_lines = (1 if part is None else int(part) for part in head.groups())
        behind_old, behind_new = old + (old_lines or 1), new + (new_lines or 1)  # nothing stands behind its number
        if behind_old > line:
            break
        by = behind_new - behind_old
    return line + by


def _by_text(sides: Iterable[_Side]) -> defaultdict[str, list[_Place]]:
    found = defaultdict[str, list[_Place]](list)
    for side in sides:
        for at in side.alone():
            found[side.texts[at]].append(_Place(side, at))
    return found


def _agreement(old: _Place, new: _Place) -> int:
    """How much of what is around the one is around the other: line by line until one differs, and nearby in any
    order."""
    walked = sum(_walked(old, new, way) for way in (-1, 1))
    return walked + sum((_around(old) & _around(new)).values())


def _walked(old: _Place, new: _Place, way: int) -> int:
    weight = 0
    for step in range(1, MOVE_WALK_LINES + 1):
        one, other = old.side.text(old.at, way * step), new.side.text(new.at, way * step)
        if one is None or one != other:
            break
        weight += 2 if _WORDY.search(one) else bool(one)
    return weight


def _around(place: _Place) -> Counter[str]:
    steps = (step for step in range(-MOVE_AROUND_LINES, MOVE_AROUND_LINES + 1) if step)
    texts = (place.side.text(place.at, step) for step in steps)
    return Counter(text for text in texts if text and _WORDY.search(text))
