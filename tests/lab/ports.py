"""Ports for tests that must name them."""

import os

from hummingbird.lab.http_server import open_listener

_FIRST, _ROWS, _LONG = 15_000, 3_000, 5


def free_row() -> int:
    """The first of five that are free, below those that the system gives away; each process looks elsewhere first."""
    for turn in range(_ROWS):
        first = _FIRST + (os.getpid() * 7 + turn) % _ROWS * _LONG
        try:
            for at in range(_LONG):
                open_listener(first + at).close()
        except OSError:
            continue
        return first
    raise AssertionError("There are no five free ports in a row.")
