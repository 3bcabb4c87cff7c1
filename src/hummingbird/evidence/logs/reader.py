"""Reads a log once, in pieces of any size, and keeps the lines that a closer look may be worth (V1).

What is kept: lines around words of trouble (of lines that say the same, the first few and the last), the last lines
before a step failed, the first lines and the last ones. All else is counted and forgotten, so memory does not grow
with the log. Whether a line matters is decided later, and not here.
"""

from dataclasses import dataclass
from functools import cache

from ahocorasick_rs import BytesAhoCorasick, Implementation

from hummingbird.domain.limits import LOG_BLOCK_BYTES, LOG_KEPT_BYTES, LOG_LINE_BYTES
from hummingbird.evidence.logs.cleaning import cleaned
from hummingbird.evidence.logs.steps import LITERALS, Steps

BEFORE, AFTER = 6, 14  # lines kept around trouble
STEP_TAIL = 60  # before a step that failed
END_TAIL = 60
HEAD = 12
SAME = 3  # of lines that say the same
KEY_BYTES = 200
LINE_OVERHEAD = 200  # that Python needs for a line in a dictionary
KEYS = 20_000  # different things that trouble is told apart by
_NO_WORDS = bytes(code for code in range(128) if not chr(code).isalpha())

STRONG = (
    "error", "fail", "exception", "fatal", "panic", "traceback", "assert", "not ok", "segmentation", "reason:",
    "✗", "✖", "✘", "❌", "✕",
)  # fmt: skip
TROUBLE = (
    *STRONG, "abort", "killed", "not found", "no such", "cannot", "can't", "could not", "couldn't", "unable to",
    "undefined", "unexpected", "invalid", "denied", "refused", "timed out", "timeout", "err!", "expected", "mismatch",
    "missing", "core dumped", "violation", "offense", "not defined", "not declared", "conflict", "unresolved",
    "unknown", "incompatible", "out of memory", "no space left", "crashed", "⨯", "●", "does not", "doesn't", "must ",
    "requires",
    "\x1b[31", "\x1b[91", "\x1b[1;31", "\x1b[0;31", "\x1b[01;31", "\x1b[31;1",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Kept:
    """Raw lines by number (from 1), how often what a line says occurred, and the borders of steps."""

    lines: dict[int, bytes]
    same: dict[int, int]  # number of a line with trouble → how many such lines the log has
    strong: set[int]  # those of them that say so in no uncertain words
    steps: Steps
    total: int
    size: int


@cache
def _automaton() -> BytesAhoCorasick:
    return BytesAhoCorasick([*(word.encode() for word in TROUBLE), *LITERALS], implementation=Implementation.DFA)


class Reader:
    """Feed it everything, then ask."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._skipping = False
        self._total = 0
        self._size = 0
        self._steps = Steps()
        self._lines: dict[int, bytes] = {}
        self._held = 0
        self._counts: dict[bytes, int] = {}
        self._keys: dict[int, bytes] = {}
        self._strong: set[int] = set()
        self._before: list[bytes] = []  # the lines just before the block that is being read
        self._wanted_to = HEAD

    def feed(self, chunk: bytes) -> None:
        """Blocks, and so what is kept, are the same however a log is cut into chunks."""
        self._size += len(chunk)
        for at in range(0, len(chunk), LOG_BLOCK_BYTES):
            self._add(chunk[at : at + LOG_BLOCK_BYTES])

    def _add(self, piece: bytes) -> None:
        if self._skipping:
            _, newline, piece = piece.partition(b"\n")
            if not newline:
                return
            self._skipping = False
        self._rest += piece
        while len(self._rest) >= LOG_BLOCK_BYTES:
            self._take()

    def kept(self) -> Kept:
        """A last line without its end counts as one; so nothing may be fed afterwards."""
        if self._rest:
            self._scan(bytes(self._rest).removesuffix(b"\n"))
            self._rest.clear()
        self._lines.update(enumerate(self._before, self._total - len(self._before) + 1))
        same = {number: self._counts.get(key, 1) for number, key in self._keys.items() if number in self._lines}
        return Kept(self._lines, same, self._strong, self._steps, self._total, self._size)

    def _take(self) -> None:
        """Whole lines; of a line that is longer than a block, the beginning."""
        cut = self._rest.rfind(b"\n", 0, LOG_BLOCK_BYTES)
        block = bytes(memoryview(self._rest)[: cut if cut >= 0 else LOG_LINE_BYTES])
        if cut < 0:
            cut = self._rest.find(b"\n", LOG_BLOCK_BYTES)
        if cut >= 0:
            del self._rest[: cut + 1]
        else:
            self._rest.clear()
            self._skipping = True
        self._scan(block)

    def _scan(self, block: bytes) -> None:
        lines = block.split(b"\n")
        first = self._total + 1
        wanted = [(first, self._wanted_to)] if self._wanted_to >= first else []
        at = position = done_to = 0
        news = False
        for which, start, _ in _automaton().find_matches_as_indexes(block.lower()):
            if start < done_to and which < len(TROUBLE):
                if news and which < len(STRONG):
                    self._strong.add(first + at)
                continue  # this line was seen already
            at += block.count(b"\n", position, start)
            position = start
            if which >= len(TROUBLE):
                if self._steps.see(first + at, cleaned(lines[at][:LOG_LINE_BYTES])):
                    wanted.append((first + at - STEP_TAIL, first + at + 1))
                continue
            done_to = block.find(b"\n", start)
            if done_to < 0:
                done_to = len(block)
            news = self._is_news(first + at, lines[at])
            if news:
                if which < len(STRONG):
                    self._strong.add(first + at)
                wanted.append((first + at - BEFORE, first + at + AFTER))
        self._keep(wanted, first, lines)
        self._total += len(lines)
        self._before = (self._before + [line[:LOG_LINE_BYTES] for line in lines[-END_TAIL:]])[-END_TAIL:]
        self._steps.forget()

    def _is_news(self, number: int, line: bytes) -> bool:
        """Lines that say the same but for numbers are news a few times."""
        key = line[:KEY_BYTES].translate(None, _NO_WORDS)
        count = self._counts.get(key, 0) + 1
        if count > 1 or len(self._counts) < KEYS:
            self._counts[key] = count
        if count > SAME:
            return False
        self._keys[number] = key
        return True

    def _keep(self, wanted: list[tuple[int, int]], first: int, lines: list[bytes]) -> None:
        before, reached = first - len(self._before), 0
        for start, stop in sorted(wanted):
            low = max(start, before, reached)
            for number in range(low, min(stop, first - 1) + 1):
                if number not in self._lines:
                    self._hold(number, self._before[number - before : number - before + 1])
            if stop >= first:
                low = max(low, first)
                self._hold(low, lines[low - first : stop - first + 1])
            reached = max(reached, stop + 1)
            self._wanted_to = max(self._wanted_to, stop)
        if self._held > LOG_KEPT_BYTES:
            self._forget()

    def _hold(self, number: int, lines: list[bytes]) -> None:
        size = sum(map(len, lines))
        if size > LOG_LINE_BYTES:
            lines = [line[:LOG_LINE_BYTES] for line in lines]
            size = sum(map(len, lines))
        self._lines.update(enumerate(lines, number))
        self._held += size + len(lines) * LINE_OVERHEAD

    def _forget(self) -> None:
        """The middle half of what is kept: first causes stand early, and what a job died of late."""
        numbers = sorted(self._lines)
        for number in numbers[len(numbers) // 4 : len(numbers) * 3 // 4]:
            self._held -= len(self._lines.pop(number)) + LINE_OVERHEAD
        self._keys = {number: key for number, key in self._keys.items() if number in self._lines}
        self._strong &= self._lines.keys()
        self._steps.forget()
