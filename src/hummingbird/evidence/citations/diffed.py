"""Diffs as places: which lines of which files they show, before and after the change. Unified ones, and those that come
as JSON, a record for each file. Knows nothing else."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

_FILE = re.compile(r"(?:---|\+\+\+) (?:[ab]/)?(.+?)(?:\t.*)?")
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@.*")
_CUT_RECORD = re.compile(
    r'\{"old_path":\s?("(?:[^"\\]|\\.)*+"),\s?"new_path":\s?("(?:[^"\\]|\\.)*+").*?,\s?"diff":\s?"((?:[^"\\]|\\.)*+)'
)


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


@dataclass(frozen=True, slots=True)
class Changed:
    """What a record says of one file. `cut`: not all of its diff is there."""

    old: str
    new: str
    diff: str
    cut: bool = False

    @property
    def heads(self) -> Iterator[str]:
        """As unified diffs would name it."""
        yield f"diff --git a/{self.old} b/{self.new}"
        yield from (f"--- a/{self.old}", f"--- {self.old}", f"+++ b/{self.new}", f"+++ {self.new}")
        if "@@ -0,0 +" in self.diff:
            yield "--- /dev/null"
        if " +0,0 @@" in self.diff:
            yield "+++ /dev/null"

    @property
    def lines(self) -> list[str]:
        """Whole ones."""
        found = self.diff.split("\n")
        return found[:-1] if self.cut else found

    @property
    def stretches(self) -> Iterator[Stretch]:
        return stretches([f"--- a/{self.old}", f"+++ b/{self.new}", *self.lines])


def changed(lines: Iterable[str]) -> Iterator[Changed]:
    """Of the lines those that are JSON with diffs in it, whole or cut off."""
    for line in lines:
        if '"diff"' not in line:
            continue
        try:
            yield from _records(msgspec.json.decode(line.encode("utf-8", "replace")))
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            yield from _cut_off(line)


def _records(value: Any) -> Iterator[Changed]:
    if isinstance(value, list):
        for one in value:
            yield from _records(one)
    elif isinstance(value, dict):
        old, new, diff = value.get("old_path"), value.get("new_path"), value.get("diff")
        if isinstance(diff, str) and (path := new or old) and isinstance(path, str):
            yield Changed(old if isinstance(old, str) and old else path, path, diff)
        else:
            yield from _records([one for one in value.values() if isinstance(one, list | dict)])


def _cut_off(line: str) -> Iterator[Changed]:
    found = _CUT_RECORD.match(line)
    if found is None:
        return
    try:
        old, new, diff = (msgspec.json.decode(one, type=str) for one in (found[1], found[2], f'"{found[3]}"'))
    except (msgspec.DecodeError, UnicodeError):
        return
    yield Changed(old, new, diff, cut=True)
