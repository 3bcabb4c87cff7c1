"""How the program inside and the sandbox's verbs talk: a letter, a length, and that many bytes.

To the program: R the request (JSON), I input, E the end of the input. From it: O and F what a command wrote to stdout
and stderr, X how it ended (JSON). Both sides import this; neither trusts the other's lengths.
"""

from __future__ import annotations

import json
import os
import struct

HEAD = struct.Struct(">cI")
CHUNK = 262144
REQUEST, INPUT, OVER, OUT, ERR, ENDED = b"R", b"I", b"E", b"O", b"F", b"X"


def frame(kind: bytes, content: bytes) -> bytes:
    return HEAD.pack(kind, len(content)) + content


def ended(**facts: object) -> bytes:
    return frame(ENDED, json.dumps(facts).encode())


def read_exactly(fd: int, size: int) -> bytes:
    """Raises EOFError when the stream breaks off."""
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
