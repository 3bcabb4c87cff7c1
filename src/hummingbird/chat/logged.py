"""Warnings of the log as lines of the conversation: written to the terminal beside it they would tear the prompt."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from hummingbird.chat.screen import Screen
from hummingbird.chat.shown import Tone


class _Lines(logging.Handler):
    """Any thread may log; the screen belongs to the loop's."""

    def __init__(self, screen: Screen, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(logging.WARNING)
        self._screen = screen
        self._loop = loop

    def emit(self, record: logging.LogRecord) -> None:
        text = f"! {record.getMessage()}"
        with suppress(RuntimeError):  # the loop is closed: nobody looks any more
            self._loop.call_soon_threadsafe(self._screen.say, text, Tone.DIM)


@contextmanager
def logged(screen: Screen) -> Iterator[None]:
    lines, root = _Lines(screen, asyncio.get_running_loop()), logging.getLogger()
    root.addHandler(lines)
    try:
        yield
    finally:
        root.removeHandler(lines)
