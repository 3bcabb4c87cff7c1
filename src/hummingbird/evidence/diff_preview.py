"""Preview a diff: the list of its files, then whole hunks, as many as fit.

The diff may be text, or one JSON record with `old_path`, `new_path` and `diff` on each line. It streams by; hunks that
could not be shown anyway are not held.
"""

import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

import msgspec

from hummingbird.core.limits import PREVIEW_BYTES
from hummingbird.evidence.report_preview import LINE_BYTES, PreviewText, cut_line

KEPT_BYTES = 256 * 1024  # of the hunks of one diff
LISTED_FILES = 2_000
RECORD_BYTES = 4 * 1024 * 1024  # of one line; the rest of a longer one is dropped
_LIST_SHARE = 3  # a third of the room at most is for the list of files
_HUNK = re.compile(rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_FILE = re.compile(rb"diff --(?:git|cc|combined) .*")
_GIT_PATH = re.compile(r'diff --git (?:"?a/.*"? )"?b/(.*?)"?$')
_BEGINS = re.compile(
    rb"diff --|@@ -\d|(?:---|\+\+\+) |Index: |(?:commit|From) [0-9a-f]{7,64}\b"  # as `git show` and `svn diff` do
    rb'|\{"(?:old|new)_path":'
)
_HEADER = re.compile(
    rb"(?:index|old mode|new mode|new file|deleted file|similarity|dissimilarity|rename|copy|Binary files|GIT binary"
    rb"|---|\+\+\+|\\|=+$|Index:|commit|From|Author|Date|Subject|Merge|    |--? ?$|$)"
)
_PREAMBLE_LINES = 200
_FOREIGN_LINES = 20  # lines that belong to no diff; with more of them it is a log that a diff happens to be in
_BEGINNING_BYTES = 1_200  # of a hunk that is too long, shown where no whole one fits
_FIRST_BYTES = 64  # enough to see whether it begins like a diff


class _FileRecord(msgspec.Struct):
    old_path: str
    new_path: str
    diff: str = ""


@dataclass(slots=True)
class _DiffHunk:
    """A hunk. `first` is the number of its line in the whole diff; if it is too long, `lines` has its beginning."""

    path: str
    first: int
    last: int
    lines: list[bytes] = field(default_factory=list)
    size: int = 0
    whole: bool = True


@dataclass(slots=True)
class _PreviewedFile:
    path: str
    first: int
    last: int = 0
    added: int = 0
    removed: int = 0
    hunks: list[_DiffHunk] = field(default_factory=list)


class DiffPreview:
    """What a diff changes, in its own lines.

    Feed it anything: `recognised` tells whether it is a diff at all.
    """

    def __init__(self) -> None:
        self._files: list[_PreviewedFile] = []
        self._more_files = 0
        self._rest = b""
        self._number = 0
        self._left = (0, 0)  # lines of the open hunk that are still to come, by side
        self._foreign = 0
        self._kept = 0
        self._records = False
        self._gave_up = False

    def feed(self, chunk: bytes) -> None:
        if self._gave_up:
            return
        *lines, rest = (self._rest + chunk).split(b"\n")
        self._rest = rest[:RECORD_BYTES]
        if not self._number and not lines and len(rest) >= _FIRST_BYTES and not _BEGINS.match(rest):
            self._gave_up = True
        for line in lines:
            self._read_line(line)

    @property
    def recognised(self) -> bool:
        return bool(self._files) and not self._gave_up

    def text(self, budget_bytes: int) -> str:
        """Return the preview in at most that many bytes; empty if this is no diff."""
        if self._rest and not self._gave_up:
            ended = deepcopy(self)  # more may come, and continue this line
            ended.feed(b"\n")
            return ended.text(budget_bytes)
        if not self.recognised:
            return ""
        shown = PreviewText(budget_bytes)
        self._add_file_list(shown)
        for line in self._hunk_lines(shown.room):
            shown.add(line)
        return shown.text

    def _read_line(self, line: bytes) -> None:
        self._number += 1
        if self._number == 1:
            self._records = line.startswith((b'{"old_path"', b'{"new_path"'))
        if self._records:
            self._read_record(line)
        else:
            self._read_text_line(line.removesuffix(b"\r"), self._number)
            if not self._files and (self._number > _PREAMBLE_LINES or (self._number == 1 and not _BEGINS.match(line))):
                self._gave_up = True
        if self._foreign > _FOREIGN_LINES:
            self._gave_up = True

    def _read_record(self, line: bytes) -> None:
        try:
            record = msgspec.json.decode(line, type=_FileRecord)
        except (msgspec.DecodeError, UnicodeDecodeError):
            self._foreign += bool(line.strip())
            return
        self._begin_file(record.new_path or record.old_path, self._number)
        for text in record.diff.encode("utf-8", "replace").splitlines():
            self._read_text_line(text, self._number)

    def _read_text_line(self, line: bytes, number: int) -> None:
        old, new = self._left
        if old > 0 or new > 0:
            self._continue_hunk(line, number)
        elif found := _HUNK.match(line):
            self._begin_hunk(line, number, found)
        elif _FILE.fullmatch(line):
            path = _GIT_PATH.match(line.decode("utf-8", "replace"))
            self._begin_file(path[1] if path else line.decode("utf-8", "replace"), number)
        elif line.startswith(b"+++ "):
            self._name_file(line, number)
        elif self._files:
            self._files[-1].last = number
            self._foreign += not _HEADER.match(line)

    def _begin_file(self, path: str, number: int) -> None:
        if len(self._files) < LISTED_FILES:
            self._files.append(_PreviewedFile(path, number, number))
        else:
            self._more_files += 1

    def _name_file(self, line: bytes, number: int) -> None:
        """Begin a file that only its `+++` line names; git's own header has named it before."""
        if self._files and not self._files[-1].hunks:
            self._files[-1].last = number
            return
        path = line[4:].decode("utf-8", "replace").split("\t")[0].removeprefix("b/")
        self._begin_file(path, max(1, number - 1))

    def _begin_hunk(self, line: bytes, number: int, found: "re.Match[bytes]") -> None:
        if not self._files:
            self._begin_file("(a file without a name)", number)
        self._left = int(found[2] or 1), int(found[4] or 1)
        self._files[-1].hunks.append(_DiffHunk(self._files[-1].path, number, number))
        self._keep(line, number)

    def _continue_hunk(self, line: bytes, number: int) -> None:
        old, new = self._left
        sign, file = line[:1], self._files[-1]
        if sign == b"\\":
            pass
        elif sign == b"+":
            new, file.added = new - 1, file.added + 1
        elif sign == b"-":
            old, file.removed = old - 1, file.removed + 1
        else:
            old, new = old - 1, new - 1
        self._left = old, new
        self._keep(line, number)

    def _keep(self, line: bytes, number: int) -> None:
        file = self._files[-1]
        hunk = file.hunks[-1]
        file.last = hunk.last = number
        if not hunk.whole:
            return
        hunk.lines.append(line[:LINE_BYTES])
        hunk.size += len(hunk.lines[-1]) + 1
        self._kept += len(hunk.lines[-1])
        if hunk.size > PREVIEW_BYTES or self._kept > KEPT_BYTES:
            hunk.whole = False
            while hunk.lines and hunk.size > _BEGINNING_BYTES:
                gone = len(hunk.lines.pop())
                self._kept, hunk.size = self._kept - gone, hunk.size - gone - 1

    def _add_file_list(self, shown: PreviewText) -> None:
        count = len(self._files) + self._more_files
        added, removed = sum(one.added for one in self._files), sum(one.removed for one in self._files)
        what = "1 file is changed" if count == 1 else f"{count} files are changed"
        shown.add(f"[{what}: {added} lines added, {removed} removed]")
        least = shown.room - shown.room // _LIST_SHARE
        for at, one in enumerate(self._files):
            where = f"line {one.first}" if one.first == one.last else f"lines {one.first} to {one.last}"
            line = cut_line(f"[{one.path}: +{one.added} -{one.removed}, {where}]", LINE_BYTES)
            if shown.room - len(line.encode()) < least:
                shown.add(f"[and {count - at} more files]")
                return
            shown.add(line)

    def _hunk_lines(self, room: int) -> Iterator[str]:
        """Yield the chosen hunks in the order of the diff, with a mark where lines are left out."""
        last = 0
        for hunk in sorted(self._choose_hunks(room), key=lambda one: one.first):
            if hunk.first > last + 1 and not self._records:
                yield self._gap(last + 1, hunk.first - 1)
            yield from self._render(hunk)
            last = hunk.first + len(hunk.lines) - 1
        if last < self._number and not self._records:
            yield self._gap(last + 1, self._number)

    def _choose_hunks(self, room: int) -> Sequence[_DiffHunk]:
        """Choose whole hunks: the first that fits of every file, then the second, until the room is used."""
        room -= len(self._gap(self._number, self._number).encode()) + 1
        chosen: list[_DiffHunk] = []
        queues = [[hunk for hunk in file.hunks if hunk.whole] for file in self._files]
        for turn in range(max(map(len, queues), default=0)):
            for queue in queues:
                if turn < len(queue) and (size := self._shown_size(queue[turn])) <= room:
                    chosen.append(queue[turn])
                    room -= size
        begun = (hunk for file in self._files for hunk in file.hunks if hunk.lines)
        return chosen or [hunk for hunk in begun if self._shown_size(hunk) <= room][:1]

    def _shown_size(self, hunk: _DiffHunk) -> int:
        gap = len(self._gap(self._number, self._number).encode()) + 1
        return gap + sum(min(len(line.encode()), LINE_BYTES) + 1 for line in self._render(hunk))

    def _render(self, hunk: _DiffHunk) -> Iterator[str]:
        """Yield the lines of a hunk; those of text are numbered, so that `sed -n` finds them in the file."""
        if self._records:
            yield f"[{hunk.path}, in line {hunk.first}:]"
        for number, line in enumerate(hunk.lines, hunk.first):
            text = line.decode("utf-8", "replace")
            yield text if self._records else f"{number}: {text}"

    def _gap(self, first: int, last: int) -> str:
        return f"[… left out: lines {first} to {last} of {self._number} …]"
