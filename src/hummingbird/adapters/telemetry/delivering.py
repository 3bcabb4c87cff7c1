"""Handing spans to a collector, in OpenTelemetry's own thread. Whether they arrive is told once, and once more when
they do again: the library itself would say so every few seconds.
"""

import logging
from collections.abc import Callable, Sequence

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from hummingbird.adapters.telemetry.endpoint import Endpoint
from hummingbird.domain.telemetry_limits import DELIVERY_REASON_CHARS, TRACES_TRIED_S
from hummingbird.domain.text import shortened

_log = logging.getLogger("hummingbird")
_library = logging.getLogger("opentelemetry")


class Overheard(logging.Handler):
    """What the library has to complain about stays here, from `begin` to `end`. `reason` is the first thing since
    somebody last forgot it: that is the cause, and the others are what came of it."""

    def __init__(self, mask: Callable[[str], str]) -> None:
        super().__init__(logging.WARNING)
        self._mask = mask
        self.reason = ""

    def begin(self) -> None:
        _library.addHandler(self)
        _library.propagate = False

    def end(self) -> None:
        _library.removeHandler(self)
        _library.propagate = not any(isinstance(one, Overheard) for one in _library.handlers)

    def emit(self, record: logging.LogRecord) -> None:
        if not self.reason:
            self.reason = shortened(self._mask(record.getMessage()), DELIVERY_REASON_CHARS)


class Delivering(SpanExporter):
    def __init__(self, exporter: SpanExporter, overheard: Overheard, where: str) -> None:
        self._exporter, self._overheard, self._where = exporter, overheard, where
        self._away = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self._overheard.reason = ""
        result = self._exporter.export(spans)
        away = result is not SpanExportResult.SUCCESS
        if away and not self._away:
            _log.warning(
                "Traces do not arrive at %s, and are dropped until they do; runs are not affected. %s",
                self._where,
                self._overheard.reason,
            )
        elif self._away and not away:
            _log.info("Traces arrive at %s again.", self._where)
        self._away = away
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)


def exporter_to(endpoint: Endpoint, timeout_s: float | None = None) -> OTLPSpanExporter:
    """Headers, time and compression are OpenTelemetry's own variables. Raises ValueError, RuntimeError."""
    return OTLPSpanExporter(endpoint=endpoint.url, certificate_file=endpoint.certificates or None, timeout=timeout_s)


def refusal(endpoint: Endpoint, mask: Callable[[str], str], timeout_s: float = TRACES_TRIED_S) -> str:
    """Why the collector does not take an export without spans; empty if it does. Waits for it."""
    overheard = Overheard(mask)
    overheard.begin()
    try:
        exporter = exporter_to(endpoint, timeout_s)
        taken = exporter.export(()) is SpanExportResult.SUCCESS
        exporter.shutdown()  # type: ignore[no-untyped-call]
    finally:
        overheard.end()
    return "" if taken else overheard.reason or "no reason was given"
