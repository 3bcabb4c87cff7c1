"""A server's words, made fit for our sentences, a terminal and a model: no control characters, bounded, masked."""

from collections.abc import Callable

from hummingbird.adapters.mcp.limits import QUOTED_CHARS, SENTENCES, STDERR_BYTES
from hummingbird.domain.text import plain, shortened


def printable(text: str) -> str:
    """Without what terminals obey and people do not see; tabs and newlines stay."""
    return "".join(each for each in plain(text) if each in "\n\t" or each.isprintable())


def line(text: str, chars: int = QUOTED_CHARS) -> str:
    return shortened(printable(text), chars)


class LastWords:
    """The end of what a program wrote on its standard error."""

    def __init__(self) -> None:
        self._kept = b""
        self._cut = False

    def feed(self, chunk: bytes) -> None:
        kept = self._kept + chunk
        self._cut = self._cut or len(kept) > STDERR_BYTES
        self._kept = kept[-STDERR_BYTES:]

    def last_line(self) -> str:
        """Whole, so that it can be masked: of a line that was cut nothing is known."""
        kept = self._kept.partition(b"\n")[2] if self._cut else self._kept
        lines = [each for each in kept.decode("utf-8", "replace").splitlines() if each.strip()]
        return lines[-1] if lines else ""


class Trouble:
    """What somebody should know about one server: sentences, each once, masked and bounded in number."""

    def __init__(self, mask: Callable[[str], str]) -> None:
        self._mask = mask
        self._sentences: dict[str, None] = {}

    @property
    def sentences(self) -> tuple[str, ...]:
        return tuple(self._sentences)

    def tell(self, sentence: str) -> None:
        if len(self._sentences) < SENTENCES:
            self._sentences[self._mask(sentence)] = None

    def quoted(self, text: str, chars: int = QUOTED_CHARS) -> str:
        """Somebody else's words for a sentence of ours: masked before they are cut, or half a secret would show."""
        return line(self._mask(plain(text)), chars)
