"""Create one OpenTelemetry trace per run from its journal entries, following the GenAI conventions.

The trace id is the order's id. So a run that continues in another process continues in the same trace, and an id in a
log leads to its trace. Spans contain no content: no message, no argument, no result. Times are those of the entries.
The traces belong to one event loop.
"""

import logging
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from hashlib import sha256
from typing import Any, TypeAlias

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context

from hummingbird.core.errors import MissingSetting
from hummingbird.core.events import EntryRecorded, RunDetached, RunEvent
from hummingbird.core.journal import (
    Compacted,
    Delegated,
    EndReason,
    JournalEntry,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    ModelSwitched,
    RunEnded,
    RunStarted,
    ToolFinished,
    ToolOutcome,
    ToolStarted,
)
from hummingbird.core.orders import WorkOrder
from hummingbird.core.text import replace_surrogates, shorten_line
from hummingbird.telemetry.delivery import OtlpEndpoint, close_within
from hummingbird.telemetry.metric_definitions import (
    DELIVERY_REASON_CHARS,
    LABEL_CHARS,
    TELEMETRY_CLOSE_S,
    TRACED_RUNS,
    TRACES_TRIED_S,
    safe_label,
)


class SpanAttribute:
    """Names of span attributes: OpenTelemetry's GenAI semantic conventions, and our own where those have none.

    They are copied because the OpenTelemetry package moves them between modules; a test compares the copies with the
    installed package.
    """

    OPERATION = "gen_ai.operation.name"
    PROVIDER = "gen_ai.provider.name"
    AGENT = "gen_ai.agent.name"
    CONVERSATION = "gen_ai.conversation.id"
    REQUEST_MODEL = "gen_ai.request.model"
    RESPONSE_MODEL = "gen_ai.response.model"
    FINISH_REASONS = "gen_ai.response.finish_reasons"
    INPUT_TOKENS = "gen_ai.usage.input_tokens"  # including cached tokens
    OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
    CACHE_READ_TOKENS = "gen_ai.usage.cache_read.input_tokens"
    CACHE_WRITE_TOKENS = "gen_ai.usage.cache_creation.input_tokens"
    REASONING_TOKENS = "gen_ai.usage.reasoning.output_tokens"
    TOOL_NAME = "gen_ai.tool.name"
    TOOL_CALL = "gen_ai.tool.call.id"
    TOOL_TYPE = "gen_ai.tool.type"
    ERROR_TYPE = "error.type"
    INVOKE_AGENT, CHAT, EXECUTE_TOOL = "invoke_agent", "chat", "execute_tool"
    ORDER = "hummingbird.order.id"
    END_REASON = "hummingbird.run.end_reason"
    RESUMED = "hummingbird.run.resumed"
    PARKED = "hummingbird.run.parked"
    PURPOSE = "hummingbird.call.purpose"
    COST_USD = "hummingbird.call.cost_usd"
    TOOL_OUTCOME = "hummingbird.tool.outcome"
    TOKENS_BEFORE, TOKENS_AFTER = "hummingbird.compaction.tokens_before", "hummingbird.compaction.tokens_after"


_PROVIDERS = {
    "anthropic": "anthropic",
    "vertex-anthropic": "gcp.vertex_ai",
    "gemini": "gcp.gemini",
    "vertex-gemini": "gcp.vertex_ai",
    "openai": "openai",
    "openai-chat": "openai",  # or a server with a compatible API
}
OURSELVES = "hummingbird"


def provider_and_model(name: str) -> tuple[str, str]:
    """Split the journal's `provider:model` into OpenTelemetry's provider name and the model.

    A name without a known provider belongs to a model of our own.
    """
    provider, colon, model = name.partition(":")
    known = _PROVIDERS.get(provider)
    return (known, model) if known and colon else (OURSELVES, name)


_log = logging.getLogger("hummingbird")
_library = logging.getLogger("opentelemetry")


class LibraryLogCapture(logging.Handler):
    """Catch the log messages of the OpenTelemetry library from `begin` to `end`, so that they do not reach our log.

    `reason` keeps the first message since it was last cleared: that is the cause, and later ones are consequences.
    """

    def __init__(self, mask: Callable[[str], str]) -> None:
        super().__init__(logging.WARNING)
        self._mask = mask
        self.reason = ""

    def begin(self) -> None:
        _library.addHandler(self)
        _library.propagate = False

    def end(self) -> None:
        _library.removeHandler(self)
        _library.propagate = not any(isinstance(one, LibraryLogCapture) for one in _library.handlers)

    def emit(self, record: logging.LogRecord) -> None:
        if not self.reason:
            self.reason = shorten_line(self._mask(record.getMessage()), DELIVERY_REASON_CHARS)


