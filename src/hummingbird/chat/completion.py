"""What can be completed: commands with their help, and @paths below the start directory (C1).

Looks at a bounded part of the file system for a bounded time, whatever lies there, and into no version control.
"""

import os
import re
import time
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from hummingbird.chat.commands import COMMANDS
from hummingbird.chat.limits import COMPLETION_ENTRIES, COMPLETION_S, COMPLETIONS

_HIDDEN = {".git", ".hg", ".svn", ".jj", "node_modules", "__pycache__", ".venv"}
_COMMAND = re.compile(r"/[A-Za-z]*\Z")
_MENTION = re.compile(r'(?:^|(?<=\s))@("?)([^\s"]*)\Z')


def completable(document: Document) -> bool:
    """Whether there is anything to look for; asked with each key."""
    before = document.text_before_cursor
    return bool(_COMMAND.fullmatch(before) or _MENTION.search(document.current_line_before_cursor))


class ChatCompleter(Completer):
    def __init__(self, start: Path) -> None:
        self._start = start

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        before = document.text_before_cursor
        if _COMMAND.fullmatch(before):
            yield from _commands(before)
        elif mention := _MENTION.search(document.current_line_before_cursor):
            for path in paths(self._start, mention[2]):
                yield Completion(path, start_position=-len(mention[2]), display=path)


def _commands(before: str) -> Iterator[Completion]:
    for one in COMMANDS.values():
        if f"/{one.name}".startswith(before.lower()):
            gap = " " if one.argument else ""
            yield Completion(f"/{one.name}{gap}", start_position=-len(before), display_meta=one.help)


def paths(start: Path, typed: str) -> list[str]:
    """What goes on from what was typed; then files further below that have it in their names."""
    folder, _, beginning = typed.rpartition("/")
    if folder.startswith("/") or ".." in folder.split("/"):
        return []
    prefix = f"{folder}/" if folder else ""
    here = [name for name in _entries(start / folder) if name.lower().startswith(beginning.lower())]
    found = [prefix + name for name in sorted(here)[:COMPLETIONS]]
    if beginning and len(found) < COMPLETIONS:
        known = set(found)
        found += [path for path in _below(start, prefix, beginning) if path not in known]
    return found[:COMPLETIONS]


def _entries(folder: Path) -> Iterator[str]:
    """Names, with a slash behind those of folders. What a screen cannot show and a mention cannot name is left out."""
    try:
        with os.scandir(folder) as entries:
            for _, entry in zip(range(COMPLETION_ENTRIES), entries, strict=False):
                if entry.name in _HIDDEN or not entry.name.isprintable() or set(entry.name) & set(' "'):
                    continue
                yield entry.name + ("/" if entry.is_dir(follow_symlinks=False) else "")
    except OSError:
        return


def _below(start: Path, prefix: str, part: str) -> Iterator[str]:
    until, left = time.monotonic() + COMPLETION_S, COMPLETION_ENTRIES
    folders = deque([prefix])
    found = 0
    while folders:
        folder = folders.popleft()
        for name in _entries(start / folder):
            left -= 1
            if left < 0 or time.monotonic() > until or found >= COMPLETIONS:
                return
            if part.lower() in name.lower():
                found += 1
                yield folder + name
            if name.endswith("/") and not name.startswith("."):
                folders.append(folder + name)
