"""Writes to the terminal: log lines, results, and the progress of a run. Holds the system's clock, too.

Each log message is one line, and text of others cannot start a line or control the terminal.
"""

import asyncio
import json
import logging
import os
import re
import shutil
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import click

from hummingbird.app.environment_secrets import environment_secrets, tool_secret_values
from hummingbird.config.configuration import Configuration
from hummingbird.core.events import EntryRecorded, RunEvent
from hummingbird.core.journal import ModelAnswered, ModelFailed, ModelSwitched, RunEnded, ToolFinished
from hummingbird.core.masking import Secrets
from hummingbird.core.text import replace_surrogates, shorten_line
from hummingbird.core.work_context import current_log_context
from hummingbird.evidence.printable import make_printable

_HTML_OF_NOTES = re.compile(r"</?sub>|<br>")


class LogMasker:
    """Masks credentials in log lines.

    It knows variables of the environment with telling names and, once there is a configuration, those that the
    configuration names. `configuration` returns the current one, which may change.
    """

    def __init__(self, configuration: Callable[[], Configuration] | None = None) -> None:
        self.configuration = configuration
        self._known: tuple[Configuration | None, Secrets] | None = None

    def __call__(self, text: str) -> str:
        now = self.configuration() if self.configuration else None
        if self._known is None or self._known[0] is not now:
            named = tool_secret_values(now, os.environ) if now else ()
            self._known = now, environment_secrets(os.environ, named)
        return self._known[1].mask(text)


class OneLineFormatter(logging.Formatter):
    """Formats a message as one line, with credentials masked; a traceback follows below it on lines of its own."""

    def __init__(self, shape: str, moment: str | None = None, masking: LogMasker | None = None) -> None:
        super().__init__(shape, moment)
        self._masking = masking or LogMasker()

    def format(self, record: logging.LogRecord) -> str:
        return self._masking(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is logging's
        return make_printable(super().formatMessage(record))


class JsonLineFormatter(logging.Formatter):
    """Formats a message as one JSON object on one line, with the traceback in it and credentials masked.

    The line is plain ASCII, which no terminal and no log collector changes.
    """

    def __init__(self, masking: LogMasker | None = None) -> None:
        super().__init__()
        self._masking = masking or LogMasker()

    def format(self, record: logging.LogRecord) -> str:
        work = current_log_context()
        ids = {"session": work.session, "order": work.order, "event": work.event}
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields: dict[str, object] = {
            "time": at.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._mask_text(_safe_message(record)),
            **{name: self._mask_text(value) for name, value in ids.items() if value},
        }
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            stack = "".join(traceback.format_exception(error))
            fields["exception"] = {
                "type": type(error).__qualname__,
                "message": self._mask_text(_safe_error_text(error)),
                "stack": self._mask_text(stack),
            }
        return json.dumps(fields)

    def _mask_text(self, text: str) -> str:
        return self._masking(replace_surrogates(text))


def _safe_message(record: logging.LogRecord) -> str:
    """Return the message, unformatted if its arguments do not fit, so that it is not lost."""
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001 - border: others' objects write themselves
        return str(record.msg)


def _safe_error_text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - border: others' exceptions write themselves
        return ""


@contextmanager
def log_to_terminal(configuration: Configuration, *, verbose: bool) -> Iterator[None]:
    """Log warnings and errors to standard error; with `verbose` also decisions and their reasons."""
    lines = logging.StreamHandler(sys.stderr)
    lines.setFormatter(OneLineFormatter("%(message)s", masking=LogMasker(lambda: configuration)))
    lines.setLevel(logging.INFO if verbose else logging.WARNING)
    log = logging.getLogger("hummingbird")
    log.setLevel(lines.level)
    logging.getLogger().addHandler(lines)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(lines)
        log.setLevel(logging.NOTSET)


def print_text(text: str) -> None:
    """Print text of a session, with control characters made visible so that it cannot control the terminal.

    Characters that the terminal's encoding lacks are shown by their number.
    """
    if sys.stdout is not None and sys.stdout.isatty():
        text = "\n".join(map(make_printable, text.split("\n")))
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    click.echo(f"{text}\n".encode(encoding, "backslashreplace"), nl=False)


def print_markdown(text: str) -> None:
    """Print Markdown: rendered on a terminal, as it is into a pipe."""
    if sys.stdout is None or not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        print_text(text)
        return
    from hummingbird.chat.rendering import BlockRenderer  # noqa: PLC0415 - rich, for a terminal only
    from hummingbird.chat.screen import BlockKind, MarkdownBlock  # noqa: PLC0415

    plain = _HTML_OF_NOTES.sub("", text)
    renderer = BlockRenderer(colour=not os.environ.get("NO_COLOR"))
    shown = renderer.render(MarkdownBlock(BlockKind.MARKDOWN, plain), shutil.get_terminal_size().columns)
    click.echo(shown.encode(getattr(sys.stdout, "encoding", None) or "utf-8", "backslashreplace"), nl=False)


class RunProgress:
    """Prints a run as it happens to standard error; silent if that is not a terminal, unless `verbose`."""

    def __init__(self, *, verbose: bool) -> None:
        self._verbose = verbose
        self._enabled = verbose or sys.stderr.isatty()

    def __call__(self, event: RunEvent) -> None:
        if self._enabled and isinstance(event, EntryRecorded):
            for line in self._format_event(event):
                click.secho(line, err=True, dim=True)

    def _format_event(self, event: EntryRecorded) -> list[str]:
        match event.entry:
            case ModelAnswered(message=message):
                said = [f"· {shorten_line(message.text, 100)}"] if message.text and message.calls else []
                return said + [f"→ {call.name} {shorten_line(call.arguments, 90)}" for call in message.calls]
            case ToolFinished(name=name, text=text, outcome=outcome):
                body = [f"    {line}" for line in text.splitlines()] if self._verbose else []
                return [f"  {name}: {outcome.value}, {len(text.encode()):,} bytes", *body]
            case ModelFailed(sentence=sentence):
                return [f"! {sentence}"]
            case ModelSwitched(model=model, reason=reason):
                return [f"! going on with {model}: {reason}"]
            case RunEnded(reason=reason):
                return [f"■ {reason.value}"]
            case _:
                return []


class SystemClock:
    """Implements `core.protocols.observer.Clock` with the system's time."""

    def now(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
