"""Files in and out of the sandbox, without a shell: any name is a name. A file appears whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from typing import Any

from hummingbird.adapters.sandboxes.inside.frames import (
    CHUNK,
    HEAD,
    INPUT,
    OUT,
    OVER,
    ended,
    frame,
    read_exactly,
    write_all,
)


def write(wanted: dict[str, Any], fd_in: int) -> bytes:
    """Raises EOFError when the stream breaks off; what came until then is gone."""
    path = wanted["path"]
    folder = os.path.dirname(path) or "."  # noqa: PTH120 - see processes
    unfinished = os.path.join(folder, f".part-{os.getpid()}-{os.urandom(4).hex()}")  # noqa: PTH118 - likewise
    try:
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - likewise
        file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            size = copy(fd_in, file)
        finally:
            os.close(file)
        os.rename(unfinished, path)  # noqa: PTH104 - likewise
    except (OSError, EOFError, ValueError) as error:
        with contextlib.suppress(OSError, ValueError):
            os.unlink(unfinished)  # noqa: PTH108 - likewise
        if isinstance(error, EOFError):
            raise
        return ended(error=reason(error))
    return ended(bytes=size)


def copy(fd_in: int, file: int) -> int:
    size = 0
    while True:
        kind, left = HEAD.unpack(read_exactly(fd_in, HEAD.size))
        if kind == OVER:
            return size
        if kind != INPUT:
            raise EOFError
        size += left
        while left:
            part = os.read(fd_in, min(left, CHUNK))
            if not part:
                raise EOFError
            write_all(file, part)
            left -= len(part)


def read(wanted: dict[str, Any], fd_out: int) -> bytes:
    try:
        file = os.open(wanted["path"], os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode):
                return ended(error="It is not a regular file")
            left = found.st_size or sys.maxsize  # files of the kernel say 0 and have content all the same
            while content := os.read(file, min(CHUNK, left)):
                send(fd_out, content)
                left -= len(content)  # what is written behind this meanwhile is not waited for
        finally:
            os.close(file)
    except (OSError, ValueError) as error:
        return ended(error=reason(error))
    return ended()


def reason(error: Exception) -> str:
    """A ValueError is a name that no file can have: with a NUL, or with half a character."""
    return getattr(error, "strerror", None) or str(error)


def send(fd_out: int, content: bytes) -> None:
    try:
        write_all(fd_out, frame(OUT, content))
    except OSError:
        raise EOFError from None
