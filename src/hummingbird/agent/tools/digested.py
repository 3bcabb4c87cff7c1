"""Which lines came from sources into the sandbox, known again by their digests (N6).

A model sees a long log through commands, and a command can print anything. So each line that streams by on its way into
a file is remembered as a number of 64 bits, in the order of the lines: enough to say later whether a line that one
printed stands in what was fetched, and where. Holds no text. What an earlier process fetched is not known here.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence

from hummingbird.domain.citation_limits import DIGESTED_LINE_BYTES, DIGESTED_LINES
from hummingbird.evidence.citations.diffed import Stretch, is_diff, stretches

_UNKNOWN = 0  # of a line that is too long to be known again


class DigestedLines:
    """Of one run. `full`: there was more than fits, so that not every line is known."""

    def __init__(self, most: int = DIGESTED_LINES) -> None:
        self.room = most
        self._outputs: list[Output] = []
        self.full = False

    def output(self) -> "Output":
        """A new one, to be fed as it comes by."""
        made = Output(self)
        self._outputs.append(made)
        return made

    @property
    def stretches(self) -> Sequence[Stretch]:
        return [stretch for one in self._outputs for stretch in one.stretches]

    def held(self, lines: Iterable[str]) -> Mapping[str, frozenset[int]]:
        wanted: dict[int, list[str]] = {}
        for line in lines:
            wanted.setdefault(hash(line.encode("utf-8", "replace")), []).append(line)
        found: dict[str, set[int]] = {}
        for output in self._outputs if wanted else ():
            for number, digest in output.among(wanted.keys()):
                for line in wanted[digest]:
                    found.setdefault(line, set()).add(number)
        return {line: frozenset(numbers) for line, numbers in found.items()}


class Output:
    """One output while it comes by."""

    def __init__(self, lines: DigestedLines) -> None:
        self._lines = lines
        self._rest = b""  # of a line that is not complete yet
        self._too_long = False
        self._diff: bool | None = None
        self._digests = array("q")
        self.stretches: list[Stretch] = []

    def among(self, wanted: Iterable[int]) -> list[tuple[int, int]]:
        """Numbers of lines, each with that of the digests by which it is wanted."""
        known = frozenset(wanted)
        return [(number, digest) for number, digest in enumerate(self._digests, 1) if digest in known]

    def feed(self, chunk: bytes) -> None:
        last = chunk.rfind(b"\n")
        if last >= 0:
            self._take(self._rest + chunk[:last])
            self._rest = b""
        self._rest += chunk[last + 1 :]
        if len(self._rest) > DIGESTED_LINE_BYTES:
            self._rest, self._too_long = b"", True

    def end(self) -> None:
        if self._rest or self._too_long:
            self._take(self._rest)
        self._rest = b""

    def _take(self, block: bytes) -> None:
        """Whole lines, the last without its end."""
        digests = array("q", map(hash, block.split(b"\n")))
        if self._too_long:
            digests[0], self._too_long = _UNKNOWN, False
        if len(digests) > self._lines.room:
            self._lines.full = True
            return
        self._lines.room -= len(digests)
        self._digests += digests
        if self._diff is None:
            self._diff = is_diff(block[:64].decode("utf-8", "replace"))
        if self._diff:
            self.stretches += stretches(block.decode("utf-8", "replace").split("\n"))
