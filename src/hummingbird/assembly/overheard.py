"""Why the service did nothing, for somebody who waits for it: its stages say so in the log alone."""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

_SERVICE = "hummingbird.service"
_WHOSE = re.compile(r"(?:Event|Order) [^:]*: (?:nothing is (?:done|begun), for )?")


class Overheard(logging.Handler):
    """`reason` is the last thing that was said, without whose it was."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.reason = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.reason = _WHOSE.sub("", record.getMessage(), count=1)


@contextmanager
def overheard() -> Iterator[Overheard]:
    log, ear = logging.getLogger(_SERVICE), Overheard()
    level = log.level
    log.addHandler(ear)
    log.setLevel(min(logging.INFO, log.getEffectiveLevel()))
    try:
        yield ear
    finally:
        log.removeHandler(ear)
        log.setLevel(level)
