"""Writes and reads files in the sandbox without a shell, so that any name works. A file appears whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from typing import Any

from hummingbird.sandboxes.runner.frames import (
    CHUNK,
    HEAD,
    INPUT,
    INPUT_END,
    OUT,
    end_frame,
    frame,
    read_exactly,
    write_all,
)


def write_file(wanted: dict[str, Any], fd_in: int) -> bytes:
    """Write the input to a file. Raises EOFError when the stream breaks off; then nothing of the file is left."""
    path = wanted["path"]
    folder = os.path.dirname(path) or "."  # noqa: PTH120 - see processes
    unfinished = os.path.join(folder, f".part-{os.getpid()}-{os.urandom(4).hex()}")  # noqa: PTH118 - likewise
    try:
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - likewise
        file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            size = copy_input(fd_in, file)
        finally:
            os.close(file)
        os.rename(unfinished, path)  # noqa: PTH104 - likewise
    except (OSError, EOFError, ValueError) as error:
        with contextlib.suppress(OSError, ValueError):
            os.unlink(unfinished)  # noqa: PTH108 - likewise
        if isinstance(error, EOFError):
            raise
        return end_frame(error=error_reason(error))
    return end_frame(bytes=size)


def copy_input(fd_in: int, file: int) -> int:
    size = 0
    while True:
        kind, left = HEAD.unpack(read_exactly(fd_in, HEAD.size))
        if kind == INPUT_END:
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


def read_file(wanted: dict[str, Any], fd_out: int) -> bytes:
    try:
        file = os.open(wanted["path"], os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode):
                return end_frame(error="It is not a regular file")
            left = found.st_size or sys.maxsize  # files in /proc and /sys claim to be empty but have content
            while content := os.read(file, min(CHUNK, left)):
                send_output(fd_out, content)
                left -= len(content)  # stop at the size at the start: what is appended meanwhile is not sent
        finally:
            os.close(file)
    except (OSError, ValueError) as error:
        return end_frame(error=error_reason(error))
    return end_frame()


def error_reason(error: Exception) -> str:
    """Return the reason of an error. A ValueError means an impossible name, with a NUL or a lone surrogate."""
    return getattr(error, "strerror", None) or str(error)


def send_output(fd_out: int, content: bytes) -> None:
    try:
        write_all(fd_out, frame(OUT, content))
    except OSError:
        raise EOFError from None
