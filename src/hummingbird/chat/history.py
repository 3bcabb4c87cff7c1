"""What was typed, for Up and Ctrl-R, also tomorrow: a file that only its owner can read, without known credentials.

A line of JSON each, the newest last; appended in one write, so that two terminals can share it. A line is the text, or
a list of what was typed and what was pasted by turns: what was pasted is a paste again tomorrow, with a placeholder of
that day. A file that cannot be written or read costs the memory of the next session and nothing else.
"""

import asyncio
import json
import os
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.history import History

from hummingbird.chat.attachments import Pastes
from hummingbird.chat.limits import HISTORY_ENTRIES, HISTORY_ENTRY_CHARS


class RecallingBuffer(Buffer):
    """An input in which Up waits for the history: after each reset prompt_toolkit loads it with the next repaint, and a
    key that comes before that would do nothing."""

    def history_backward(self, count: int = 1) -> None:
        self.load_history_if_not_yet_loaded()
        loading = self._load_history_task
        if loading is None or loading.done():
            super().history_backward(count)
        else:
            loading.add_done_callback(partial(self._go_back, count))

    def _go_back(self, count: int, loading: "asyncio.Future[None]") -> None:
        if not loading.cancelled():
            super().history_backward(count)


class KeptHistory(History):
    """`mask` takes credentials out of what is written down; within this session the keys still give all of it.
    `pastes`: those of this conversation."""

    def __init__(self, path: Path | None, mask: Callable[[str], str], pastes: Pastes | None = None) -> None:
        super().__init__()
        self._path = path
        self._mask = mask
        self._pastes = pastes or Pastes()
        self.trouble = ""  # why the file is of no use, in a sentence
        self.cut = ""  # what the file does not have of the last text, in a sentence

    def load_history_strings(self) -> Iterable[str]:
        """The newest first."""
        if self._path is None:
            return []
        try:
            lines = self._path.read_bytes().splitlines()
        except FileNotFoundError:
            return []
        except OSError as error:
            self.trouble = f"The history {self._path} cannot be read: {error.strerror}."
            return []
        kept = lines[-HISTORY_ENTRIES:]
        if len(lines) > 2 * HISTORY_ENTRIES:
            self._replace(kept)
        return [text for line in reversed(kept) if (text := self._text(line))]

    def store_string(self, string: str) -> None:
        self.cut = ""
        if self._path is None:
            return
        line = json.dumps(self._parts(string)).encode() + b"\n"
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._write(self._path, os.O_APPEND, line)
        except OSError as error:
            self.trouble = f"The history {self._path} cannot be written: {error.strerror}."

    def _parts(self, string: str) -> str | list[str]:
        """As it is written down: masked before it is cut, or half a credential might stay; megabytes cut before, so
        that no key waits for them."""
        parts, left, lost = [""], HISTORY_ENTRY_CHARS, 0
        for number, part in self._pastes.parts(string):
            masked = self._mask(part[: 2 * HISTORY_ENTRY_CHARS])
            if (number > 0) == (len(parts) % 2 > 0):
                parts.append("")
            elif number:  # right behind another paste
                parts += ["", ""]
            parts[-1] += masked[:left]
            lost += max(0, len(masked) - left) + max(0, len(part) - 2 * HISTORY_ENTRY_CHARS)
            left = max(0, left - len(masked))
        if lost:
            self.cut = f"The history keeps {HISTORY_ENTRY_CHARS:,} characters of it; the last {lost:,} are not kept."
        return parts if len(parts) > 1 else parts[0]

    def _text(self, line: bytes) -> str:
        try:
            found: Any = json.loads(line)
        except (ValueError, RecursionError):
            return ""
        if not isinstance(found, list):
            return found if isinstance(found, str) else ""
        if not all(isinstance(part, str) for part in found):
            return ""
        return "".join(self._pastes.keep(part) if at % 2 and part else part for at, part in enumerate(found))

    def _replace(self, lines: list[bytes]) -> None:
        assert self._path is not None
        beside = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            self._write(beside, os.O_TRUNC, b"\n".join(lines) + b"\n")
            beside.replace(self._path)
        except OSError:
            beside.unlink(missing_ok=True)

    @staticmethod
    def _write(path: Path, how: int, content: bytes) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | how, 0o600)
        try:
            os.fchmod(descriptor, 0o600)
            os.write(descriptor, content)
        finally:
            os.close(descriptor)
