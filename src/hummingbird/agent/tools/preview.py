"""Preview an output that is too long for the model: a few lines, chosen while the output streams by.

A preview is fed everything and holds little. `HeadTailPreview` chooses by position, `EvidencePreview` by what explains
a failure.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from hummingbird.core.limits import PREVIEW_BYTES

if TYPE_CHECKING:
    from hummingbird.evidence.report_preview import ObjectPreview, ReportPreview

SHORTEST_PIECE = 24  # bytes; a shorter piece of a line is not worth showing


class OutputPreview(Protocol):
    """Chooses the lines of an output that a model sees."""

    def feed(self, chunk: bytes) -> None:
        """Take the next piece, in order; it may end in the middle of a line or of a character."""
        ...

    def text(self, budget_bytes: int) -> str:
        """Return what is worth seeing so far, at most that many bytes and at most PREVIEW_BYTES."""
        ...


PreviewFactory: TypeAlias = Callable[[str], OutputPreview]
"""Creates a preview for an output with this suffix (`log`, `json`, `xml`)."""


class HeadTailPreview:
    """The first and the last lines with their numbers, and which lines are missing between them."""

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
            whole = "\n".join(_number_lines(_split_lines(self._head), 1))
            if len(whole.encode()) <= budget:
                return whole
        mark = (
            f"[… left out: lines {self.lines} to {self.lines} of {self.lines} …]"  # at least as long as the final one
        )
        half = (budget - len(mark.encode()) - 2) // 2
        head = _head_lines(_split_lines(self._head), half)
        tail = _tail_lines(_split_lines(self._tail), self.lines, half)
        first, last = len(head.whole) + 1, self.lines - len(tail.whole)
        mark = f"[… left out: lines {first} to {last} of {self.lines} …]"
        return clip_bytes("\n".join([*head.whole, *head.part, mark, *tail.part, *tail.whole]), budget)


def clip_bytes(text: str, most_bytes: int) -> str:
    """Return as much of the beginning as fits, without half a character."""
    content = text.encode("utf-8", "replace")
    return content.decode() if len(content) <= most_bytes else content[:most_bytes].decode("utf-8", "ignore")


class _FittingLines:
    """Lines that fit, and a piece of the next one if there is room for it."""

    def __init__(self) -> None:
        self.whole: list[str] = []
        self.part: list[str] = []


def _head_lines(lines: Sequence[str], room: int) -> _FittingLines:
    shown = _FittingLines()
    for line in _number_lines(lines, 1):
        if (size := len(line.encode()) + 1) > room:
            if room > SHORTEST_PIECE:
                shown.part = [clip_bytes(line, room - 4) + "…"]
            return shown
        shown.whole.append(line)
        room -= size
    return shown


def _tail_lines(lines: Sequence[str], total: int, room: int) -> _FittingLines:
    shown = _FittingLines()
    for number, line in zip(range(total, 0, -1), reversed(lines), strict=False):
        numbered = f"{number}: {line}"
        if (size := len(numbered.encode()) + 1) > room:
            if room > SHORTEST_PIECE:
                shown.part = [f"{number}: …{_line_end(line, room - len(f'{number}: …'.encode()) - 1)}"]
            return shown
        shown.whole.insert(0, numbered)
        room -= size
    return shown


def _line_end(line: str, most_bytes: int) -> str:
    return line.encode()[-most_bytes:].decode("utf-8", "ignore") if most_bytes > 0 else ""


def _split_lines(content: bytes | bytearray) -> list[str]:
    found = content.decode("utf-8", "replace").split("\n")
    return found if found[-1] else found[:-1]


def _number_lines(lines: Sequence[str], first: int) -> list[str]:
    return [f"{number}: {line}" for number, line in enumerate(lines, first)]


def create_evidence_preview(_suffix: str) -> OutputPreview:
    """Create a preview that detects the kind of output from its first character, because `cat` prints any file."""
    return EvidencePreview()


class EvidencePreview:
    """A preview of what explains a failure.

    Diffs, test reports and Tekton objects are read by their structure, everything else as a log. If nothing stands out,
    head and tail are shown.
    """

    def __init__(self) -> None:
        from hummingbird.evidence import LogPreview  # noqa: PLC0415 - 0.1 s, which a chat need not wait for
        from hummingbird.evidence.diff_preview import DiffPreview  # noqa: PLC0415 - the same

        self._begun = False
        self._structured: ReportPreview | ObjectPreview | None = None
        self._diff = DiffPreview()
        self._log = LogPreview()
        self._plain = HeadTailPreview()

    def feed(self, chunk: bytes) -> None:
        if not self._begun and (said := chunk.lstrip(b"\xef\xbb\xbf \t\r\n")):
            from hummingbird.evidence.report_preview import ObjectPreview, ReportPreview  # noqa: PLC0415 - the same

            self._begun = True
            self._structured = ReportPreview() if said[:1] == b"<" else ObjectPreview() if said[:1] in b"[{" else None
        if self._structured is not None:
            self._structured.feed(chunk)
        self._diff.feed(chunk)
        self._log.feed(chunk)
        self._plain.feed(chunk)

    def text(self, budget_bytes: int) -> str:
        budget = min(budget_bytes, PREVIEW_BYTES)
        if changed := self._diff.text(budget):
            return changed
        if self._structured is not None and self._structured.recognised:
            return self._structured.text(budget)
        return self._log.text(budget, ends=True) if self._log.stands_out else self._plain.text(budget)
