"""Find where a line of one commit is in another, and fingerprint diffs.

    moves = LineMoves(await forge.compare_commits(old, new))
    moves.locate("src/ledger.py", 27)  # LineLocation(LineFate.MOVED, "src/pages.py", 4)

A line that the diff leaves alone is shifted by what changes before it, and follows its file when that is renamed. A
removed line that appears among the added lines has moved there, if that is the only such place, or if the lines around
it match clearly best in both directions. Nothing is guessed: UNKNOWN is an answer.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from posixpath import splitext

from hummingbird.core.diffs import CommitComparison, DiffLine, FileDiff, parse_diff_lines
from hummingbird.core.findings import is_distinctive

# Locating a line in another commit.
MOVE_WALK_LINES = 40  # lines above and below that are compared in order
MOVE_AROUND_LINES = 12  # lines above and below that are compared in any order
MOVE_CANDIDATES = 64  # places with the same text; with more, the line's new place is unknown
MOVE_MARGIN = 2  # by which the best place has to beat the next

# Requests to GitLab.
REVIEW_COMPARISONS = 12  # commits at which findings were made; findings at older ones are recognised by their text
REVIEW_CHANGED_TOLD = 60  # files that changed since the last review; if there are more, the model is told none

# A diff this large may be incomplete.
PATCH_FILES = 1_000
PATCH_LINES = 50_000

# The note.
REVIEW_LINKS = 5  # linked threads per state

_FINGERPRINT_CHARS = 40


def diff_fingerprint(files: Sequence[FileDiff]) -> str:
    """Return a fingerprint of the diff, like `git patch-id`, but names and modes count too.

    It stays the same when the change is rebased and does not depend on the order of the files. It is empty if the diff
    is empty, or if GitLab hides or may have left out a part of it.
    """
    if not files or len(files) >= PATCH_FILES or any(file.hidden for file in files):
        return ""
    if sum(file.text.count("\n") for file in files) >= PATCH_LINES:
        return ""
    return sha256("\0".join(sorted(map(_file_fingerprint, files))).encode()).hexdigest()[:_FINGERPRINT_CHARS]


def _file_fingerprint(file: FileDiff) -> str:
    """Return the fingerprint of one file's diff; line ends count, because a change can be about them."""
    said = "\n".join("@@" if line.startswith("@@") else line for line in file.text.split("\n"))
    parts = (file.old_path, file.new_path, file.modes, "born" if file.is_new else "", said)
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


_HUNK_HEAD = re.compile(r"^@@ -([0-9]{1,9})(?:,([0-9]{1,9}))? \+([0-9]{1,9})(?:,([0-9]{1,9}))? @@", re.MULTILINE)
_WORD_LIKE = re.compile(r"\w{3}")


class LineFate(StrEnum):
    """What became of a line."""

    SAME = "same"  # not changed, though its number may be another
    MOVED = "moved"  # removed in one place and added in another
    CHANGED = "changed"  # replaced by other lines
    GONE = "gone"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class LineLocation:
    """Where a line is; for CHANGED, where its replacement begins; path and line are empty otherwise."""

    fate: LineFate
    path: str = ""
    line: int = 0


class LineMoves:
    """The moves of lines from the first commit of a comparison to the second."""

    def __init__(self, comparison: CommitComparison) -> None:
        self._comparison = comparison
        self._files = {file.old_path: _ComparedFile(file) for file in comparison.files if not file.is_new}
        every = [*self._files.values(), *(_ComparedFile(file) for file in comparison.files if file.is_new)]
        self._removed = _index_by_text(file.old for file in every)
        self._added = _index_by_text(file.new for file in every)

    def locate(self, path: str, line: int) -> LineLocation:
        """Return where a line of the first commit is in the second.

        The diff is untrusted text: what does not fit leads to UNKNOWN at worst.
        """
        file = self._files.get(path)
        if file is None:
            return (
                LineLocation(LineFate.SAME, path, line)
                if self._comparison.is_complete
                else LineLocation(LineFate.UNKNOWN)
            )
        if file.diff.hidden:
            return LineLocation(LineFate.UNKNOWN)
        at = file.old.index.get(line)
        if at is None:
            return _same_location(file, _shift_line(file.diff.text, line))
        if there := file.old.rows[at].new:
            return _same_location(file, there)
        return self._locate_removed(file, at)

    def _locate_removed(self, file: "_ComparedFile", at: int) -> LineLocation:
        text = file.old.texts[at]
        here = _LineRef(file.old, at)
        places, others = self._added[text], [one for one in self._removed[text] if one != here]
        if max(len(places), len(others)) > MOVE_CANDIDATES:
            return LineLocation(LineFate.UNKNOWN)
        found = sorted(((_context_score(here, place), place) for place in places), key=lambda one: -one[0])
        if not found or not (found[0][0] or _WORD_LIKE.search(text)):  # lines without a word are in every file
            return self._locate_missing(file, at)
        (best, place), *rest = found
        rivals = [*(score for score, _ in rest), *(_context_score(other, place) for other in others)]
        if any(best - rival < MOVE_MARGIN for rival in rivals) or not (best or is_distinctive(text)):
            return LineLocation(LineFate.UNKNOWN)
        if not best and file.replacement_line(at):  # replaced where it was, and the same text added elsewhere
            return LineLocation(LineFate.UNKNOWN)
        return LineLocation(LineFate.MOVED, place.side.path, place.side.rows[place.at].new)

    def _locate_missing(self, file: "_ComparedFile", at: int) -> LineLocation:
        """Return CHANGED or GONE, or UNKNOWN if the line may be in a hidden file of the same kind."""
        kind = splitext(file.diff.old_path)[1]
        unseen = any(each.hidden and splitext(each.new_path)[1] == kind for each in self._comparison.files)
        if unseen or not self._comparison.is_complete:
            return LineLocation(LineFate.UNKNOWN)
        instead = file.replacement_line(at)
        return LineLocation(LineFate.CHANGED, file.diff.new_path, instead) if instead else LineLocation(LineFate.GONE)


