"""The same job's last green log: what it said too is no news in the red one.

Holds a fingerprint of each line, numbers aside, in bounded memory. Knows nothing of what lines mean.
"""

from collections.abc import Sequence

from hummingbird.domain.limits import BASELINE_LINES
from hummingbird.evidence.logs.cleaning import cleaned

_NEW, _KNOWN = 1.0, 3.0
_NO_WORDS = {code: None for code in range(128) if not chr(code).isalpha()}
_CHARS = 400


class Baseline:
    """Feed it all of the green log."""

    def __init__(self) -> None:
        self._known: set[int] = set()
        self._rest = b""

    @classmethod
    def of(cls, text: str) -> "Baseline":
        baseline = cls()
        baseline.feed(text.encode("utf-8", "replace") + b"\n")
        return baseline

    def feed(self, chunk: bytes) -> None:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        self._rest = self._rest[: 4 * _CHARS]
        for line in lines:
            if len(self._known) < BASELINE_LINES:
                self._known.add(hash(_words(cleaned(line[: 4 * _CHARS]))))

    def has(self, text: str) -> bool:
        """A line of the red log, cleaned; one without a letter is nowhere."""
        return bool(words := _words(text)) and hash(words) in self._known

    def weighed(self, texts: Sequence[str], values: Sequence[float]) -> list[float]:
        return [
            value - _KNOWN if hash(_words(text)) in self._known else value + _NEW
            for text, value in zip(texts, values, strict=True)
        ]


def _words(text: str) -> str:
    return text[:_CHARS].translate(_NO_WORDS)
