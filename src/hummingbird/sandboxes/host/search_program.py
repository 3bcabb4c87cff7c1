"""The program that searches files in a process of its own, so that a pattern that takes for ever can be killed.

It reads one request and writes one JSON object per line. Where files must be approved, it asks about their names first
and opens only those that are allowed. It ends when its time is over or its parent has died. It runs without
site-packages, so it imports only the standard library and modules of ours that do the same.
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

from hummingbird.core.errors import CommandFailed
from hummingbird.core.shell.values import (
    SEARCH_FILE_BYTES,
    SEARCH_FILES,
    SEARCH_GIT_S,
    SEARCH_JUDGED,
    SEARCH_LINE_CHARS,
    SEARCH_MATCHES,
    SEARCH_MATCHES_PER_FILE,
    SEARCH_MEMORY_BYTES,
)
from hummingbird.sandboxes.host.safe_path import SafeFolder, SafePath, read_at_most

_DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_VCS_FOLDERS = (b".git", b".hg", b".svn", b".bzr", b".jj")
_GIT = ("git", "-c", "core.fsmonitor=false", "-C")  # fsmonitor could be a program that the repository names
_NUL_SCAN_BYTES = 1 << 16


def main() -> None:
    request = json.loads(sys.stdin.buffer.readline())
    _limit_process(request)
    search = _SearchRun(request)
    try:
        search.run()
    except CommandFailed as error:
        search.fault = str(error)
    except re.error as error:
        search.fault = f"The pattern is not a regular expression: {error}. Escape it, or say that it is literal."
    except (MemoryError, RecursionError, OverflowError):
        search.fault = "The pattern is too large to be used. Make it simpler."
    search.emit(over=True, files=search.files, skipped=search.skipped, more=search.more, fault=search.fault)


def _limit_process(request: dict[str, Any]) -> None:
    ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != request["parent"]:
        sys.exit()
    signal.setitimer(signal.ITIMER_REAL, request["time_s"] + 1)  # SIGALRM kills it even in the middle of a pattern
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    most = SEARCH_MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(SEARCH_MEMORY_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))


class _SearchRun:
    def __init__(self, request: dict[str, Any]) -> None:
        self.request = request
        self.folder = SafeFolder(Path(request["root"]), [Path(each) for each in request["forbidden"]])
        self.files = self.skipped = self.matches = 0
        self.more = False
        self.fault = ""

    def emit(self, **said: object) -> None:
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()

    def run(self) -> None:
        pattern = self.request["pattern"]
        wanted = re.compile(re.escape(pattern) if self.request["literal"] else pattern) if pattern else None
        start = self.folder.resolve(self.request["path"])
        for spot in self._filter_allowed(self._match_glob(start)):
            if self.files >= SEARCH_FILES or self.matches >= SEARCH_MATCHES:
                self.more = True
                return
            self.files += 1
            self._search_file(spot, wanted)

    def _filter_allowed(self, spots: Iterator[SafePath]) -> Iterator[SafePath]:
        if not self.request["judged"]:
            yield from spots
        while batch := list(islice(spots, SEARCH_JUDGED)):
            self.emit(judge=[spot.display_path for spot in batch])
            answers = json.loads(sys.stdin.buffer.readline())
            yield from (spot for spot, answer in zip(batch, answers, strict=True) if answer)

    def _match_glob(self, start: SafePath) -> Iterator[SafePath]:
        glob, whole = _compile_glob(self.request["glob"]), "/" in self.request["glob"]
        for spot in self._find_paths(start):
            name = b"/".join(spot.parts[len(start.parts) :] or spot.parts[-1:]).decode("utf-8", "replace")
            if glob is None or glob.fullmatch(name if whole else name.rpartition("/")[2]):
                yield spot

    def _find_paths(self, start: SafePath) -> Iterator[SafePath]:
        mode = self.folder.file_mode(start)
        if mode is None:
            raise CommandFailed(f"There is no {start.display_path} to search in.")
        if not os.path.isdir(os.path.join(os.fsencode(self.folder.root), *start.parts)):
            yield start
            return
        names = self._list_with_git(start)
        for name in self._walk_folder(start) if names is None else names:
            yield SafePath((*start.parts, *name.split(b"/")))

    def _list_with_git(self, start: SafePath) -> Iterator[bytes] | None:
        """Return the files that git tracks or would add; None where git cannot be asked or knows nothing here."""
        folder = os.fsdecode(os.path.join(os.fsencode(self.folder.root), *start.parts))
        try:
            listing = [*_GIT, folder, "ls-files", "-co", "--exclude-standard", "-z"]
            done = subprocess.run(listing, capture_output=True, timeout=SEARCH_GIT_S, check=False)  # noqa: S603 - ours
        except (OSError, subprocess.TimeoutExpired):
            return None
        names = sorted(set(done.stdout.split(b"\0")[:-1]))
        return self._expand_nested_repositories(start, names) if names and not done.returncode else None

    def _expand_nested_repositories(self, start: SafePath, names: list[bytes]) -> Iterator[bytes]:
        """Yield all names, and walk through nested repositories, which git lists as a folder."""
        for name in names:
            if name.endswith(b"/"):
                inner = name.rstrip(b"/")
                yield from (
                    inner + b"/" + each for each in self._walk_folder(SafePath((*start.parts, *inner.split(b"/"))))
                )
            else:
                yield name

    def _walk_folder(self, start: SafePath) -> Iterator[bytes]:
        top = os.path.join(os.fsencode(self.folder.root), *start.parts)
        for folder, inner, names in os.walk(top):
            inner[:] = sorted(name for name in inner if name not in _VCS_FOLDERS)
            for name in sorted(names):
                yield os.path.relpath(os.path.join(folder, name), top)

    def _search_file(self, spot: SafePath, wanted: re.Pattern[str] | None) -> None:
        try:
            self.folder.check_allowed(spot)
            with self.folder.open_file(spot) as at:
                content = read_at_most(at, SEARCH_FILE_BYTES) if wanted else b""
        except (OSError, CommandFailed):
            self.files, self.skipped = self.files - 1, self.skipped + 1
            return
        if wanted is None:
            self._emit_match(spot.display_path)
        elif len(content) > SEARCH_FILE_BYTES or b"\0" in content[:_NUL_SCAN_BYTES]:
            self.files, self.skipped = self.files - 1, self.skipped + 1
        else:
            self._search_lines(spot, content.decode("utf-8", "replace"), wanted)

    def _search_lines(self, spot: SafePath, text: str, wanted: re.Pattern[str]) -> None:
        here = 0
        for number, line in enumerate(text.split("\n"), 1):
            if (found := wanted.search(line)) is None:
                continue
            if here >= SEARCH_MATCHES_PER_FILE or self.matches >= SEARCH_MATCHES:
                self.more = True
                return
            here += 1
            self._emit_match(f"{spot.display_path}:{number}: {_excerpt(line, found.start())}")

    def _emit_match(self, line: str) -> None:
        self.matches += 1
        self.emit(line=line)


def _excerpt(line: str, at: int) -> str:
    """Return the part of a line around the match, without control characters."""
    begins = max(0, min(at - SEARCH_LINE_CHARS // 3, len(line) - SEARCH_LINE_CHARS))
    part = line[begins : begins + SEARCH_LINE_CHARS].rstrip()
    text = "".join(c if c.isprintable() or c == "\t" else "\ufffd" for c in part)
    return ("…" if begins else "") + text + ("…" if begins + SEARCH_LINE_CHARS < len(line) else "")


def _compile_glob(glob: str) -> re.Pattern[str] | None:
    """Convert a glob: `*` and `?` stay within one name, `**` does not."""
    if not glob:
        return None
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", glob.removeprefix("./"))
    meanings = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(meanings.get(part, re.escape(part)) for part in parts), re.DOTALL)