class _ComparedSide:
    """The lines of one side of a file's diff, in order; `texts` ignore indentation."""

    def __init__(self, path: str, rows: Sequence[DiffLine], *, old: bool) -> None:
        self.path = path
        self.rows = [row for row in rows if (row.old if old else row.new)]
        self.numbers = [row.old if old else row.new for row in self.rows]
        self.texts = [" ".join(row.text.split()) for row in self.rows]
        self.index = {number: at for at, number in reversed([*enumerate(self.numbers)])}

    def find_unpaired(self) -> Iterable[int]:
        """Return the indexes of lines that the other side does not have."""
        return (at for at, row in enumerate(self.rows) if not (row.old and row.new))

    def text_at(self, at: int, step: int) -> str | None:
        """Return the text `step` lines further on; None if the diff does not show that line."""
        to = self.index.get(self.numbers[at] + step)
        return None if to is None else self.texts[to]


class _ComparedFile:
    def __init__(self, diff: FileDiff) -> None:
        self.diff = diff
        self.rows = [*parse_diff_lines(diff.text)]
        self.old = _ComparedSide(diff.old_path, self.rows, old=True)
        self.new = _ComparedSide(diff.new_path, self.rows, old=False)

    def replacement_line(self, at: int) -> int:
        """Return the first added line right after the removed ones; 0 if there is none."""
        behind = self.rows[self.rows.index(self.old.rows[at]) :]
        following = next((row for row in behind if row.new), None)
        return following.new if following is not None and not following.old else 0


@dataclass(frozen=True, slots=True)
class _LineRef:
    side: _ComparedSide
    at: int


def _same_location(file: _ComparedFile, line: int) -> LineLocation:
    return LineLocation(LineFate.SAME, file.diff.new_path, line) if line > 0 else LineLocation(LineFate.UNKNOWN)


def _shift_line(text: str, line: int) -> int:
    """Return the new number of a line outside all hunks: the last hunk before it gives the offset."""
    by = 0
    for head in _HUNK_HEAD.finditer(text):
        old, old_lines, new, new_lines = (1 if part is None else int(part) for part in head.groups())
        behind_old, behind_new = (
            old + (old_lines or 1),
            new + (new_lines or 1),
        )  # an empty side names the line before it
        if behind_old > line:
            break
        by = behind_new - behind_old
    return line + by


def _index_by_text(sides: Iterable[_ComparedSide]) -> defaultdict[str, list[_LineRef]]:
    found = defaultdict[str, list[_LineRef]](list)
    for side in sides:
        for at in side.find_unpaired():
            found[side.texts[at]].append(_LineRef(side, at))
    return found


def _context_score(old: _LineRef, new: _LineRef) -> int:
    """Score how similar the surroundings are: line by line until one differs, and nearby lines in any order."""
    walked = sum(_direction_score(old, new, way) for way in (-1, 1))
    return walked + sum((_nearby_texts(old) & _nearby_texts(new)).values())


def _direction_score(old: _LineRef, new: _LineRef, way: int) -> int:
    weight = 0
    for step in range(1, MOVE_WALK_LINES + 1):
        one, other = old.side.text_at(old.at, way * step), new.side.text_at(new.at, way * step)
        if one is None or one != other:
            break
        weight += 2 if _WORD_LIKE.search(one) else bool(one)
    return weight


def _nearby_texts(place: _LineRef) -> Counter[str]:
    steps = (step for step in range(-MOVE_AROUND_LINES, MOVE_AROUND_LINES + 1) if step)
    texts = (place.side.text_at(place.at, step) for step in steps)
    return Counter(text for text in texts if text and _WORD_LIKE.search(text))
