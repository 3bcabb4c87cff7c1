"""Judges a preview by a label: which marked lines can be read in it. Knows nothing of who made the preview.

The definition, which the labels were published with:

- hit: at least one label line is in the preview; recall: the fraction that is; full: all are; verbatim: every marked
  block is there in one piece.
- Both sides lose ANSI codes, GitHub's time stamps and `##[error]`-like tags, and runs of blanks become one. A carriage
  return ends a line. The preview may also number its lines (`123: `, `123| `).
- A label line shorter than 24 characters has to be a whole line of the preview, a longer one may be part of a line,
  and of one beyond 240 characters the first 200 are enough.
- Bytes of a preview beyond the budget are cut off before it is judged.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

WHOLE_BELOW = 24
LONG, ENOUGH = 240, 200

_ESCAPE = re.compile(
    r"\x1b\[[0-9;?]*[ -/]*[@-~]"  # colours and cursor movements
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles and links
    r"|\x1b[()][A-Z0-9]|\x1b[=>]"  # character sets and keypads
)
# In some labels the escape character was lost when the text was copied; `[0m` and `[K` are what is left.
_ESCAPE_LEFTOVER = re.compile(r"\[(?:\d{1,3}(?:;\d{1,3})*)?[mK](?![A-Za-z0-9])")
_STAMP = re.compile(
    r"\A(?:[\w .()/-]{1,60}\t[\w .()/:-]{1,80}\t)?"  # job and step, as `gh run view --log` prints them
    r"\ufeff?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z ?"
)
_TAG = re.compile(r"##\[[a-z-]+\]")
_NUMBER = re.compile(r"\A\s*L?\d{1,7}\s?[:|>│]\s?")
_BREAK = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Score:
    hit: bool
    recall: float
    full: bool
    verbatim: bool


def lines_of(text: str) -> list[str]:
    return _BREAK.split(text)


def plain(line: str) -> str:
    """The line as both sides are compared."""
    line = _ESCAPE_LEFTOVER.sub("", _ESCAPE.sub("", line))
    return " ".join(_TAG.sub("", _STAMP.sub("", line)).split())


def unnumbered(line: str) -> str:
    line = _ESCAPE.sub("", line)
    return line[number.end() :] if (number := _NUMBER.match(line)) else line


class Page:
    """A preview ready to be searched: as it is, and without the line numbers it may show."""

    def __init__(self, preview: str) -> None:
        shown = [plain(line) for line in lines_of(preview)]
        bare = [plain(unnumbered(line)) for line in lines_of(preview)]
        self._whole = {*shown, *bare} - {""}
        self._texts = ("\n".join(filter(None, shown)), "\n".join(filter(None, bare)))

    def has(self, line: str) -> bool:
        if line in self._whole:
            return True
        if len(line) < WHOLE_BELOW:
            return False
        part = line[:ENOUGH].rstrip() if len(line) > LONG else line
        return any(part in text for text in self._texts)

    def contains(self, line: str) -> bool:
        """Tell whether the line stands anywhere, however short it is."""
        return any(line[:ENOUGH].rstrip() in text for text in self._texts)

    def has_block(self, block: str) -> bool:
        wanted = "\n".join(filter(None, map(plain, lines_of(block))))
        return any(wanted in text for text in self._texts)


def within(text: str, budget: int) -> str:
    """What of a preview counts: as much as the budget holds, cut between characters."""
    raw = text.encode("utf-8", "replace")
    return text if len(raw) <= budget else raw[:budget].decode("utf-8", "ignore")


def found(lines: Iterable[str], page: Page) -> int:
    return sum(map(page.has, lines))


def score(lines: Sequence[str], blocks: Iterable[str], preview: str) -> Score:
    page = Page(preview)
    count = found(lines, page)
    verbatim = all(map(page.has_block, filter(str.strip, blocks)))
    return Score(count > 0, count / len(lines), count == len(lines), verbatim)
