"""Tell which lines of which files a diff shows, before and after the change.

Reads unified diffs, and JSON with one record per file.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from hummingbird.core.json_codec import InvalidJson, decode_json

_FILE = re.compile(r"(?:---|\+\+\+) (?:[ab]/)?(.+?)(?:\t.*)?")
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@.*")
_CUT_RECORD = re.compile(
    r'\{"old_path":\s?("(?:[^"\\]|\\.)*+"),\s?"new_path":\s?("(?:[^"\\]|\\.)*+").*?,\s?"diff":\s?"((?:[^"\\]|\\.)*+)'
)


@dataclass(frozen=True, slots=True)
class DiffedLine:
    """A line of a file that a diff shows, without its sign; `numbers` are its numbers before and after the change."""

    text: str
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FileLineRange:
    """A range of lines in a file, both ends included."""

    path: str
    first: int
    last: int


def is_diff(text: str) -> bool:
    """Tell whether the text looks like a unified diff."""
    return text.startswith(("diff --git ", "@@ -", "--- ")) or ("\n@@ -" in text and "\n+++ " in text)


def diff_lines(lines: Iterable[str]) -> Iterator[DiffedLine]:
    """Yield the lines of the hunks with their numbers."""
    old = new = 0
    for line in lines:
        if found := _HUNK.fullmatch(line):
            old, new = int(found[1]), int(found[3])
        elif line.startswith(("diff --git ", "+++ ", "--- ")):
            continue
        elif old or new:
            sign = line[:1]
            numbers = (old,) if sign == "-" else (new,) if sign == "+" else (old, new)
            yield DiffedLine(line[1:], numbers)
            old, new = old + (sign != "+"), new + (sign != "-")


def diff_line_ranges(lines: Iterable[str]) -> Iterator[FileLineRange]:
    """Yield the ranges that the hunk headers announce, for the old and the new file."""
    paths = ["", ""]
    for line in lines:
        if line.startswith(("--- ", "+++ ")) and (named := _FILE.fullmatch(line)):
            paths[line.startswith("+++ ")] = named[1]
        elif found := _HUNK.fullmatch(line):
            for path, first, count in ((paths[0], found[1], found[2]), (paths[1], found[3], found[4])):
                if path and path != "/dev/null":
                    yield FileLineRange(path, int(first), int(first) + max(1, int(count or 1)) - 1)


@dataclass(frozen=True, slots=True)
class JsonFileDiff:
    """The diff of one file in a JSON record; `is_truncated` if part of the diff is missing."""

    old: str
    new: str
    diff: str
    is_truncated: bool = False

    @property
    def headers(self) -> Iterator[str]:
        """The headers that a unified diff would have for this file."""
        yield f"diff --git a/{self.old} b/{self.new}"
        yield from (f"--- a/{self.old}", f"--- {self.old}", f"+++ b/{self.new}", f"+++ {self.new}")
        if "@@ -0,0 +" in self.diff:
            yield "--- /dev/null"
        if " +0,0 @@" in self.diff:
            yield "+++ /dev/null"

    @property
    def lines(self) -> list[str]:
        """The complete lines of the diff."""
        found = self.diff.split("\n")
        return found[:-1] if self.is_truncated else found

    @property
    def line_ranges(self) -> Iterator[FileLineRange]:
        return diff_line_ranges([f"--- a/{self.old}", f"+++ b/{self.new}", *self.lines])


def file_diffs_from_json(lines: Iterable[str]) -> Iterator[JsonFileDiff]:
    """Yield the diffs in those lines that are JSON, complete or cut off."""
    for line in lines:
        if '"diff"' not in line:
            continue
        try:
            yield from _file_diffs(decode_json(line.encode("utf-8", "replace")))
        except InvalidJson:
            yield from _parse_truncated_record(line)


def _file_diffs(value: Any) -> Iterator[JsonFileDiff]:
    if isinstance(value, list):
        for one in value:
            yield from _file_diffs(one)
    elif isinstance(value, dict):
        old, new, diff = value.get("old_path"), value.get("new_path"), value.get("diff")
        if isinstance(diff, str) and (path := new or old) and isinstance(path, str):
            yield JsonFileDiff(old if isinstance(old, str) and old else path, path, diff)
        else:
            yield from _file_diffs([one for one in value.values() if isinstance(one, list | dict)])


def _parse_truncated_record(line: str) -> Iterator[JsonFileDiff]:
    found = _CUT_RECORD.match(line)
    if found is None:
        return
    try:
        old, new, diff = (msgspec.json.decode(one, type=str) for one in (found[1], found[2], f'"{found[3]}"'))
    except (msgspec.DecodeError, UnicodeError):
        return
    yield JsonFileDiff(old, new, diff, is_truncated=True)
