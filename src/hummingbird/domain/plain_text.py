"""Text without what only terminals understand, cleaned as it streams by.

Escape sequences go, also those that two chunks share; invalid UTF-8 becomes the replacement character. Every newline
stays, so lines keep their numbers, and so do carriage returns. Holds back no more than one sequence that is not
complete yet. Knows nothing of where the text comes from or of what it says.
"""

import re
from codecs import utf_8_decode

from hummingbird.domain.limits import TERMINAL_SEQUENCE_BYTES

_ESC = b"\x1b"
_STRING = rb"[\]PX^_][^\x07\x1b\n]{0,%d}+" % TERMINAL_SEQUENCE_BYTES  # titles, links and the like, up to BEL or ST
# colours first: they are nearly all there is, and a pattern of their own makes them cheaper by a fourth
_SEQUENCE = re.compile(
    rb"\x1b\[[0-9;]{0,64}[mK]|"
    rb"\x1b(?:\[[0-?]{0,64}+[ -/]{0,8}+[@-~]|" + _STRING + rb"(?:\x07|\x1b\\)|[ -/]{1,8}+[0-~]|[0-~])?"
)
# what may still become one with the next chunk
_BEGUN = re.compile(rb"\x1b(?:\[[0-?]{0,64}+[ -/]{0,8}+|" + _STRING + rb"\x1b?|[ -/]{0,8}+)\Z")


class PlainText:
    """Feed it chunks of any size, then end it: the result does not depend on where they were cut."""

    def __init__(self) -> None:
        self._held = b""
        self._half = b""  # of a character

    def feed(self, chunk: bytes) -> bytes:
        if self._held:
            chunk, self._held = self._held + chunk, b""
        if _ESC in chunk:
            cut = _begun_at(chunk)
            self._held = chunk[cut:]
            chunk = _SEQUENCE.sub(b"", chunk[:cut])
        return self._valid(chunk)

    def end(self) -> bytes:
        rest, self._held = _SEQUENCE.sub(b"", self._held), b""
        text = self._valid(rest)
        half, self._half = self._half, b""
        return text + half.decode("utf-8", "replace").encode()

    def _valid(self, chunk: bytes) -> bytes:
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


def _begun_at(chunk: bytes) -> int:
    """Where a sequence begins that the chunk does not complete; its end if there is none. The last escape character
    may be half of what ends the sequence before it."""
    last = chunk.rfind(_ESC)
    if last == len(chunk) - 1:
        before = chunk.rfind(_ESC, 0, last)
        if before >= 0 and _BEGUN.match(chunk, before):
            return before
    return last if _BEGUN.match(chunk, last) else len(chunk)