class OutageLoggingExporter(SpanExporter):
    """Export spans, and log once when delivery starts to fail and once when it works again.

    The library itself would log a failure every few seconds. It calls `export` in its own thread.
    """

    def __init__(self, exporter: SpanExporter, overheard: LibraryLogCapture, where: str) -> None:
        self._exporter, self._library_log, self._where = exporter, overheard, where
        self._is_failing = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self._library_log.reason = ""
        result = self._exporter.export(spans)
        away = result is not SpanExportResult.SUCCESS
        if away and not self._is_failing:
            _log.warning(
                "Traces do not arrive at %s, and are dropped until they do; runs are not affected. %s",
                self._where,
                self._library_log.reason,
            )
        elif self._is_failing and not away:
            _log.info("Traces arrive at %s again.", self._where)
        self._is_failing = away
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)


def create_exporter(endpoint: OtlpEndpoint, timeout_s: float | None = None) -> OTLPSpanExporter:
    """Create the exporter. It reads headers, timeout and compression from OpenTelemetry's own variables.

    Raises ValueError or RuntimeError if those are invalid.
    """
    return OTLPSpanExporter(endpoint=endpoint.url, certificate_file=endpoint.certificates or None, timeout=timeout_s)


def export_error(endpoint: OtlpEndpoint, mask: Callable[[str], str], timeout_s: float = TRACES_TRIED_S) -> str:
    """Return why the collector refuses an empty export; empty if it accepts it. Blocks until it answers."""
    overheard = LibraryLogCapture(mask)
    overheard.begin()
    try:
        exporter = create_exporter(endpoint, timeout_s)
        taken = exporter.export(()) is SpanExportResult.SUCCESS
        exporter.shutdown()  # type: ignore[no-untyped-call]
    finally:
        overheard.end()
    return "" if taken else overheard.reason or "no reason was given"


_FAILED = (EndReason.MODEL_ERROR, EndReason.EMPTY_RESPONSES, EndReason.UNEXPECTED_ERROR)
_FAILED_CALLS = (ToolOutcome.ERROR, ToolOutcome.UNKNOWN)
_INTERRUPTED = "interrupted"
_Attributes: TypeAlias = Mapping[str, str | bool | int | float | list[str]]
StartRunSpan: TypeAlias = Callable[[str, _Attributes, int], Span]


