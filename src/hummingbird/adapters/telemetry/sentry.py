"""Sentry (O1): bugs, and nothing else. A bug is what was logged as an error with its trace; what an operator, a forge
or a provider must mend is a sentence in the log and no bug.

The library's client is used by itself: its usual way is to patch logging, asyncio and HTTP for the whole process, and
to collect whatever passes by. Told are the exception, where it was raised, the sentence it was logged with, the ids of
the work and the warnings before it of the same work. Every text of it is masked.
"""

import logging
from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from sentry_sdk import Client
from sentry_sdk.transport import HttpTransport
from sentry_sdk.utils import BadDsn, event_from_exception

from hummingbird.adapters.telemetry.closing import within
from hummingbird.domain.errors import HummingbirdError, MissingSetting
from hummingbird.domain.log_context import current_work
from hummingbird.domain.telemetry_limits import BUG_TEXT_CHARS, BUG_WARNINGS, BUG_WARNINGS_KEPT, TELEMETRY_CLOSE_S
from hummingbird.domain.text import plain

_log = logging.getLogger("hummingbird")
_OWN = ("sentry_sdk", "urllib3")  # what they log may be about delivering a report


class Sentry(logging.Handler):
    """Hears all loggers from `begin` until it is closed. Raises MissingSetting."""

    def __init__(self, dsn: str, version: str, mask: Callable[[str], str], *, ca_bundle: str = "") -> None:
        super().__init__(logging.WARNING)
        self._mask = mask
        self._warnings: deque[tuple[str, dict[str, str]]] = deque(maxlen=BUG_WARNINGS_KEPT)
        self._client = _client(dsn, version, self._masked, ca_bundle)

    def begin(self) -> None:
        logging.getLogger().addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.partition(".")[0] in _OWN:
            return
        try:
            if record.levelno >= logging.ERROR and _is_bug(record):
                self._report(record)
            elif order := current_work().order:
                self._warnings.append((order, _warning(record)))
        except Exception:  # noqa: BLE001 - border: a record that cannot be reported is in the log all the same
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name is logging's
        """To print the record where it failed would show what nobody has masked."""

    def _report(self, record: logging.LogRecord) -> None:
        assert record.exc_info is not None
        event, hint = event_from_exception(
            record.exc_info,
            client_options=self._client.options,
            mechanism={"type": "logging", "handled": True},
        )
        work = current_work()
        before = [warning for order, warning in self._warnings if order == work.order and order][-BUG_WARNINGS:]
        event["level"] = "error"
        event["logger"] = record.name
        event["logentry"] = {"message": record.getMessage()}
        ids = {"order": work.order, "session": work.session, "event": work.event}
        event["tags"] = {name: value for name, value in ids.items() if value}
        event["breadcrumbs"] = {"values": before}
        self._client.capture_event(event, hint)

    def _masked(self, event: Any, _: Any) -> Any:
        """The last thing that happens to it, whoever put a text there."""
        return _every_text(event, lambda text: self._mask(plain(text)))

    async def aclose(self, seconds: float = TELEMETRY_CLOSE_S) -> None:
        """What is not delivered by then is not delivered."""
        logging.getLogger().removeHandler(self)
        await within(seconds, lambda: self._client.close(timeout=seconds))


class _Once(HttpTransport):
    """Tells once that reports do not arrive. Tries once too, since the library below logs each further try."""

    _told = False

    def on_dropped_event(self, _reason: str) -> None:
        if not self._told:
            self._told = True
            _log.warning("A report of a bug did not arrive at Sentry (%s); this is said once. See SENTRY_DSN.", _reason)

    def _get_pool_options(self) -> dict[str, Any]:
        return {**super()._get_pool_options(), "retries": False}


def check_dsn(dsn: str) -> None:
    """Raises MissingSetting. Sends nothing."""
    _client(dsn, "", lambda event, _: event, "").close(timeout=0)


def _client(dsn: str, version: str, before_send: Callable[[Any, Any], Any], ca_bundle: str) -> Client:
    options: Mapping[str, Any] = {
        "release": f"hummingbird@{version}",
        "server_name": "",
        "transport": _Once,
        "before_send": before_send,
        "ca_certs": ca_bundle or None,
        "max_value_length": BUG_TEXT_CHARS,
        "include_local_variables": False,
        "default_integrations": False,
        "auto_enabling_integrations": False,
        "auto_session_tracking": False,
        "send_client_reports": False,
        "enable_backpressure_handling": False,
        "spotlight": False,
        "debug": False,
    }
    try:
        return Client(dsn=dsn, **options)
    except (BadDsn, ValueError) as error:
        raise MissingSetting(
            "SENTRY_DSN is no DSN: copy it from the settings of the project in Sentry (Client Keys), or unset it."
        ) from error


def _is_bug(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    return error is not None and not isinstance(error, HummingbirdError)


def _warning(record: logging.LogRecord) -> dict[str, str]:
    at = datetime.fromtimestamp(record.created, UTC).isoformat()
    level = "error" if record.levelno >= logging.ERROR else "warning"
    return {"timestamp": at, "category": record.name, "level": level, "message": record.getMessage()}


def _every_text(value: Any, mask: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, Mapping):
        return {_every_text(name, mask): _every_text(below, mask) for name, below in value.items()}
    if isinstance(value, list | tuple):
        return [_every_text(below, mask) for below in value]
    return value
