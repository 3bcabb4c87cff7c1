"""Server-sent events out of bytes, however the network cut them.

Pure: it reads no socket and no JSON. Each byte is looked at a fixed number of times, and no more than a whole reply
may weigh is ever kept.
"""

from typing import NamedTuple

from hummingbird.domain.errors import ReplyUnreadable
from hummingbird.domain.limits import REPLY_BYTES

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """`name` is empty where the server gave none; `content` is what its `data` lines said."""

    name: str
    content: bytes


class EventReader:
    """One stream. Lines end with LF, CRLF or CR; `aiter_lines` of an HTTP client would also break at U+2028."""

    def __init__(self, most: int = REPLY_BYTES) -> None:
        self._most = most
        self._size = 0
        self._begun = False
        self._line = bytearray()  # of the line whose end has not come yet
        self._after_cr = False
        self._name = ""
        self._content = bytearray()

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that this completes. Raises ReplyUnreadable when the stream, and so one event of it, is larger
        than a reply may be."""
        self._size += len(chunk)
        if self._size > self._most:
            raise ReplyUnreadable(f"The model's stream is larger than {self._most} bytes; the rest was not read.")
        if not chunk:
            return []
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")  # the second half of a CRLF
        self._after_cr = chunk.endswith(b"\r")
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *ended, rest = chunk.split(b"\n")
        events = [event for line in ended if (event := self._end_line(line))]
        self._line += rest
        return events

    def end(self) -> list[Event]:
        """The last event, if no blank line came after it."""
        events = [self._end_line(b""), self._end_line(b"")]
        return [event for event in events if event]

    def _end_line(self, tail: bytes) -> Event | None:
        line = tail
        if self._line:
            line = bytes(self._line) + tail
            self._line.clear()
        if not self._begun:
            self._begun = True
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if not line:
            return self._dispatch()
        self._read(line)
        return None

    def _read(self, line: bytes) -> None:
        """A comment is a line whose field has no name. `id` and `retry` are for clients that come back."""
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._content += value
            self._content += b"\n"
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")

    def _dispatch(self) -> Event | None:
        name, self._name = self._name, ""
        if not self._content:
            return None
        event = Event(name, bytes(memoryview(self._content)[:-1]))
        self._content = bytearray()
        return event
