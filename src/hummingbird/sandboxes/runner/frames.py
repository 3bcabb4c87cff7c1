"""The message format between the runner and our side: one letter, a length, and that many bytes.

To the runner: R is the request (JSON), I is input, E the end of the input. From the runner: O and F are what a command
wrote to stdout and stderr, X is how it ended (JSON). Both sides import this module; neither trusts the other's lengths.
"""

from __future__ import annotations

import json
import os
import struct

HEAD = struct.Struct(">cI")
CHUNK = 262144
REQUEST, INPUT, INPUT_END, OUT, ERR, ENDED = b"R", b"I", b"E", b"O", b"F", b"X"


def frame(kind: bytes, content: bytes) -> bytes:
    return HEAD.pack(kind, len(content)) + content


def end_frame(**facts: object) -> bytes:
    return frame(ENDED, json.dumps(facts).encode())


def read_exactly(fd: int, size: int) -> bytes:
    """Read `size` bytes. Raises EOFError when the stream breaks off."""
    parts = []
    while size:
        part = os.read(fd, size)
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def read_frame(fd: int) -> tuple[bytes, bytes]:
    kind, size = HEAD.unpack(read_exactly(fd, HEAD.size))
    return kind, read_exactly(fd, size)


def write_all(fd: int, content: bytes | memoryview) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]
