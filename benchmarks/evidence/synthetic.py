"""Logs as long as wanted, in chunks: real ones end to end, and the shapes that break careless readers."""

import random
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

from benchmarks.evidence.engine import CHUNK
from benchmarks.evidence.labels import labels, packed

SEED = 7
_ERROR = b"src/app/main.c:%d:17: error: 'wanted_%d' undeclared (first use in this function)\n"

Chunks = Iterator[bytes]


def ordinary(logs: Path) -> Chunks:
    """The real logs one after the other, and again."""
    for label in cycle(labels(logs)):
        raw = packed(label.path)
        for begin in range(0, len(raw), CHUNK):
            yield raw[begin : begin + CHUNK]


def one_line(logs: Path) -> Chunks:
    yield from cycle([b"error: x" * (CHUNK // 8)])


def every_line_an_error(logs: Path) -> Chunks:
    number = 0
    while True:
        yield b"".join(_ERROR % (at, at) for at in range(number, number + 700))
        number += 700


def one_error_again(logs: Path) -> Chunks:
    yield from cycle([_ERROR % (7, 7) * 700])


def noise(logs: Path) -> Chunks:
    chance = random.Random(SEED)
    while True:
        yield chance.randbytes(CHUNK)


def progress(logs: Path) -> Chunks:
    """A bar that is drawn again and again and never ends its line."""
    yield from cycle([b"".join(b"\r\x1b[32mdownloading %d%%\x1b[0m" % at for at in range(100)) * 25])


def line_ends(logs: Path) -> Chunks:
    yield from cycle([b"\n" * CHUNK])


SHAPES: dict[str, Callable[[Path], Chunks]] = {
    "ordinary: real logs end to end": ordinary,
    "one line without an end": one_line,
    "every line a new error": every_line_an_error,
    "the same error on every line": one_error_again,
    "binary noise": noise,
    "a progress bar that never ends its line": progress,
    "empty lines only": line_ends,
}


def up_to(size: int, chunks: Chunks) -> Chunks:
    for chunk in chunks:
        if size <= 0:
            return
        yield chunk[:size]
        size -= len(chunk)


def text(logs: Path, size: int) -> str:
    """A log of about that many bytes made of real ones."""
    return b"".join(up_to(size, ordinary(logs))).decode("utf-8", "replace")
