"""What a model sees of an output that is too long for it: a few lines, chosen while the output comes by (T5).

A preview is fed everything and holds little. Here is the plain one, head and tail; what knows failures when it sees
them is another `Preview`. Knows nothing of files or sandboxes.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from hummingbird.domain.limits import PREVIEW_BYTES

SHORTEST_PIECE = 24  # bytes of a line that are worth showing when the rest of it does not fit


class Preview(Protocol):
    def feed(self, chunk: bytes) -> None:
        """The next piece, in order; may end in the middle of a line or of a character."""
        ...

    def text(self, budget_bytes: int) -> str:
        """What is worth seeing of what came so far; never more bytes than that, at most PREVIEW_BYTES."""
        ...


Previews: TypeAlias = Callable[[str], Preview]
"""A new one for an output with this suffix (`log`, `json`, `xml`)."""


class HeadTail:
    """The first and the last lines with their numbers, and which ones are missing between them."""

    def __init__(self, keep_bytes: int = PREVIEW_BYTES) -> None:
        self._keep = keep_bytes
        self._head = bytearray()
        self._tail = b""
        self._size = 0
        self._newlines = 0

    def feed(self, chunk: bytes) -> None:
        self._head += chunk[: max(0, self._keep - len(self._head))]
        self._tail = (self._tail + chunk[-self._keep :])[-self._keep :]
        self._size += len(chunk)
        self._newlines += chunk.count(b"\n")

    @property
    def lines(self) -> int:
        return self._newlines + bool(self._tail and not self._tail.endswith(b"\n"))

    def text(self, budget_bytes: int) -> str:
        budget = max(0, min(budget_bytes, self._keep))
        if self._size <= self._keep:
            whole = "\n".join(_numbered(_lines(self._head), 1))
            if len(whole.encode()) <= budget:
                return whole
        mark = f"[… left out: lines {self.lines} to {self.lines} of {self.lines} …]"  # no shorter than it will be
        half = (budget - len(mark.encode()) - 2) // 2
        head = _first(_lines(self._head), half)
        tail = _last(_lines(self._tail), self.lines, half)
        first, last = len(head.whole) + 1, self.lines - len(tail.whole)
        mark = f"[… left out: lines {first} to {last} of {self.lines} …]"
        return clipped("\n".join([*head.whole, *head.part, mark, *tail.part, *tail.whole]), budget)


def head_and_tail(_suffix: str) -> Preview:
    """The same for every kind of file."""
    return HeadTail()


def clipped(text: str, most_bytes: int) -> str:
    """As much of the beginning as fits, without half a character."""
    content = text.encode("utf-8", "replace")
    return content.decode() if len(content) <= most_bytes else content[:most_bytes].decode("utf-8", "ignore")


class _Shown:
    """Lines that fitted, and a piece of the next one if there was room for it."""

    def __init__(self) -> None:
        self.whole: list[str] = []
        self.part: list[str] = []


def _first(lines: Sequence[str], room: int) -> _Shown:
    shown = _Shown()
    for line in _numbered(lines, 1):
        if (size := len(line.encode()) + 1) > room:
            if room > SHORTEST_PIECE:
                shown.part = [clipped(line, room - 4) + "…"]
            return shown
        shown.whole.append(line)
        room -= size
    return shown


def _last(lines: Sequence[str], total: int, room: int) -> _Shown:
    shown = _Shown()
    for number, line in zip(range(total, 0, -1), reversed(lines), strict=False):
        numbered = f"{number}: {line}"
        if (size := len(numbered.encode()) + 1) > room:
            if room > SHORTEST_PIECE:
                shown.part = [f"{number}: …{_end(line, room - len(f'{number}: …'.encode()) - 1)}"]
            return shown
        shown.whole.insert(0, numbered)
        room -= size
    return shown


def _end(line: str, most_bytes: int) -> str:
    return line.encode()[-most_bytes:].decode("utf-8", "ignore") if most_bytes > 0 else ""


def _lines(content: bytes | bytearray) -> list[str]:
    found = content.decode("utf-8", "replace").split("\n")
    return found if found[-1] else found[:-1]


def _numbered(lines: Sequence[str], first: int) -> list[str]:
    return [f"{number}: {line}" for number, line in enumerate(lines, first)]
