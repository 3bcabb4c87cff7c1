"""What a server writes, cut into messages: one a line, and no line is held that is longer than we allow.

Pure. A line that is no message is told apart from one that is only badly encoded, which is read all the same.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

_END_BYTES = 512
# the id only where it cannot be part of a result: first in the object, or last
_FIRST = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,18})\s*,')
_LAST = re.compile(rb',\s*"id"\s*:\s*(\d{1,18})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')


@dataclass(frozen=True, slots=True)
class Oversized:
    """A line that was thrown away. `answers`: the request it answered, where that could be told."""

    answers: int | None


class Lines:
    """Feed it chunks of any size."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._chunks: list[bytes] = []
        self._size = 0
        self._head = self._tail = b""

    def feed(self, chunk: bytes) -> list[bytes | Oversized]:
        *whole, rest = chunk.split(b"\n")
        found: list[bytes | Oversized] = []
        for piece in whole:
            self._add(piece)
            if (line := self._taken()) != b"":
                found.append(line)
        self._add(rest)
        return found

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= self._limit:
            self._chunks.append(piece)
            return
        self._head = (self._head + b"".join(self._chunks) + piece)[:_END_BYTES]
        self._tail = (self._tail + b"".join(self._chunks)[-_END_BYTES:] + piece)[-_END_BYTES:]
        self._chunks = []

    def _taken(self) -> bytes | Oversized:
        line, ends, size = b"".join(self._chunks).strip(), (self._head, self._tail), self._size
        self._chunks, self._size, self._head, self._tail = [], 0, b"", b""
        if size <= self._limit:
            return line
        answered = _FIRST.match(ends[0]) or _LAST.search(ends[1])
        return Oversized(int(answered[1]) if answered else None)


def lenient(line: bytes) -> Any:
    """JSON that strict readers refuse for its encoding: invalid UTF-8, halves of characters. Raises ValueError."""
    try:
        return json.loads(line.decode("utf-8", "replace"))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
