"""One line of a log for one message: what others wrote into it cannot begin a line of its own."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

from hummingbird.assembly.secrets import secrets_of
from hummingbird.domain.secrets import Secrets
from hummingbird.evidence.visible import visible


class OneLine(logging.Formatter):
    """The trace of a bug still has its lines, below the message; no line tells a credential of the environment,
    whoever wrote it (I1, I2)."""

    @cached_property
    def _secrets(self) -> Secrets:
        return secrets_of(os.environ)

    def format(self, record: logging.LogRecord) -> str:
        return self._secrets.mask(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is logging's
        return visible(super().formatMessage(record))


@contextmanager
def logged(*, verbose: bool) -> Iterator[None]:
    """What went wrong is told; with `verbose` also what was decided, and why."""
    lines = logging.StreamHandler(sys.stderr)
    lines.setFormatter(OneLine("%(message)s"))
    lines.setLevel(logging.INFO if verbose else logging.WARNING)
    log = logging.getLogger("hummingbird")
    log.setLevel(lines.level)
    logging.getLogger().addHandler(lines)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(lines)
        log.setLevel(logging.NOTSET)
