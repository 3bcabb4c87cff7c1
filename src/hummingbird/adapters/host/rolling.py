"""What a command has written, as far as it is kept: the beginning and the end, whatever it weighs in all."""

import threading
from dataclasses import dataclass

_LAST = 4096


@dataclass(frozen=True, slots=True)
class Part:
    """`begins` is where it stands in all of the output, `ends` where to go on; `lost` bytes before it are not kept."""

    content: bytes
    begins: int
    ends: int
    lost: int


class Rolling:
    """Written by one thread, read by others."""

    def __init__(self, kept: int) -> None:
        self._half = kept // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._lock = threading.Lock()
        self.total = 0

    def add(self, content: bytes) -> None:
        with self._lock:
            self.total += len(content)
            room = self._half - len(self._head)
            self._head += content[:room] if room > 0 else b""
            self._tail += content[max(0, room) :]
            if len(self._tail) > 2 * self._half:
                del self._tail[: -self._half]

    def part(self, offset: int, most: int) -> Part:
        with self._lock:
            if offset < len(self._head):
                content = bytes(self._head[offset : offset + most])
                return Part(content, offset, offset + len(content), 0)
            tail = self._kept_tail()
            begins = max(min(offset, self.total), self.total - len(tail))
            content = tail[begins - (self.total - len(tail)) :][:most]
            return Part(content, begins, begins + len(content), max(0, begins - offset))

    def whole(self) -> bytes:
        """With a line where something is missing."""
        with self._lock:
            tail = self._kept_tail()
            lost = self.total - len(self._head) - len(tail)
            between = b"\n[%d bytes of the output were not kept]\n" % lost if lost > 0 else b""
            return bytes(self._head) + between + tail

    def last_line(self) -> str:
        with self._lock:
            end = bytes((self._tail or self._head)[-_LAST:])
        lines = end.decode("utf-8", "replace").replace("\r", "\n").split("\n")
        return next((line for line in reversed(lines) if line.strip()), "")

    def _kept_tail(self) -> bytes:
        return bytes(self._tail[-self._half :])
