"""One line of a log for one message: what others wrote into it cannot begin a line of its own."""

import json
import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from hummingbird.assembly.secrets import secrets_of, tool_secrets
from hummingbird.config.configuration import Configuration
from hummingbird.domain.log_context import current_work
from hummingbird.domain.secrets import Secrets
from hummingbird.domain.text import plain
from hummingbird.evidence.visible import visible


class Masking:
    """What no line may tell: the credentials of the environment by their names, and, once a configuration is in force,
    those that it names however they are called. `configuration` gives the one in force, which may change."""

    def __init__(self, configuration: Callable[[], Configuration] | None = None) -> None:
        self.configuration = configuration
        self._known: tuple[Configuration | None, Secrets] | None = None

    def __call__(self, text: str) -> str:
        now = self.configuration() if self.configuration else None
        if self._known is None or self._known[0] is not now:
            named = tool_secrets(now, os.environ) if now else ()
            self._known = now, secrets_of(os.environ, named)
        return self._known[1].mask(text)


class OneLine(logging.Formatter):
    """The trace of a bug still has its lines, below the message; no line tells a credential that is known here, whoever
    wrote it (I1, I2)."""

    def __init__(self, shape: str, moment: str | None = None, masking: Masking | None = None) -> None:
        super().__init__(shape, moment)
        self._masking = masking or Masking()

    def format(self, record: logging.LogRecord) -> str:
        return self._masking(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is logging's
        return visible(super().formatMessage(record))


class JsonLine(logging.Formatter):
    """One object a line (O1): also the trace of a bug is in it. ASCII alone, which no terminal and no collector
    changes, and no text in it tells a credential that is known here (I1, I2)."""

    def __init__(self, masking: Masking | None = None) -> None:
        super().__init__()
        self._masking = masking or Masking()

    def format(self, record: logging.LogRecord) -> str:
        work = current_work()
        ids = {"session": work.session, "order": work.order, "event": work.event}
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        told: dict[str, object] = {
            "time": at.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._shown(_message(record)),
            **{name: self._shown(value) for name, value in ids.items() if value},
        }
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            stack = "".join(traceback.format_exception(error))
            told["exception"] = {
                "type": type(error).__qualname__,
                "message": self._shown(_said(error)),
                "stack": self._shown(stack),
            }
        return json.dumps(told)

    def _shown(self, text: str) -> str:
        return self._masking(plain(text))


def _message(record: logging.LogRecord) -> str:
    """A line that does not fit its arguments is a bug of whoever logs, and no reason to lose it."""
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001 - border: others' objects write themselves
        return str(record.msg)


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - border: others' exceptions write themselves
        return ""


@contextmanager
def logged(configuration: Configuration, *, verbose: bool) -> Iterator[None]:
    """What went wrong is told; with `verbose` also what was decided, and why."""
    lines = logging.StreamHandler(sys.stderr)
    lines.setFormatter(OneLine("%(message)s", masking=Masking(lambda: configuration)))
    lines.setLevel(logging.INFO if verbose else logging.WARNING)
    log = logging.getLogger("hummingbird")
    log.setLevel(lines.level)
    logging.getLogger().addHandler(lines)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(lines)
        log.setLevel(logging.NOTSET)
