"""Names for outputs in the sandbox (T4): /tmp/data/_out/NAME_N.ext, one count for all of them. A number is used once,
whoever else puts files there and however often the sandbox was brought back."""

import re
from collections.abc import Iterable

from hummingbird.domain.journal import Entry, ToolFinished
from hummingbird.domain.limits import SUFFIX_CHARS
from hummingbird.ports.sandbox import SPILLED, Sandbox

DIGITS = 9
_HIGHEST = rf"ls -1A {SPILLED} 2>/dev/null | sed -n 's/^.*_\([0-9]\{{1,{DIGITS}\}}\)\..*$/\1/p' | sort -n | tail -n 1"
_MENTIONED = re.compile(rf"{SPILLED}/\w+_([0-9]{{1,{DIGITS}}})\.", re.ASCII)


class Shelf:
    """`last`: the highest number that is taken already, though its file may be gone."""

    def __init__(self, last: int = 0) -> None:
        self._last = last

    async def path(self, sandbox: Sandbox, name: str, suffix: str) -> str:
        """A path that nothing has."""
        found = (await sandbox.exec(_HIGHEST)).stdout.strip()  # commands may have put something there
        present = int(found) if found.isdigit() and len(found) <= DIGITS else 0
        self._last = max(self._last, present) + 1
        return f"{SPILLED}/{_word(name)}_{self._last}.{ending(suffix)}"


def ending(suffix: str) -> str:
    """A suffix that is only that: `tar.gz`, `log`."""
    kept = re.sub(r"[^A-Za-z0-9.]", "", suffix)
    return re.sub(r"\.+", ".", kept)[:SUFFIX_CHARS].strip(".") or "txt"


def taken(entries: Iterable[Entry]) -> int:
    """The highest number that a session's results speak of: a file that the model knows must not become another."""
    texts = (entry.text for entry in entries if isinstance(entry, ToolFinished) and SPILLED in entry.text)
    return max((int(number) for text in texts for number in _MENTIONED.findall(text)), default=0)


def _word(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", name) or "output"
