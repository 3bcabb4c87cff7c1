"""Make foreign text safe to store and send.

Python strings may hold lone surrogates, which UTF-8 cannot encode; terminal output holds escape sequences.
"""

import re
import unicodedata
from codecs import utf_8_decode

from hummingbird.core.limits import TERMINAL_SEQUENCE_BYTES


def replace_surrogates(text: str) -> str:
    """Return the text with a question mark for each character that UTF-8 cannot encode."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def shorten_line(text: str, chars: int) -> str:
    """Return the text on one line of at most `chars` characters, for sentences that quote somebody."""
    line = " ".join(text.split())
    return line if len(line) <= chars else line[: chars - 1] + "…"


_ESC = b"\x1b"
_STRING = rb"[\]PX^_][^\x07\x1b\n]{0,%d}+" % TERMINAL_SEQUENCE_BYTES  # titles, links and the like, up to BEL or ST
# Colours come first: nearly all sequences are colours, and their own pattern makes them a quarter cheaper.
_SEQUENCE = re.compile(
    rb"\x1b\[[0-9;]{0,64}[mK]|"
    rb"\x1b(?:\[[0-?]{0,64}+[ -/]{0,8}+[@-~]|" + _STRING + rb"(?:\x07|\x1b\\)|[ -/]{1,8}+[0-~]|[0-~])?"
)
# a sequence that the next chunk may complete
_OPEN_SEQUENCE = re.compile(rb"\x1b(?:\[[0-?]{0,64}+[ -/]{0,8}+|" + _STRING + rb"\x1b?|[ -/]{0,8}+)\Z")


class TerminalTextCleaner:
    """Remove terminal escape sequences from a stream of chunks; invalid UTF-8 becomes U+FFFD.

    Call `feed` with chunks of any size, then `end`: the result does not depend on where the chunks were cut. Every
    newline and carriage return stays, so lines keep their numbers. The cleaner holds back at most one incomplete
    sequence.
    """

    def __init__(self) -> None:
        self._held = b""
        self._half = b""  # the first bytes of an incomplete character

    def feed(self, chunk: bytes) -> bytes:
        """Return the cleaned text of the next chunk, except an incomplete sequence at its end."""
        if self._held:
            chunk, self._held = self._held + chunk, b""
        if _ESC in chunk:
            cut = _open_sequence_start(chunk)
            self._held = chunk[cut:]
            chunk = _SEQUENCE.sub(b"", chunk[:cut])
        return self._replace_invalid(chunk)

    def end(self) -> bytes:
        """Return the rest after the last chunk."""
        rest, self._held = _SEQUENCE.sub(b"", self._held), b""
        text = self._replace_invalid(rest)
        half, self._half = self._half, b""
        return text + half.decode("utf-8", "replace").encode()

    def _replace_invalid(self, chunk: bytes) -> bytes:
        if self._half:
            chunk = self._half + chunk
        elif chunk.isascii():
            return chunk
        try:
            used = utf_8_decode(chunk, "strict", False)[1]
            text = chunk[:used]
        except UnicodeDecodeError:
            replaced, used = utf_8_decode(chunk, "replace", False)
            text = replaced.encode()
        self._half = chunk[used:]
        return text


def _open_sequence_start(chunk: bytes) -> int:
    """Return where a sequence begins that the chunk does not complete, or the chunk's length.

    The last escape character may be the first half of the terminator of the sequence before it.
    """
    last = chunk.rfind(_ESC)
    if last == len(chunk) - 1:
        before = chunk.rfind(_ESC, 0, last)
        if before >= 0 and _OPEN_SEQUENCE.match(chunk, before):
            return before
    return last if _OPEN_SEQUENCE.match(chunk, last) else len(chunk)


_LONG_GAP = re.compile(r" {17,}")
_LONG_BREAK = re.compile(r"\n(?:[ ]*\n){2,}")


def printable_command(command: str) -> str:
    """Return the command for people who are asked about it.

    Every character that a screen would not show, or show as another, is escaped; long gaps are shortened.
    """
    joined = command.replace("\\\n", "")
    shown = "".join(c if c in " \n" or (c.isprintable() and not _is_lookalike(c)) else _escape_char(c) for c in joined)
    closer = _LONG_GAP.sub(lambda gap: f" [{len(gap[0])} spaces] ", shown)
    return _LONG_BREAK.sub("\n\n", closer).strip()


def _is_lookalike(letter: str) -> bool:
    """Tell whether a character looks like ASCII without being it, as full-width letters do."""
    return not letter.isascii() and unicodedata.normalize("NFKC", letter).isascii()


def _escape_char(letter: str) -> str:
    return letter.encode("unicode_escape").decode()
