"""The bytes that `explain` is given: from a file or from standard input, in pieces, with progress when it takes long.

Whatever goes wrong with them is one sentence that names the file. Knows nothing of what the bytes mean.
"""

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import click

from hummingbird.domain.errors import InputUnreadable, UsageFault
from hummingbird.domain.limits import LOG_BLOCK_BYTES
from hummingbird.evidence.unpacking import Unpacking
from hummingbird.evidence.visible import visible

STANDARD_INPUT = "standard input"
PROGRESS_EVERY = 8 * 1024 * 1024
_MEGABYTE = 1_000_000
_CLEARED = "\r\x1b[K"


class Source:
    """Read once, from beginning to end. `note` says afterwards what could not be read of it."""

    def __init__(self, path: str | None) -> None:
        self._path = None if path in (None, "-") else path
        self.name = STANDARD_INPUT if self._path is None else self._path
        self._shown = "Standard input" if self._path is None else f"The file {visible(self.name)}"
        self.note = ""

    def pieces(self) -> Iterator[bytes]:
        unpacking = Unpacking(self._shown)
        with self._opened() as stream, _progress(stream) as read:
            while chunk := self._read(stream):
                read(len(chunk))
                yield from unpacking.feed(chunk)
            yield from unpacking.close()
        self.note = unpacking.note

    def empty(self) -> str:
        return f"{self._shown} is empty, so there is nothing to explain. Name a log that has something in it."

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        if self._path is None:
            yield _standard_input()
            return
        try:
            stream = open(self._path, "rb", buffering=0)  # noqa: SIM115, PTH123 - closed below; a Path would normalise what was typed
        except OSError as error:
            raise InputUnreadable(self._sentence(error)) from error
        with stream:
            yield stream

    def _read(self, stream: BinaryIO) -> bytes:
        try:
            return stream.read(LOG_BLOCK_BYTES)
        except OSError as error:
            raise InputUnreadable(self._sentence(error)) from error

    def _sentence(self, error: OSError) -> str:
        shown = visible(self.name)
        if isinstance(error, FileNotFoundError):
            return f"There is no file {shown}. Check its name and the folder you are in."
        if isinstance(error, IsADirectoryError):
            return f"{shown} is a directory. Name a file in it."
        if isinstance(error, PermissionError):
            return f"{self._shown} may not be read by this user. Change its permissions, or read it as its owner."
        return f"{self._shown} cannot be read: {error.strerror or error}. Copy it elsewhere and try again."


def _standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise UsageFault("Standard input is closed. Name a file: hummingbird explain job.log")
    return sys.stdin.buffer


def waits_for_a_person(path: str | None) -> bool:
    """Nothing was named, and nothing is piped in. A `-` is a wish to type."""
    return path is None and sys.stdin is not None and sys.stdin.isatty()


class _Progress:
    """Told only to a person, and only when there is much to read."""

    def __init__(self, total: int) -> None:
        self._step = PROGRESS_EVERY if sys.stderr is not None and sys.stderr.isatty() else float("inf")
        self._total = total
        self._read = 0
        self._told = 0

    def __call__(self, count: int) -> None:
        self._read += count
        if self._read - self._told >= self._step:
            self._told = self._read
            of = f" of {self._total / _MEGABYTE:,.0f}" if self._total else ""
            click.echo(f"{_CLEARED}Read {self._read / _MEGABYTE:,.0f}{of} MB", err=True, nl=False, color=True)

    def done(self) -> None:
        if self._told:
            click.echo(_CLEARED, err=True, nl=False, color=True)


@contextmanager
def _progress(stream: BinaryIO) -> Iterator[_Progress]:
    progress = _Progress(_size(stream))
    try:
        yield progress
    finally:
        progress.done()


def _size(stream: BinaryIO) -> int:
    try:
        found = os.fstat(stream.fileno())
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0
