"""The Screen protocol, text sanitizing and wrapping for terminals, and splitting of streamed Markdown into blocks.

Texts from models, tools and file names must not move the cursor, set titles or ring the bell: everything shown passes
`printable_text`, which spells control characters out.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from prompt_toolkit.utils import get_cwidth

from hummingbird.evidence.printable import make_printable

# Limits of the chat: sizes, counts and times.


# Input
MESSAGE_BYTES = 32 * 1024  # of one message; longer pastes are attached as files
INLINE_BYTES = 256 * 1024  # of one message when there is no sandbox to attach files in; about 80,000 tokens
PASTE_CHARS = 8 * 1024  # a longer paste is shown in the input as a placeholder
PASTE_LINES = 200
MENTION_BYTES = 32 * 1024  # of one @file whose content is included in the message
SESSION_IMAGE_BYTES = 12_000_000  # of all images in a conversation: Gemini takes requests of 20 MB
MENTIONS = 16  # files included in one message; further @paths stay plain text
ATTACHED_HEAD_LINES = 20  # of an attached text that the message quotes
ATTACHED_HEAD_CHARS = 2_000
PIPED_BYTES = 16 * 1024 * 1024  # of standard input, as one message
INPUT_ROWS = 12  # of the terminal, for the input
HISTORY_ENTRIES = 1_000
HISTORY_ENTRY_CHARS = 64 * 1024  # including pastes; the rest is not stored

# Output
LIVE_ROWS = 10  # of the terminal, for what is happening right now
REDRAW_S = 0.06  # between two redraws of streaming text; keys are echoed at once
STANDING_S = 0.25  # between two updates of the status line
FENCE_LINES = 40  # of code collected before it is printed
BLOCK_CHARS = 16 * 1024  # of any other block; a longer one is printed in parts
ARGUMENT_CHARS = 90  # of a tool call's arguments, on its line
DIFF_LINES = 60  # of an edit's diff
PREVIEW_LINES = 400  # of the diff of an edit that a person is asked about
TAIL_LINES = 5  # of a command's output, once it has ended
LIVE_TODOS = 8  # of the to-do list while a run goes on
RESULT_LINES = 200  # of a tool result shown with /verbose
SESSIONS_SHOWN = 20
SESSIONS_PICKED = 500  # in the list that one is chosen from
LAST_MESSAGE_CHARS = 500  # of the message that is shown when a session is gone on with
HITS_SHOWN = 10
PANEL_CHARS = 600  # of an open question, repeated above the input; the whole question is printed before

# Keys
QUIET_S = 0.5  # without a key before a question accepts an answer: text typed ahead is not meant for it
LETTER_ALONE_S = 0.3  # without another letter before a letter chooses from a menu: it may begin a sentence
AWAY_S = 10.0  # without a key before the bell rings when a question or the end of a run waits for the person
TWICE_S = 2.0  # two Ctrl-C within this time leave the chat
LEAVING_S = 5.0  # for a run and its processes to end on leaving

# Completion
COMPLETION_ENTRIES = 20_000  # file system entries examined for one list
COMPLETION_S = 0.15
COMPLETIONS = 40


class Tone(StrEnum):
    """How a line looks. Without colours, all tones look the same."""

    PLAIN = "plain"
    DIM = "dim"
    BOLD = "bold"
    GOOD = "good"
    BAD = "bad"
    ASKED = "asked"


_ANSI_CODES = {Tone.DIM: "2", Tone.BOLD: "1", Tone.GOOD: "32", Tone.BAD: "31", Tone.ASKED: "1;33"}


def printable_text(text: str) -> str:
    """Spell out unprintable characters, except newlines."""
    return "\n".join(map(make_printable, text.replace("\r\n", "\n").split("\n")))


def colour_lines(text: str, tone: Tone) -> str:
    """Put ANSI codes around each line, so that a colour ends with its line. `text` must be printable."""
    code = _ANSI_CODES.get(tone)
    if code is None:
        return text
    return "\n".join(f"\x1b[{code}m{line}\x1b[0m" if line else line for line in text.split("\n"))


def fit_line(line: str, columns: int) -> str:
    """Cut a line that is too wide, with an ellipsis."""
    if len(line) <= columns and line.isascii():
        return line
    if get_cwidth(line) <= columns:
        return line
    return wrap_line(line, max(1, columns - 1))[0] + "…"


def wrap_line(line: str, columns: int) -> list[str]:
    """Break a line into rows of at most that many columns."""
    if line.isascii():
        return [line[at : at + columns] for at in range(0, len(line), columns)] or [""]
    rows, row, width = [], "", 0
    for letter in line:
        cells = get_cwidth(letter)
        if width + cells > columns:
            rows.append(row)
            row, width = "", 0
        row, width = row + letter, width + cells
    return [*rows, row]


_HANG = re.compile(r" *(?:(?:[-+*•·!✓✗■»>&?]|\d{1,3}\.) |\S(?:.*?\S)?  +)?")
_WORD = re.compile(r"( *)([^ ]+)")


def wrap_words(line: str, columns: int) -> list[str]:
    """Break a line between words; what follows stands below the text of an item or below the second column."""
    if len(line) <= columns and (line.isascii() or get_cwidth(line) <= columns):
        return [line]
    head = _HANG.match(line)
    hang = get_cwidth(head[0]) if head else 0
    hang = hang if hang <= columns // 2 else 0
    rows = [""]
    for found in _WORD.finditer(line):
        gap, word = found.groups()
        room = columns - (hang if len(rows) > 1 else 0)
        if get_cwidth(rows[-1] + gap + word) <= room:
            rows[-1] += gap + word
        elif rows[-1] and get_cwidth(word) <= columns - hang:
            rows.append(word)
        else:  # wider than a row
            row = wrap_line(rows[-1] + gap + word, room)[0]
            rest = (rows[-1] + gap + word)[len(row) :]
            rows[-1:] = [row, *wrap_line(rest, columns - hang)]
    return [rows[0], *(" " * hang + row for row in rows[1:])]


def last_rows(text: str, columns: int, rows: int) -> list[str]:
    """Return the last rows of a growing text, without wrapping all of it.

    Rows break where they would if the whole text was wrapped, so that they do not move with each new letter.
    """
    cut = max(0, len(text) - columns * rows)
    begins = text.rfind("\n", 0, cut) + 1
    cut -= (cut - begins) % columns
    lines = [row for line in printable_text(text[cut:]).split("\n") for row in wrap_line(line, columns)]
    return lines[-rows:]


_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^`\n]*)$")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
_ITEM = re.compile(r" {0,3}(?:[-+*]|\d{1,9}[.)])(?:[ \t]|$)")


class BlockKind(StrEnum):
    """What a MarkdownBlock holds."""

    MARKDOWN = "markdown"
    FENCE = "fence"  # the line that opens or closes code
    CODE = "code"


@dataclass(frozen=True, slots=True)
class MarkdownBlock:
    """A complete block; `starts_paragraph` is False when it continues the previous block."""

    kind: BlockKind
    text: str
    language: str = ""
    starts_paragraph: bool = True


class BlockSplitter:
    """Splits streamed Markdown into blocks that can be rendered separately.

    `feed` returns the blocks that are complete, which never change again; `partial` is the rest as plain text. Each
    character is scanned once.
    """

    def __init__(self) -> None:
        self._line: list[str] = []  # pieces of the last line, which is not complete
        self._lines: list[str] = []
        self._line_chars = 0
        self._held_chars = 0  # characters in `_lines`
        self._fence = ""
        self._language = ""
        self._in_list = False
        self._after_empty_line = False  # the list may continue after this empty line
        self._next_starts = True

    @property
    def partial(self) -> str:
        return "\n".join([*self._lines, "".join(self._line)])

    @property
    def is_empty(self) -> bool:
        return not self._lines and not self._line and not self._fence

    def feed(self, text: str) -> list[MarkdownBlock]:
        done: list[MarkdownBlock] = []
        *lines, rest = text.split("\n")
        for line in lines:
            self._line.append(line)
            done += self._add_line(self._take_line())
        if rest:
            self._line.append(rest)
            self._line_chars += len(rest)
            if self._line_chars > BLOCK_CHARS:
                done += self._flush_long_line()
        return done

    def end(self) -> list[MarkdownBlock]:
        """Return the remaining blocks and start over."""
        last = self._take_line()
        done = self._add_line(last) if last else []
        done += self._flush_lines()
        self.__init__()  # type: ignore[misc]  # begins anew
        return done

    def _take_line(self) -> str:
        line, self._line, self._line_chars = "".join(self._line), [], 0
        return line

    def _add_line(self, line: str) -> list[MarkdownBlock]:
        if self._fence:
            return self._add_code_line(line)
        done: list[MarkdownBlock] = []
        if self._after_empty_line and line.strip():
            self._after_empty_line = False
            if not line.startswith(("  ", "\t")):
                done += self._flush_lines()
        if fence := _FENCE.match(line.rstrip("\r")):
            return done + self._open_fence(fence)
        if not line.strip():
            return done + self._add_empty_line()
        if _HEADING.match(line):
            done += self._flush_lines()
            return [*done, MarkdownBlock(BlockKind.MARKDOWN, line)]
        self._in_list = self._in_list or bool(_ITEM.match(line) and not self._lines)
        self._keep(line)
        return done + (self._flush_lines() if self._held_chars > BLOCK_CHARS else [])

    def _add_empty_line(self) -> list[MarkdownBlock]:
        if not self._in_list:
            return self._flush_lines()
        self._after_empty_line = True
        self._keep("")
        return []

    def _open_fence(self, fence: re.Match[str]) -> list[MarkdownBlock]:
        """Start a code block. Code inside a list item is printed at the margin too, where it is easier to copy."""
        done = self._flush_lines()
        words = fence[2].split()
        self._fence, self._language = fence[1], words[0] if words else ""
        return [*done, MarkdownBlock(BlockKind.FENCE, fence[0].strip(), self._language)]

    def _add_code_line(self, line: str) -> list[MarkdownBlock]:
        bare = line.strip()
        if bare.startswith(self._fence) and not bare.strip(self._fence[0]):
            done = self._flush_lines()
            self._fence = self._language = ""
            return [*done, MarkdownBlock(BlockKind.FENCE, bare, starts_paragraph=False)]
        self._keep(line)
        return self._flush_lines() if len(self._lines) >= FENCE_LINES or self._held_chars > BLOCK_CHARS else []

    def _keep(self, line: str) -> None:
        self._lines.append(line)
        self._held_chars += len(line) + 1

    def _flush_lines(self) -> list[MarkdownBlock]:
        text = "\n".join(self._lines) if self._fence else "\n".join(self._lines).rstrip()
        had = bool(self._lines)
        self._lines, self._held_chars, self._in_list, self._after_empty_line = [], 0, False, False
        if self._fence:
            return [MarkdownBlock(BlockKind.CODE, text, self._language, starts_paragraph=False)] if had else []
        begins, self._next_starts = self._next_starts, True
        return [MarkdownBlock(BlockKind.MARKDOWN, text, starts_paragraph=begins)] if text.strip() else []

    def _flush_long_line(self) -> list[MarkdownBlock]:
        """Return an overlong incomplete line as a block, up to its last space; the next block continues it."""
        line = self._take_line()
        end = line.rfind(" ") + 1 or len(line)
        self._keep(line[:end])
        done = self._flush_lines()
        self._next_starts = False
        self._line, self._line_chars = [line[end:]] * (end < len(line)), len(line) - end
        return done


class Screen(Protocol):
    """Where a conversation is shown: a terminal, or two streams.

    All methods return at once and keep the order of what is shown. Texts need not be printable; implementations
    sanitize them.
    """

    def say(self, text: str, tone: Tone = Tone.PLAIN, *, verbatim: bool = False) -> None:
        """Show lines; control characters in them are spelled out.

        Lines that are too wide are broken between words; `verbatim` ones are left to the terminal, to be copied whole.
        """
        ...

    def show_block(self, block: MarkdownBlock) -> None:
        """Show the next block of the model's answer."""
        ...

    def show_page(self, markdown: str) -> None:
        """Show a whole document, such as a summary or a list."""
        ...

    def request_redraw(self) -> None:
        """Redraw soon, because what is happening has changed."""
        ...

    def restore_input(self, text: str) -> None:
        """Give a text back to the person who typed it."""
        ...

    def copy(self, text: str) -> None:
        """Put a text into the clipboard, or show it where there is none."""
        ...
