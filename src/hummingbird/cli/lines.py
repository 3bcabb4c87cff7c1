"""One line of a log for one message: what others wrote into it cannot begin a line of its own."""

import logging

from hummingbird.evidence.visible import visible


class OneLine(logging.Formatter):
    """The trace of a bug still has its lines, below the message."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is logging's
        return visible(super().formatMessage(record))
