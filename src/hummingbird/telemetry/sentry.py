"""Report bugs to Sentry, and nothing else.

A bug is an exception that was logged as an error and is not a HummingbirdError: problems that an operator, GitLab or a
provider must solve are only logged. A report holds the exception with its traceback, the log message, the ids of the
work, and earlier warnings of the same work. Every text in it is masked.

The module uses the SDK's client directly, because `sentry_sdk.init` patches logging, asyncio and HTTP for the whole
process and collects data from all of them.
"""

import logging
from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from sentry_sdk import Client
from sentry_sdk.transport import HttpTransport
from sentry_sdk.utils import BadDsn, event_from_exception

from hummingbird.core.errors import HummingbirdError, MissingSetting
from hummingbird.core.text import replace_surrogates
from hummingbird.core.work_context import current_log_context
from hummingbird.telemetry.delivery import close_within
from hummingbird.telemetry.metric_definitions import BUG_TEXT_CHARS, BUG_WARNINGS, BUG_WARNINGS_KEPT, TELEMETRY_CLOSE_S

_log = logging.getLogger("hummingbird")
_OWN = ("sentry_sdk", "urllib3")  # their log records may be about delivering a report


class SentryReporter(logging.Handler):
    """Handle the records of all loggers from `begin` until it is closed. The constructor raises MissingSetting."""

    def __init__(self, dsn: str, version: str, mask: Callable[[str], str], *, ca_bundle: str = "") -> None:
        super().__init__(logging.WARNING)
        self._mask = mask
        self._warnings: deque[tuple[str, dict[str, str]]] = deque(maxlen=BUG_WARNINGS_KEPT)
        self._client = _create_client(dsn, version, self._mask_event, ca_bundle)

    def begin(self) -> None:
        logging.getLogger().addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.partition(".")[0] in _OWN:
            return
        try:
            if record.levelno >= logging.ERROR and _is_bug(record):
                self._report(record)
            elif order := current_log_context().order:
                self._warnings.append((order, _breadcrumb(record)))
        except Exception:  # noqa: BLE001 - border: a record that cannot be reported is in the log all the same
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name is logging's
        """Do nothing: logging's default would print the record, which is not masked."""

    def _report(self, record: logging.LogRecord) -> None:
        assert record.exc_info is not None
        event, hint = event_from_exception(
            record.exc_info,
            client_options=self._client.options,
            mechanism={"type": "logging", "handled": True},
        )
        work = current_log_context()
        before = [warning for order, warning in self._warnings if order == work.order and order][-BUG_WARNINGS:]
        event["level"] = "error"
        event["logger"] = record.name
        event["logentry"] = {"message": record.getMessage()}
        ids = {"order": work.order, "session": work.session, "event": work.event}
        event["tags"] = {name: value for name, value in ids.items() if value}
        event["breadcrumbs"] = {"values": before}
        self._client.capture_event(event, hint)

    def _mask_event(self, event: Any, _: Any) -> Any:
        """Mask all texts of an event. The SDK calls this last, so it also covers texts that the SDK added."""
        return _map_texts(event, lambda text: self._mask(replace_surrogates(text)))

    async def aclose(self, seconds: float = TELEMETRY_CLOSE_S) -> None:
        """Stop reporting. Reports that are not delivered within `seconds` are lost."""
        logging.getLogger().removeHandler(self)
        await close_within(seconds, lambda: self._client.close(timeout=seconds))


class _SingleTryTransport(HttpTransport):
    """Log the first failed delivery only, and do not retry, because urllib3 logs every retry."""

    _told = False

    def on_dropped_event(self, _reason: str) -> None:
        if not self._told:
            self._told = True
            _log.warning("An error report did not reach Sentry (%s); this is logged once. Check SENTRY_DSN.", _reason)

    def _get_pool_options(self) -> dict[str, Any]:
        return {**super()._get_pool_options(), "retries": False}


def check_dsn(dsn: str) -> None:
    """Check the DSN without sending anything. Raises MissingSetting."""
    _create_client(dsn, "", lambda event, _: event, "").close(timeout=0)


def _create_client(dsn: str, version: str, before_send: Callable[[Any, Any], Any], ca_bundle: str) -> Client:
    options: Mapping[str, Any] = {
        "release": f"hummingbird@{version}",
        "server_name": "",
        "transport": _SingleTryTransport,
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
            "SENTRY_DSN is not a DSN: copy it from the settings of the project in Sentry (Client Keys), or unset it."
        ) from error


def _is_bug(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    return error is not None and not isinstance(error, HummingbirdError)


def _breadcrumb(record: logging.LogRecord) -> dict[str, str]:
    at = datetime.fromtimestamp(record.created, UTC).isoformat()
    level = "error" if record.levelno >= logging.ERROR else "warning"
    return {"timestamp": at, "category": record.name, "level": level, "message": record.getMessage()}


def _map_texts(value: Any, mask: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, Mapping):
        return {_map_texts(name, mask): _map_texts(below, mask) for name, below in value.items()}
    if isinstance(value, list | tuple):
        return [_map_texts(below, mask) for below in value]
    return value