class RunTrace:
    """Observe one run and create its spans.

    The run's span starts with the first entry seen, whichever that is, because the run may have started in another
    process. `begin` creates that span from name, attributes and start time in nanoseconds. `is_over` becomes True when
    the run has ended or continues elsewhere.
    """

    def __init__(self, tracer: Tracer, begin: StartRunSpan, order: WorkOrder, mask: Callable[[str], str]) -> None:
        self._tracer, self._begin_run, self._order, self._mask = tracer, begin, order, mask
        self._run: Span | None = None
        self._open_spans: dict[str, Span] = {}
        self._last_at = 0.0
        self.is_over = False

    def __call__(self, event: RunEvent) -> None:
        if self.is_over:
            return
        if isinstance(event, EntryRecorded):
            self._last_at = event.entry.at
            self._record_entry(event.entry)
        elif isinstance(event, RunDetached):
            self.park()

    def _record_entry(self, entry: JournalEntry) -> None:
        match entry:
            case RunStarted(model=model):
                provider, bare = provider_and_model(model)
                began: _Attributes = {
                    SpanAttribute.PROVIDER: provider,
                    SpanAttribute.REQUEST_MODEL: self._label(bare),
                    SpanAttribute.RESUMED: False,
                }
                self._run_span(entry.at).set_attributes(began)
            case ModelCalled():
                self._start_model_call(entry)
            case ModelAnswered():
                self._end_model_call(entry)
            case ModelFailed(call_id=call_id, happening=happening, lost=lost):
                self._end_span(_model_call_key(call_id), entry.at, {}, error="lost" if lost else happening.value)
            case ToolStarted() | ToolFinished():
                self._record_tool(entry, "", 0)
            case Delegated(call_id=call_id, task=task, entry=ToolStarted() | ToolFinished() as below):
                self._record_tool(below, call_id, task)
            case Compacted(tokens_before=before, tokens_after=after):
                tokens = {SpanAttribute.TOKENS_BEFORE: before, SpanAttribute.TOKENS_AFTER: after}
                self._run_span(entry.at).add_event("hummingbird.compacted", tokens, _to_nanoseconds(entry.at))
            case ModelSwitched(model=model):
                switched = {SpanAttribute.REQUEST_MODEL: self._label(provider_and_model(model)[1])}
                self._run_span(entry.at).add_event("hummingbird.model_switched", switched, _to_nanoseconds(entry.at))
            case RunEnded(run_id=run_id) if run_id == self._order.id:
                self._end_run(entry)
            case _:
                pass

    def park(self) -> None:
        """End the spans because this process sees nothing more of the run; it may continue in another one."""
        if self._run is not None:
            self._end_open_spans(self._last_at)
            self._run.set_attribute(SpanAttribute.PARKED, True)
            self._run.end(_to_nanoseconds(self._last_at))
        self.is_over = True

    def _run_span(self, at: float) -> Span:
        if self._run is None:
            workflow = self._label(self._order.workflow)
            attributes: _Attributes = {
                SpanAttribute.OPERATION: SpanAttribute.INVOKE_AGENT,
                SpanAttribute.AGENT: workflow,
                SpanAttribute.CONVERSATION: self._label(self._order.session_id),
                SpanAttribute.ORDER: self._label(self._order.id),
                SpanAttribute.RESUMED: True,
            }
            self._run = self._begin_run(f"{SpanAttribute.INVOKE_AGENT} {workflow}", attributes, _to_nanoseconds(at))
        return self._run

    def _start_model_call(self, entry: ModelCalled) -> None:
        provider, model = provider_and_model(entry.model)
        model = self._label(model)
        attributes = {
            SpanAttribute.OPERATION: SpanAttribute.CHAT,
            SpanAttribute.PROVIDER: provider,
            SpanAttribute.REQUEST_MODEL: model,
            SpanAttribute.CONVERSATION: self._label(self._order.session_id),
            SpanAttribute.PURPOSE: self._label(entry.purpose),
        }
        self._start_span(
            _model_call_key(entry.call_id), f"{SpanAttribute.CHAT} {model}", attributes, entry.at, kind=SpanKind.CLIENT
        )

    def _end_model_call(self, entry: ModelAnswered) -> None:
        usage = entry.usage
        attributes: dict[str, str | bool | int | float | list[str]] = {
            SpanAttribute.RESPONSE_MODEL: self._label(provider_and_model(entry.model)[1]),
            SpanAttribute.FINISH_REASONS: [entry.finish.value],
            SpanAttribute.INPUT_TOKENS: usage.context,
            SpanAttribute.OUTPUT_TOKENS: usage.output,
            SpanAttribute.CACHE_READ_TOKENS: usage.cache_read,
            SpanAttribute.CACHE_WRITE_TOKENS: usage.cache_write,
            SpanAttribute.REASONING_TOKENS: usage.reasoning,
        }
        if entry.cost_usd is not None:
            attributes[SpanAttribute.COST_USD] = float(entry.cost_usd)
        self._end_span(_model_call_key(entry.call_id), entry.at, attributes)

    def _record_tool(self, entry: ToolStarted | ToolFinished, above: str, task: int) -> None:
        key = _tool_call_key(entry.call_id, above, task)
        if isinstance(entry, ToolStarted):
            name = self._label(safe_label(entry.name))
            attributes = {**self._tool_attributes(entry.call_id), SpanAttribute.TOOL_NAME: name}
            self._start_span(key, f"{SpanAttribute.EXECUTE_TOOL} {name}", attributes, entry.at, above=above)
            return
        if key not in self._open_spans:  # the call never ran, and the model may have invented the tool's name
            self._start_span(
                key, SpanAttribute.EXECUTE_TOOL, self._tool_attributes(entry.call_id), entry.at, above=above
            )
        error = entry.outcome.value if entry.outcome in _FAILED_CALLS else ""
        self._end_span(key, entry.at, {SpanAttribute.TOOL_OUTCOME: entry.outcome.value}, error=error)

    def _tool_attributes(self, call_id: str) -> dict[str, str]:
        return {
            SpanAttribute.OPERATION: SpanAttribute.EXECUTE_TOOL,
            SpanAttribute.TOOL_CALL: self._label(call_id),
            SpanAttribute.TOOL_TYPE: "function",
        }

    def _start_span(
        self,
        key: str,
        name: str,
        attributes: _Attributes,
        at: float,
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        above: str = "",
    ) -> None:
        self._end_span(key, at, {}, error=_INTERRUPTED)
        parent = self._open_spans.get(_tool_call_key(above)) or self._run_span(at)
        self._open_spans[key] = self._tracer.start_span(
            name, set_span_in_context(parent, Context()), kind, attributes, start_time=_to_nanoseconds(at)
        )

    def _end_span(self, key: str, at: float, attributes: _Attributes, *, error: str = "") -> None:
        """End a span; do nothing if it was started in another process."""
        if span := self._open_spans.pop(key, None):
            span.set_attributes(attributes)
            _mark_failed(span, error)
            span.end(_to_nanoseconds(at))

    def _end_open_spans(self, at: float) -> None:
        """End all open spans as interrupted, the newest first, because one may contain another."""
        for key in reversed(tuple(self._open_spans)):
            self._end_span(key, at, {}, error=_INTERRUPTED)

    def _end_run(self, entry: RunEnded) -> None:
        self._end_open_spans(entry.at)
        run = self._run_span(entry.at)
        run.set_attribute(SpanAttribute.END_REASON, entry.reason.value)
        _mark_failed(run, entry.reason.value if entry.reason in _FAILED else "")
        run.end(_to_nanoseconds(entry.at))
        self.is_over = True

    def _label(self, name: str) -> str:
        return shorten_line(self._mask(replace_surrogates(name)), LABEL_CHARS)


