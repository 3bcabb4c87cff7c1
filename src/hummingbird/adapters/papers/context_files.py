"""Files of a project that speak to agents (C9): of each directory from the root of its repository down to the start,
the first of some names. Outside a repository only the start itself is looked at.

Anybody who can get a change into the repository can write them, so they are scanned; what is left out is said.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hummingbird.adapters.papers.reading import Read, read
from hummingbird.domain.errors import InputUnreadable
from hummingbird.domain.mind_limits import CONTEXT_DEPTH, CONTEXT_FILE_BYTES, CONTEXT_FILES_BYTES, PAPER_BYTES
from hummingbird.domain.papers import ContextFile, ContextFiles
from hummingbird.domain.smuggled import suspicion, uncommented

NAMES = ("HUMMINGBIRD.md", "AGENTS.md", "CLAUDE.md")


def context_files(start: Path) -> ContextFiles:
    """Never raises. The nearest ones get their room first."""
    directories = _directories(Path(os.path.realpath(start)))
    found = _Found(root=directories[-1])
    for directory in directories:
        found.take(directory)
    return ContextFiles(tuple(reversed(found.files)), tuple(found.faults))


def _directories(start: Path) -> list[Path]:
    """From the start up to where the repository begins."""
    above = [start, *start.parents][: CONTEXT_DEPTH + 1]
    root = next((number for number, directory in enumerate(above) if os.path.lexists(directory / ".git")), 0)
    return above[: root + 1]


@dataclass(slots=True)
class _Found:
    root: Path
    files: list[ContextFile] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    room: int = CONTEXT_FILES_BYTES

    def take(self, directory: Path) -> None:
        path = next((directory / name for name in NAMES if os.path.lexists(directory / name)), None)
        if path is None:
            return
        name = os.path.relpath(path, self.root)
        text = self._text(path, name)
        if text.strip():
            text = self._fit(text.strip("\n"), name)
            self.room -= len(text.encode())
            self.files.append(ContextFile(name, text))

    def _text(self, path: Path, name: str) -> str:
        """Empty for one that is left out."""
        if not Path(os.path.realpath(path)).is_relative_to(self.root):
            return self._left_out(name, "it is a link that leads out of the repository")
        try:
            there = read(path, PAPER_BYTES)
        except InputUnreadable as error:
            return self._left_out(name, str(error).rstrip("."))
        if there is None:
            return self._left_out(name, "it is a link that leads nowhere")
        return self._scanned(there, name)

    def _scanned(self, there: Read, name: str) -> str:
        text = there.text.removeprefix("\ufeff").replace("\r\n", "\n")
        if doubt := suspicion(text):
            return self._left_out(name, f"its line {doubt.line} {doubt.why}")
        seen, lines = uncommented(text)
        if lines:
            self.faults.append(f"{name}: comments, which readers do not see, were taken out ({_numbered(lines)}).")
        if there.broken:
            self.faults.append(f"{name} is not all UTF-8: what is not is shown as question marks. Save it as UTF-8.")
        return seen

    def _fit(self, text: str, name: str) -> str:
        content, most = text.encode(), max(0, min(CONTEXT_FILE_BYTES, self.room))
        if len(content) <= most:
            return text
        self.faults.append(
            f"{name} has {len(content)} bytes, {most} fit: the agent is shown its beginning. Shorten it."
        )
        head = content[:most].decode("utf-8", "ignore")
        return (head[: head.rfind("\n") + 1] or head) + f"[… cut here; all of it is in {name}]"

    def _left_out(self, name: str, why: str) -> str:
        self.faults.append(f"{name} was left out: {why}.")
        return ""


def _numbered(lines: Sequence[int]) -> str:
    return "line " + ", ".join(map(str, lines[:5])) + (" …" if len(lines) > 5 else "")
