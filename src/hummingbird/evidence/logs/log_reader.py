"""Read a log once, in pieces of any size, and keep the lines that may be worth a closer look.

Kept are the lines around words of trouble (of lines that say the same, the first few), the last lines before a step
failed, and the first and last lines of the log. Everything else is counted and forgotten, so memory does not grow with
the log. `line_scores` decides later which lines matter.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from statistics import median

from ahocorasick_rs import BytesAhoCorasick, Implementation

from hummingbird.core.limits import LOG_BLOCK_BYTES, LOG_KEPT_BYTES, LOG_LINE_BYTES

# Cleaning one line: remove what terminals, runners and build tools put around the text.
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?:]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()*+][A-Za-z0-9]|[=>78cDEHMNOZ])")
_CONTROLS = re.compile(r"[\x00-\x07\x0e-\x1a\x7f]")
_WRITTEN_COLOURS = re.compile(r"\^\[\[[0-9;]{0,12}[mK]")  # whose escape character was written as two
# Only timestamps that runners write: an application's own timestamp is part of its message.
_STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"
_PREFIX = re.compile(
    r"\ufeff?(?:"
    # GitHub (with job and step before it), GitLab (with the stream behind it), kubectl
    rf"(?:[\w .()/-]{{1,60}}\t[\w .()/:-]{{1,80}}\t)?\ufeff?{_STAMP}(?: [0-9a-f]{{2}}[OE](?:[ +]|$))? ?"
    r"|\[step-[\w-]{1,60}\] "  # tkn
    r"|\[[\w-]{1,60} : [\w-]{1,60}\] "  # tkn, a whole pipeline
    r"|(?:DEBUG|INFO|WARNING|ERROR) \w+\.py:\d+: +"  # mock
    r"|\[[ \d]{1,6}\.\d{6}\] "  # the kernel
    r")"
)
_MARKERS = re.compile(r"(?:section_(?:start|end):\d+:[\w.-]+(?:\[[^\]]*\])?|travis_(?:fold|time):[\w:=.,-]+)")
# ANSI codes for red, also bold or bright: build tools print errors in it.
RED_CODE = re.compile(rb"(?:\x1b|\^\[)\[(?:\d+;)*(?:31|91)(?:;\d+)*m")
GREEN_CODE = re.compile(rb"(?:\x1b|\^\[)\[(?:\d+;)*(?:32|92)(?:;\d+)*m")
_MAX_OVERWRITES = 3
_PROGRESS = re.compile(r"\d%|\d+/\d+|\.\.\.$")


def clean_log_line(raw: bytes) -> str:
    """Return the text of a line without escapes and prefixes; of an overwritten line (progress bar), its last state."""
    text = raw.decode("utf-8", "replace").rstrip()
    if not text.isprintable():
        text = _last_written(text) if "\r" in text else _strip_escapes(text)
    elif "^[[" in text:
        text = _strip_escapes(text)
    head = text[:1]
    if head.isdigit() or head in "[DIWE\ufeff" or "\t" in text[:64]:
        text = _strip_prefixes(text)
    return text.rstrip()


def _last_written(text: str) -> str:
    """Return what a line with carriage returns shows at the end.

    Section and fold markers end with a carriage return and have the title behind it. Where two or three different
    texts were written over each other, return all of them, each on a line of its own.
    """
    written: list[str] = []  # last one first
    for piece in dict.fromkeys(reversed(text.split("\r"))):
        plain = _MARKERS.sub("", _strip_prefixes(_strip_escapes(piece))).rstrip()
        if plain.strip() and plain not in written:
            written.append(plain)
        if len(written) > _MAX_OVERWRITES:
            return written[0]
    if any(_PROGRESS.search(piece) for piece in written):
        return written[0]
    return "\n".join(reversed(written))


def _strip_escapes(text: str) -> str:
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    if not text.isprintable():
        text = _CONTROLS.sub("", text)
    if "^[[" in text:
        text = _WRITTEN_COLOURS.sub("", text)
    return _apply_backspaces(text) if "\x08" in text else text


def _apply_backspaces(text: str) -> str:
    """Delete the letter before each backspace; at the start of the line there is none."""
    first, *others = text.split("\x08")
    kept = list(first)
    for piece in others:
        del kept[-1:]
        kept += piece
    return "".join(kept)


def _strip_prefixes(text: str) -> str:
    """Remove up to two prefixes: a runner's timestamp before a tool's own prefix."""
    for _ in range(2):
        found = _PREFIX.match(text)
        if found is None or found.end() == 0:
            return text
        text = text[found.end() :]
    return text


# In lower case; a line without one of these is no border of a step. None may end after a word of trouble such as
# "fail": of two overlapping literals only the one that ends first is found.
BORDER_LITERALS = (
    b"exited with", b"exit code", b"exit status", b"job f", b"marked build as", b"finished: ",
    b"build has been stopped", b"no output has been received", b"job exceeded the maximum", b"##[error]process",
)  # fmt: skip
MAX_BORDERS = 4096
_STEP_FAILED = re.compile(
    r"exited with [1-9]\d*\.?$|[Pp]rocess completed with exit code [1-9]|^ERROR: Job failed"
    r"|marked build as failure|Finished: FAILURE|[Yy]our build has been stopped"
    r"|[Nn]o output has been received in the last|job exceeded the maximum"
    r"|^command terminated with exit code [1-9]"
)
_STEP_SUCCEEDED = re.compile(r'^The command ".*exited with 0\.?$|^" exited with 0\.?$')


@dataclass(slots=True)
class LogSteps:
    """Numbers of the lines where steps failed or succeeded, as far as the log says, in ascending order."""

    failed: list[int] = field(default_factory=list)
    succeeded: list[int] = field(default_factory=list)

    def add_line(self, number: int, text: str) -> bool:
        """Record the line if it ends a step; return True if the step failed. May be called twice for one line."""
        if self.failed[-1:] == [number]:
            return True
        if _STEP_FAILED.search(text):
            self.failed.append(number)
            return True
        if _STEP_SUCCEEDED.search(text):
            self.succeeded.append(number)
        return False

    def trim(self) -> None:
        """Keep only the first and last entries, so that a log of nothing but steps needs little memory."""
        self.failed, self.succeeded = _keep_first_and_last(self.failed), _keep_first_and_last(self.succeeded)

    def ends(self, lines: int) -> list[int]:
        """Return where failed steps end, or the last line if the log does not say."""
        return self.failed or [lines]

    def begins(self, ends: Sequence[int]) -> list[int]:
        """Return for each end the end of the last successful step before it, or 0."""
        places = [bisect_left(self.succeeded, end) for end in ends]
        return [self.succeeded[place - 1] if place else 0 for place in places]


def _keep_first_and_last(numbers: list[int], most: int = MAX_BORDERS) -> list[int]:
    return numbers if len(numbers) <= most else numbers[: most // 4] + numbers[-most // 4 :]


BEFORE, AFTER = 6, 14  # lines kept around trouble
MAX_FRAMES = 80  # of a stack trace that is longer, kept behind those
FRAME_BYTES = 120
_FRAME_LINE = re.compile(rb"(?:^|\s)at [\w.$<>/@ ]+\(|^\s*File \"|:in [`']|^\s+at \S+:\d+:\d+")
STEP_TAIL = 60  # lines kept before the end of a failed step
END_TAIL = 60
HEAD_LINES = 12
MAX_REPEATS = 3  # of lines that say the same
KEY_BYTES = 200
LINE_OVERHEAD = 200  # bytes that Python needs for a line in a dictionary
MAX_KEYS = 20_000  # different messages that are counted
HEAD_LETTERS = 20  # that lines of trouble begin with alike
STEPS_KEPT = 100  # failed ones whose last lines stay when memory runs out
COMMON = 50  # lines that begin alike of which no more are kept when memory runs out
_NO_WORDS = bytes(code for code in range(128) if not chr(code).isalpha())

STRONG_TROUBLE_WORDS = (
    "error", "fail", "exception", "fatal", "panic", "traceback", "assert", "not ok", "segmentation", "reason:",
    "✗", "✖", "✘", "❌", "✕",
)  # fmt: skip
TROUBLE_WORDS = (
    *STRONG_TROUBLE_WORDS, "abort", "killed", "not found", "no such", "cannot", "can't", "could not", "couldn't",
    "unable to",
    "undefined", "unexpected", "invalid", "denied", "refused", "timed out", "timeout", "err!", "expected", "mismatch",
    "missing", "core dumped", "violation", "offense", "not defined", "not declared", "conflict", "unresolved",
    "unknown", "incompatible", "out of memory", "no space left", "crashed", "⨯", "●", "does not", "doesn't", "must ",
    "requires", "no rule", "***", "bug: ", "oops", "call trace", "kasan", "ubsan", "stall", "lockup", "warning: cpu",
    "blocked for", "test-unexpected", "process-crash", "sanitizer", "data race", "leaked",
    "^[[31", "^[[91", "^[[1;31", "^[[0;31", "\x1b[31", "\x1b[91", "\x1b[1;31", "\x1b[0;31", "\x1b[01;31", "\x1b[31;1",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CandidateLines:
    """The lines that a reader kept (raw, by number from 1), how often their messages occurred, and the steps."""

    lines: dict[int, bytes]
    repeat_counts: dict[int, int]  # number of a line with trouble → how many lines of the log say the same
    strong: set[int]  # those of them with one of `STRONG_TROUBLE_WORDS`
    messages: dict[int, bytes]  # the letters of each of them
    steps: LogSteps
    total: int
    size: int


def _count_frames(lines: Sequence[bytes], at: int) -> int:
    """Count the stack frames from a line on, if the line before is one, too."""
    count = 0
    while count < MAX_FRAMES and at + count < len(lines) and is_frame_line(lines[at + count]):
        count += 1
    return count


def is_frame_line(line: bytes) -> bool:
    """Tell whether a raw line looks like a frame of a stack trace."""
    head = line[:FRAME_BYTES]
    return (b"at " in head or b'File "' in head or b":in " in head) and _FRAME_LINE.search(head) is not None


@cache
def _trouble_automaton() -> BytesAhoCorasick:
    return BytesAhoCorasick(
        [*(word.encode() for word in TROUBLE_WORDS), *BORDER_LITERALS], implementation=Implementation.DFA
    )


class LogReader:
    """Feed it the whole log, then call `finish`."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._skipping = False
        self._total = 0
        self._size = 0
        self._steps = LogSteps()
        self._lines: dict[int, bytes] = {}
        self._held = 0
        self._counts: dict[bytes, int] = {}
        self._keys: dict[int, bytes] = {}
        self._strong: set[int] = set()
        self._before: list[bytes] = []  # the lines just before the block that is being read
        self._wanted_to = HEAD_LINES

    def feed(self, chunk: bytes) -> None:
        """Add a chunk. Blocks, and so the kept lines, do not depend on how a log is cut into chunks."""
        self._size += len(chunk)
        for at in range(0, len(chunk), LOG_BLOCK_BYTES):
            self._append(chunk[at : at + LOG_BLOCK_BYTES])

    def _append(self, piece: bytes) -> None:
        if self._skipping:
            _, newline, piece = piece.partition(b"\n")
            if not newline:
                return
            self._skipping = False
        self._rest += piece
        while len(self._rest) >= LOG_BLOCK_BYTES:
            self._scan_next_block()

    def finish(self) -> CandidateLines:
        """Return what was kept. A last line without a line feed counts, so nothing may be fed afterwards."""
        if self._rest:
            self._scan_block(bytes(self._rest).removesuffix(b"\n"))
            self._rest.clear()
        self._lines.update(enumerate(self._before, self._total - len(self._before) + 1))
        messages = {number: key for number, key in self._keys.items() if number in self._lines}
        same = {number: self._counts.get(key, 1) for number, key in messages.items()}
        return CandidateLines(self._lines, same, self._strong, messages, self._steps, self._total, self._size)

    def _scan_next_block(self) -> None:
        """Scan as many whole lines as fit into a block, or the beginning of a line that is longer than a block."""
        cut = self._rest.rfind(b"\n", 0, LOG_BLOCK_BYTES)
        block = bytes(memoryview(self._rest)[: cut if cut >= 0 else LOG_LINE_BYTES])
        if cut < 0:
            cut = self._rest.find(b"\n", LOG_BLOCK_BYTES)
        if cut >= 0:
            del self._rest[: cut + 1]
        else:
            self._rest.clear()
            self._skipping = True
        self._scan_block(block)

    def _scan_block(self, block: bytes) -> None:
        lines = block.split(b"\n")
        first = self._total + 1
        wanted = [(first, self._wanted_to)] if self._wanted_to >= first else []
        at = position = done_to = 0
        news = False
        for which, start, _ in _trouble_automaton().find_matches_as_indexes(block.lower()):
            if start < done_to and which < len(TROUBLE_WORDS):
                if news and which < len(STRONG_TROUBLE_WORDS):
                    self._strong.add(first + at)
                continue  # this line was seen already
            at += block.count(b"\n", position, start)
            position = start
            if which >= len(TROUBLE_WORDS):
                if self._steps.add_line(first + at, clean_log_line(lines[at][:LOG_LINE_BYTES])):
                    wanted.append((first + at - STEP_TAIL, first + at + 1))
                continue
            done_to = block.find(b"\n", start)
            if done_to < 0:
                done_to = len(block)
            news = self._is_new_message(first + at, lines[at])
            if news:
                if which < len(STRONG_TROUBLE_WORDS):
                    self._strong.add(first + at)
                wanted.append((first + at - BEFORE, first + at + AFTER + _count_frames(lines, at + AFTER)))
        self._keep_ranges(wanted, first, lines)
        self._total += len(lines)
        self._before = (self._before + [line[:LOG_LINE_BYTES] for line in lines[-END_TAIL:]])[-END_TAIL:]
        self._steps.trim()

    def _is_new_message(self, number: int, line: bytes) -> bool:
        """Return whether the line is one of the first few that differ only in their numbers."""
        key = line[:KEY_BYTES].translate(None, _NO_WORDS)
        count = self._counts.get(key, 0) + 1
        if count > 1 or len(self._counts) < MAX_KEYS:
            self._counts[key] = count
        if count > MAX_REPEATS:
            return False
        self._keys[number] = key
        return True

    def _keep_ranges(self, wanted: list[tuple[int, int]], first: int, lines: list[bytes]) -> None:
        before, reached = first - len(self._before), 0
        for start, stop in sorted(wanted):
            low = max(start, before, reached)
            for number in range(low, min(stop, first - 1) + 1):
                if number not in self._lines:
                    self._store_lines(number, self._before[number - before : number - before + 1])
            if stop >= first:
                low = max(low, first)
                self._store_lines(low, lines[low - first : stop - first + 1])
            reached = max(reached, stop + 1)
            self._wanted_to = max(self._wanted_to, stop)
        if self._held > LOG_KEPT_BYTES:
            self._drop_common()
            if self._held > LOG_KEPT_BYTES // 2:
                self._drop_middle()

    def _store_lines(self, number: int, lines: list[bytes]) -> None:
        size = sum(map(len, lines))
        if size > LOG_LINE_BYTES:
            lines = [line[:LOG_LINE_BYTES] for line in lines]
            size = sum(map(len, lines))
        self._lines.update(enumerate(lines, number))
        self._held += size + len(lines) * LINE_OVERHEAD

    def _drop_common(self) -> None:
        """Drop the lines around trouble that begins as much other trouble does: what is rare may be the cause."""
        common = Counter(key[:HEAD_LETTERS] for key in self._keys.values())
        most = max(COMMON, median(common[key[:HEAD_LETTERS]] for key in self._keys.values()) if self._keys else 0)
        seen: Counter[bytes] = Counter()
        near: set[int] = set()
        for number, key in sorted(self._keys.items()):
            head = key[:HEAD_LETTERS]
            seen[head] += 1
            if common[head] < most or seen[head] <= COMMON:
                near.update(range(number - BEFORE, number + AFTER + 1))
        for end in _keep_first_and_last(self._steps.failed, STEPS_KEPT):
            near.update(range(end - STEP_TAIL, end + 2))
        for number in [number for number in self._lines if number not in near and number > HEAD_LINES]:
            self._held -= len(self._lines.pop(number)) + LINE_OVERHEAD
        self._forget_dropped()

    def _forget_dropped(self) -> None:
        self._keys = {number: key for number, key in self._keys.items() if number in self._lines}
        self._strong &= self._lines.keys()
        self._steps.trim()

    def _drop_middle(self) -> None:
        """Drop the middle half of the kept lines: root causes come early, and what ended the job comes late."""
        numbers = sorted(self._lines)
        for number in numbers[len(numbers) // 4 : len(numbers) * 3 // 4]:
            self._held -= len(self._lines.pop(number)) + LINE_OVERHEAD
        self._forget_dropped()
