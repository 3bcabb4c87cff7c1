"""One line of a log for one message: what others wrote into it cannot begin a line of its own."""

import logging
import os
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
