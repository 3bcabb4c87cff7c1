"""The program that searches files, in a process of its own: a pattern that takes for ever is ended with it.

Reads one request, writes one JSON object a line. Where files are judged it asks about their names first, and reads a
list of yes and no; it opens none that got a no. Ends itself when its time is over or nobody waits any more.
"""

import ctypes
import json
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from hummingbird.adapters.host.below import Below, Spot, read_at_most
from hummingbird.domain.errors import CommandFailed
from hummingbird.domain.host_limits import (
    SEARCH_FILE_BYTES,
    SEARCH_FILES,
    SEARCH_GIT_S,
    SEARCH_JUDGED,
    SEARCH_LINE_CHARS,
    SEARCH_MATCHES,
    SEARCH_MATCHES_PER_FILE,
    SEARCH_MEMORY_BYTES,
)

_DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_OTHERS = (b".git", b".hg", b".svn", b".bzr", b".jj")
_GIT = ("git", "-c", "core.fsmonitor=false", "-C")  # which would be a program that the repository names
_LOOKED_AT = 1 << 16


def main() -> None:
    request = json.loads(sys.stdin.buffer.readline())
    _bounded(request)
    search = _Search(request)
    try:
        search.run()
    except CommandFailed as error:
        search.fault = str(error)
    except re.error as error:
        search.fault = f"The pattern is no regular expression: {error}. Escape it, or say that it is literal."
    except (MemoryError, RecursionError, OverflowError):
        search.fault = "The pattern is too large to be used. Make it simpler."
    search.tell(over=True, files=search.files, skipped=search.skipped, more=search.more, fault=search.fault)


def _bounded(request: dict[str, Any]) -> None:
    ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != request["parent"]:
        sys.exit()
    signal.setitimer(signal.ITIMER_REAL, request["time_s"] + 1)  # ends it even in the middle of a pattern
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    most = SEARCH_MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(SEARCH_MEMORY_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))


class _Search:
    def __init__(self, request: dict[str, Any]) -> None:
        self.request = request
        self.below = Below(Path(request["root"]), [Path(each) for each in request["forbidden"]])
        self.files = self.skipped = self.matches = 0
        self.more = False
        self.fault = ""

    def tell(self, **said: object) -> None:
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()

    def run(self) -> None:
        pattern = self.request["pattern"]
        wanted = re.compile(re.escape(pattern) if self.request["literal"] else pattern) if pattern else None
        start = self.below.spot(self.request["path"])
        for spot in self._allowed(self._fitting(start)):
            if self.files >= SEARCH_FILES or self.matches >= SEARCH_MATCHES:
                self.more = True
                return
            self.files += 1
            self._file(spot, wanted)

    def _allowed(self, spots: Iterator[Spot]) -> Iterator[Spot]:
        if not self.request["judged"]:
            yield from spots
        while batch := list(islice(spots, SEARCH_JUDGED)):
            self.tell(judge=[spot.shown for spot in batch])
            answers = json.loads(sys.stdin.buffer.readline())
            yield from (spot for spot, answer in zip(batch, answers, strict=True) if answer)

    def _fitting(self, start: Spot) -> Iterator[Spot]:
        glob, whole = _glob(self.request["glob"]), "/" in self.request["glob"]
        for spot in self._spots(start):
            name = b"/".join(spot.parts[len(start.parts) :] or spot.parts[-1:]).decode("utf-8", "replace")
            if glob is None or glob.fullmatch(name if whole else name.rpartition("/")[2]):
                yield spot

    def _spots(self, start: Spot) -> Iterator[Spot]:
        mode = self.below.mode(start)
        if mode is None:
            raise CommandFailed(f"There is no {start.shown} to search in.")
        if not os.path.isdir(os.path.join(os.fsencode(self.below.root), *start.parts)):  # noqa: PTH112, PTH118 - bytes
            yield start
            return
        names = self._from_git(start)
        for name in self._walked(start) if names is None else names:
            yield Spot((*start.parts, *name.split(b"/")))

    def _from_git(self, start: Spot) -> Iterator[bytes] | None:
        """What git knows or would take, None where there is no git to ask or it knows nothing below."""
        folder = os.fsdecode(os.path.join(os.fsencode(self.below.root), *start.parts))  # noqa: PTH118 - bytes
        try:
            listing = [*_GIT, folder, "ls-files", "-co", "--exclude-standard", "-z"]
            done = subprocess.run(listing, capture_output=True, timeout=SEARCH_GIT_S, check=False)  # noqa: S603 - ours
        except (OSError, subprocess.TimeoutExpired):
            return None
        names = sorted(set(done.stdout.split(b"\0")[:-1]))
        return self._unfolded(start, names) if names and not done.returncode else None

    def _unfolded(self, start: Spot, names: list[bytes]) -> Iterator[bytes]:
        """A repository within the repository is listed as a folder."""
        for name in names:
            if name.endswith(b"/"):
                inner = name.rstrip(b"/")
                yield from (inner + b"/" + each for each in self._walked(Spot((*start.parts, *inner.split(b"/")))))
            else:
                yield name

    def _walked(self, start: Spot) -> Iterator[bytes]:
        top = os.path.join(os.fsencode(self.below.root), *start.parts)  # noqa: PTH118 - names that are no text
        for folder, inner, names in os.walk(top):
            inner[:] = sorted(name for name in inner if name not in _OTHERS)
            for name in sorted(names):
                yield os.path.relpath(os.path.join(folder, name), top)  # noqa: PTH118 - as above

    def _file(self, spot: Spot, wanted: re.Pattern[str] | None) -> None:
        try:
            self.below.check(spot)
            with self.below.file(spot) as at:
                content = read_at_most(at, SEARCH_FILE_BYTES) if wanted else b""
        except (OSError, CommandFailed):
            self.files, self.skipped = self.files - 1, self.skipped + 1
            return
        if wanted is None:
            self._match(spot.shown)
        elif len(content) > SEARCH_FILE_BYTES or b"\0" in content[:_LOOKED_AT]:
            self.files, self.skipped = self.files - 1, self.skipped + 1
        else:
            self._lines(spot, content.decode("utf-8", "replace"), wanted)

    def _lines(self, spot: Spot, text: str, wanted: re.Pattern[str]) -> None:
        here = 0
        for number, line in enumerate(text.split("\n"), 1):
            if (found := wanted.search(line)) is None:
                continue
            if here >= SEARCH_MATCHES_PER_FILE or self.matches >= SEARCH_MATCHES:
                self.more = True
                return
            here += 1
            self._match(f"{spot.shown}:{number}: {_around(line, found.start())}")

    def _match(self, line: str) -> None:
        self.matches += 1
        self.tell(line=line)


def _around(line: str, at: int) -> str:
    """A part of it with the match in it, on one line."""
    begins = max(0, min(at - SEARCH_LINE_CHARS // 3, len(line) - SEARCH_LINE_CHARS))
    part = line[begins : begins + SEARCH_LINE_CHARS].rstrip()
    text = "".join(c if c.isprintable() or c == "\t" else "\ufffd" for c in part)
    return ("…" if begins else "") + text + ("…" if begins + SEARCH_LINE_CHARS < len(line) else "")


def _glob(glob: str) -> re.Pattern[str] | None:
    """`*` and `?` stay within one name, `**` does not."""
    if not glob:
        return None
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", glob.removeprefix("./"))
    meanings = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(meanings.get(part, re.escape(part)) for part in parts), re.DOTALL)
