"""Processes by their numbers, told apart from later ones of the same number by when they began."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True, order=True)
class Process:
    pid: int
    began: str
    line: bytes = field(default=b"", compare=False)

    @property
    def alive(self) -> bool:
        """One that has ended and that nobody has asked about yet is not."""
        found = _stat(self.pid)
        return found is not None and found[2] == self.began and found[0] != "Z"


def _stat(pid: int) -> tuple[str, int, str] | None:
    """State, parent, when it began."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    return fields[0], int(fields[1]), fields[19]


def running(words: bytes) -> list[Process]:
    """Those whose command line begins with these words, wherever they are."""
    return [one for one, _ in _all() if one.line.startswith(words)]


def _all() -> Iterator[tuple[Process, int]]:
    """Each, and its parent."""
    for folder in _PROC.iterdir():
        if folder.name.isdigit() and (stat := _stat(int(folder.name))) is not None:
            line = b""
            with suppress(OSError):
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
            yield Process(int(folder.name), stat[2], line), stat[1]


def below(pid: int) -> list[Process]:
    """All that this one has started, and what those have, whatever namespace they are in."""
    children: defaultdict[int, list[Process]] = defaultdict(list)
    for one, parent in _all():
        children[parent].append(one)
    found, looking = list[Process](), [pid]
    while looking:
        for each in children[looking.pop()]:
            found.append(each)
            looking.append(each.pid)
    return found
