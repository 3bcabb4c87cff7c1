"""Markdown that streams, cut into blocks that can be rendered for themselves (C1).

Each character is looked at once: a block that is complete never changes again, and what is still growing is there as
plain text. Knows where blocks end and nothing of how they look.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from hummingbird.chat.limits import BLOCK_CHARS, FENCE_LINES

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^`\n]*)$")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
_ITEM = re.compile(r" {0,3}(?:[-+*]|\d{1,9}[.)])(?:[ \t]|$)")


class Kind(StrEnum):
    MARKDOWN = "markdown"
    FENCE = "fence"  # the line that opens or closes code
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Block:
    """`language` of code, as its fence names it. `begins`: it is not the continuation of the block before."""

    kind: Kind
    text: str
    language: str = ""
    begins: bool = True


class Blocks:
    """Feed it text; it gives what is complete. `partial` is what is not."""

    def __init__(self) -> None:
        self._line: list[str] = []  # pieces of the last line, which has no end yet
        self._lines: list[str] = []
        self._line_chars = 0
        self._held = 0  # characters in whole lines
        self._fence = ""
        self._language = ""
        self._in_list = False
        self._paused = False  # an empty line, behind which a list may go on
        self._begins = True

    @property
    def partial(self) -> str:
        return "\n".join([*self._lines, "".join(self._line)])

    @property
    def empty(self) -> bool:
        return not self._lines and not self._line and not self._fence

    def feed(self, text: str) -> list[Block]:
        done: list[Block] = []
        *lines, rest = text.split("\n")
        for line in lines:
            self._line.append(line)
            done += self._took(self._line_taken())
        if rest:
            self._line.append(rest)
            self._line_chars += len(rest)
            if self._line_chars > BLOCK_CHARS:
                done += self._cut_short()
        return done

    def end(self) -> list[Block]:
        """What is left. It can be fed with another text afterwards."""
        last = self._line_taken()
        done = self._took(last) if last else []
        done += self._gathered()
        self.__init__()  # type: ignore[misc]  # begins anew
        return done

    def _line_taken(self) -> str:
        line, self._line, self._line_chars = "".join(self._line), [], 0
        return line

    def _took(self, line: str) -> list[Block]:
        if self._fence:
            return self._took_code(line)
        done: list[Block] = []
        if self._paused and line.strip():
            self._paused = False
            if not line.startswith(("  ", "\t")):
                done += self._gathered()
        if fence := _FENCE.match(line.rstrip("\r")):
            return done + self._opened(fence)
        if not line.strip():
            return done + self._at_empty_line()
        if _HEADING.match(line):
            done += self._gathered()
            return [*done, Block(Kind.MARKDOWN, line)]
        self._in_list = self._in_list or bool(_ITEM.match(line) and not self._lines)
        self._keep(line)
        return done + (self._gathered() if self._held > BLOCK_CHARS else [])

    def _at_empty_line(self) -> list[Block]:
        if not self._in_list:
            return self._gathered()
        self._paused = True
        self._keep("")
        return []

    def _opened(self, fence: re.Match[str]) -> list[Block]:
        """Code inside a list item belongs to the list, but is easier to read and to copy at the margin."""
        done = self._gathered()
        words = fence[2].split()
        self._fence, self._language = fence[1], words[0] if words else ""
        return [*done, Block(Kind.FENCE, fence[0].strip(), self._language)]

    def _took_code(self, line: str) -> list[Block]:
        bare = line.strip()
        if bare.startswith(self._fence) and not bare.strip(self._fence[0]):
            done = self._gathered()
            self._fence = self._language = ""
            return [*done, Block(Kind.FENCE, bare, begins=False)]
        self._keep(line)
        return self._gathered() if len(self._lines) >= FENCE_LINES or self._held > BLOCK_CHARS else []

    def _keep(self, line: str) -> None:
        self._lines.append(line)
        self._held += len(line) + 1

    def _gathered(self) -> list[Block]:
        text = "\n".join(self._lines) if self._fence else "\n".join(self._lines).rstrip()
        had = bool(self._lines)
        self._lines, self._held, self._in_list, self._paused = [], 0, False, False
        if self._fence:
            return [Block(Kind.CODE, text, self._language, begins=False)] if had else []
        begins, self._begins = self._begins, True
        return [Block(Kind.MARKDOWN, text, begins=begins)] if text.strip() else []

    def _cut_short(self) -> list[Block]:
        """A line without an end: printed as far as it came."""
        self._keep(self._line_taken())
        done = self._gathered()
        self._begins = False
        return done
