"""What GitLab passes over when it looks for commands inside a paragraph: code between backticks, and HTML that begins
and ends on lines of its own.

Both are found from left to right, each up to the first thing that closes it, in time that grows with the text alone.
Pure.
"""

import re
from bisect import bisect_left

CLOSING = re.compile(r"\n</")


class Skips:
    """Of one paragraph."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._brackets = [found.start() for found in re.finditer(">", text)]
        self._closings: list[tuple[int, int]] = []
        for found in CLOSING.finditer(text):
            if (end := self._bracket(found.end())) is not None and text[end + 1 : end + 2] in ("", "\n"):
                self._closings.append((found.start(), end + 1))

    def end(self, start: int) -> int | None:
        """Of what begins at a backtick, or at a `<` with which a line begins; None if nothing does."""
        return self._code(start) if self._text[start] == "`" else self._markup(start)

    def _code(self, start: int) -> int | None:
        end = self._text.find("`", start + 2)  # at least one character is between them
        return end + 1 if end >= 0 else None

    def _markup(self, start: int) -> int | None:
        opened = self._bracket(start + 1)
        if opened is None or self._text[opened + 1 : opened + 2] != "\n":
            return None
        at = bisect_left(self._closings, (opened + 3, 0))  # again, at least one character
        return self._closings[at][1] if at < len(self._closings) else None

    def _bracket(self, start: int) -> int | None:
        """The first `>` from there on, unless it stands there itself."""
        at = bisect_left(self._brackets, start)
        found = self._brackets[at] if at < len(self._brackets) else None
        return None if found == start else found
