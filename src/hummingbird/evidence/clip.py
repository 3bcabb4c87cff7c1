"""The beginning and the end of a text that comes in pieces, with the numbers of its lines.

Holds what it was told to hold, however long the text is. Knows nothing of where the text comes from.
"""

from hummingbird.evidence.regions import Line
from hummingbird.evidence.reports.xml_text import uncoloured

CUT = "…"


class Clip:
    def __init__(self, head: int, tail: int) -> None:
        self._head_room, self._tail_room = head, tail
        self._head = ""
        self._tail = ""
        self._left_out = 0
        self._lines_left_out = 0
        self._first = 0

    def add(self, text: str, line: int) -> None:
        self._first = self._first or line
        taken, rest = text[: self._head_room - len(self._head)], text[max(0, self._head_room - len(self._head)) :]
        self._head += taken
        if rest:
            kept = (self._tail + rest)[-self._tail_room :] if self._tail_room else ""
            gone = len(self._tail) + len(rest) - len(kept)
            self._lines_left_out += self._tail.count("\n") + rest.count("\n") - kept.count("\n")
            self._left_out += gone
            self._tail = kept

    def lines(self) -> tuple[Line, ...]:
        """Without colours and without blank lines; a line that is not whole carries a mark."""
        return tuple(line for line in self._numbered() if line.text.strip())

    def _numbered(self) -> list[Line]:
        if not self._left_out:
            return _lines(self._head + self._tail, self._first)
        head, tail = self._head.split("\n"), self._tail.split("\n")
        after = self._first + len(head) - 1 + self._lines_left_out
        head[-1] = head[-1] + CUT if head[-1] else ""
        tail[0] = CUT + tail[0] if tail[0] else ""
        return [*_lines("\n".join(head), self._first), *_lines("\n".join(tail), after)]


def _lines(text: str, first: int) -> list[Line]:
    return [Line(number, uncoloured(line).rstrip()) for number, line in enumerate(text.split("\n"), first)]