def _mark_failed(span: Span, error: str) -> None:
    """Mark a span as failed with the kind of error only: error messages may quote content."""
    if error:
        span.set_attribute(SpanAttribute.ERROR_TYPE, error)
        span.set_status(Status(StatusCode.ERROR))


def _model_call_key(call_id: str) -> str:
    return f"call {call_id}"


def _tool_call_key(call_id: str, above: str = "", task: int = 0) -> str:
    """Return the key of a tool call. A sub-agent's call is identified by the delegating call and the task's number."""
    return f"tool {above} {task} {call_id}"


def _to_nanoseconds(at: float) -> int:
    return int(at * 1_000_000_000)


_HEX_ID = re.compile(r"[0-9a-f]{32}")


class Traces:
    """The traces of one service; call it with an order to observe a run (it is a `RunWatcher`).

    The constructor raises MissingSetting for unusable OTEL_ variables.
    """

    def __init__(self, endpoint: OtlpEndpoint, version: str, mask: Callable[[str], str]) -> None:
        self._library_log = LibraryLogCapture(mask)
        self._library_log.begin()
        self._mask = lru_cache(maxsize=256)(mask)  # the same few names are masked again and again
        self._ids = _OrderTraceIds()
        self._open: OrderedDict[str, RunTrace] = OrderedDict()
        try:
            self._provider = TracerProvider(
                resource=_create_resource(version), shutdown_on_exit=False, id_generator=self._ids
            )
            delivering = OutageLoggingExporter(create_exporter(endpoint), self._library_log, endpoint.host)
            self._provider.add_span_processor(BatchSpanProcessor(delivering))
        except (ValueError, RuntimeError) as error:
            self._library_log.end()
            why = shorten_line(mask(str(error)), DELIVERY_REASON_CHARS)
            raise MissingSetting(f"OpenTelemetry cannot be set up: correct its OTEL_ variables ({why}).") from error
        self._tracer = self._provider.get_tracer("hummingbird", version)

    def __call__(self, order: WorkOrder) -> RunTrace:
        self._drop_run(order.id)
        run = RunTrace(self._tracer, partial(self._start_run_span, trace_id_from_order(order.id)), order, self._mask)
        self._open[order.id] = run
        while len(self._open) > TRACED_RUNS:
            self._drop_run(next(iter(self._open)))
        return run

    def _start_run_span(self, trace_id: int, name: str, attributes: Mapping[str, Any], at_ns: int) -> Span:
        self._ids.trace_id = trace_id
        return self._tracer.start_span(name, Context(), attributes=attributes, start_time=at_ns)

    def _drop_run(self, order_id: str) -> None:
        """Forget a run, and end its spans if it has not ended."""
        run = self._open.pop(order_id, None)
        if run is not None and not run.is_over:
            run.park()

    async def close(self, seconds: float = TELEMETRY_CLOSE_S) -> None:
        """End all traces and shut down. Spans that are not delivered within `seconds` are lost."""
        for order_id in tuple(self._open):
            self._drop_run(order_id)
        await close_within(seconds, self._shut_down)

    def _shut_down(self) -> None:
        """Shut the library down (in a thread), and keep catching its log messages until that has ended."""
        self._provider.shutdown()
        self._library_log.end()


class _OrderTraceIds(RandomIdGenerator):
    """Give the run's span, the only one without a parent, the trace id that was set before."""

    trace_id = 0

    def generate_trace_id(self) -> int:
        return self.trace_id or super().generate_trace_id()


def trace_id_from_order(order_id: str) -> int:
    """Return the order's id as a trace id (both are 32 hex digits); hash ids of another form."""
    if not _HEX_ID.fullmatch(order_id) or not int(order_id, 16):
        order_id = sha256(order_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return int(order_id, 16)


def _create_resource(version: str) -> Resource:
    """Describe this service. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES override our values."""
    ours = Resource.create({"service.name": "hummingbird", "service.version": version})
    return ours.merge(OTELResourceDetector().detect())
