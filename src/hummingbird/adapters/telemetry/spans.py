"""The spans of one run: a fold over its entries. Knows neither where they go nor what anybody said."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context

from hummingbird.adapters.telemetry import conventions as names
from hummingbird.adapters.telemetry.labels import as_spelt
from hummingbird.domain.events import Event, Left, Recorded
from hummingbird.domain.journal import (
    Compacted,
    Delegated,
    EndReason,
    Entry,
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
from hummingbird.domain.orders import WorkOrder
from hummingbird.domain.telemetry_limits import LABEL_CHARS
from hummingbird.domain.text import plain, shortened

_FAILED = (EndReason.MODEL_ERROR, EndReason.EMPTY_RESPONSES, EndReason.UNEXPECTED_ERROR)
_FAILED_CALLS = (ToolOutcome.ERROR, ToolOutcome.UNKNOWN)
_INTERRUPTED = "interrupted"
_Attributes: TypeAlias = Mapping[str, str | bool | int | float | list[str]]
Begin: TypeAlias = Callable[[str, _Attributes, int], Span]


class TracedRun:
    """An observer. The span of the run begins with the first entry that is seen, whichever that is: the run may have
    begun elsewhere. `begin` makes that span: name, attributes, nanoseconds. `over`: nothing more is to come."""

    def __init__(self, tracer: Tracer, begin: Begin, order: WorkOrder, mask: Callable[[str], str]) -> None:
        self._tracer, self._begin_run, self._order, self._mask = tracer, begin, order, mask
        self._run: Span | None = None
        self._open: dict[str, Span] = {}
        self._last_at = 0.0
        self.over = False

    def __call__(self, event: Event) -> None:
        if self.over:
            return
        if isinstance(event, Recorded):
            self._last_at = event.entry.at
            self._fold(event.entry)
        elif isinstance(event, Left):
            self.park()

    def _fold(self, entry: Entry) -> None:
        match entry:
            case RunStarted(model=model):
                provider, bare = names.provider_and_model(model)
                began: _Attributes = {
                    names.PROVIDER: provider,
                    names.REQUEST_MODEL: self._shown(bare),
                    names.RESUMED: False,
                }
                self._span_of_run(entry.at).set_attributes(began)
            case ModelCalled():
                self._called(entry)
            case ModelAnswered():
                self._answered(entry)
            case ModelFailed(call_id=call_id, happening=happening, lost=lost):
                self._close(_call(call_id), entry.at, {}, error="lost" if lost else happening.value)
            case ToolStarted() | ToolFinished():
                self._tool(entry, "", 0)
            case Delegated(call_id=call_id, task=task, entry=ToolStarted() | ToolFinished() as below):
                self._tool(below, call_id, task)
            case Compacted(tokens_before=before, tokens_after=after):
                tokens = {names.TOKENS_BEFORE: before, names.TOKENS_AFTER: after}
                self._span_of_run(entry.at).add_event("hummingbird.compacted", tokens, _ns(entry.at))
            case ModelSwitched(model=model):
                switched = {names.REQUEST_MODEL: self._shown(names.provider_and_model(model)[1])}
                self._span_of_run(entry.at).add_event("hummingbird.model_switched", switched, _ns(entry.at))
            case RunEnded(run_id=run_id) if run_id == self._order.id:
                self._end(entry)
            case _:
                pass

    def park(self) -> None:
        """Nothing more is seen of it here; it may go on elsewhere."""
        if self._run is not None:
            self._settle(self._last_at)
            self._run.set_attribute(names.PARKED, True)
            self._run.end(_ns(self._last_at))
        self.over = True

    def _span_of_run(self, at: float) -> Span:
        if self._run is None:
            workflow = self._shown(self._order.workflow)
            attributes: _Attributes = {
                names.OPERATION: names.INVOKE_AGENT,
                names.AGENT: workflow,
                names.CONVERSATION: self._shown(self._order.session_id),
                names.ORDER: self._shown(self._order.id),
                names.RESUMED: True,
            }
            self._run = self._begin_run(f"{names.INVOKE_AGENT} {workflow}", attributes, _ns(at))
        return self._run

    def _called(self, entry: ModelCalled) -> None:
        provider, model = names.provider_and_model(entry.model)
        model = self._shown(model)
        attributes = {
            names.OPERATION: names.CHAT,
            names.PROVIDER: provider,
            names.REQUEST_MODEL: model,
            names.CONVERSATION: self._shown(self._order.session_id),
            names.PURPOSE: self._shown(entry.purpose),
        }
        self._begin(_call(entry.call_id), f"{names.CHAT} {model}", attributes, entry.at, kind=SpanKind.CLIENT)

    def _answered(self, entry: ModelAnswered) -> None:
        usage = entry.usage
        attributes: dict[str, str | bool | int | float | list[str]] = {
            names.RESPONSE_MODEL: self._shown(names.provider_and_model(entry.model)[1]),
            names.FINISH_REASONS: [entry.finish.value],
            names.INPUT_TOKENS: usage.context,
            names.OUTPUT_TOKENS: usage.output,
            names.CACHE_READ_TOKENS: usage.cache_read,
            names.CACHE_WRITE_TOKENS: usage.cache_write,
            names.REASONING_TOKENS: usage.reasoning,
        }
        if entry.cost_usd is not None:
            attributes[names.COST_USD] = float(entry.cost_usd)
        self._close(_call(entry.call_id), entry.at, attributes)

    def _tool(self, entry: ToolStarted | ToolFinished, above: str, task: int) -> None:
        key = _tool(entry.call_id, above, task)
        if isinstance(entry, ToolStarted):
            name = self._shown(as_spelt(entry.name))
            attributes = {**self._of_tool(entry.call_id), names.TOOL_NAME: name}
            self._begin(key, f"{names.EXECUTE_TOOL} {name}", attributes, entry.at, above=above)
            return
        if key not in self._open:  # it never ran; its name may be the model's own invention
            self._begin(key, names.EXECUTE_TOOL, self._of_tool(entry.call_id), entry.at, above=above)
        error = entry.outcome.value if entry.outcome in _FAILED_CALLS else ""
        self._close(key, entry.at, {names.TOOL_OUTCOME: entry.outcome.value}, error=error)

    def _of_tool(self, call_id: str) -> dict[str, str]:
        return {
            names.OPERATION: names.EXECUTE_TOOL,
            names.TOOL_CALL: self._shown(call_id),
            names.TOOL_TYPE: "function",
        }

    def _begin(
        self,
        key: str,
        name: str,
        attributes: _Attributes,
        at: float,
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        above: str = "",
    ) -> None:
        self._close(key, at, {}, error=_INTERRUPTED)
        parent = self._open.get(_tool(above)) or self._span_of_run(at)
        self._open[key] = self._tracer.start_span(
            name, set_span_in_context(parent, Context()), kind, attributes, start_time=_ns(at)
        )

    def _close(self, key: str, at: float, attributes: _Attributes, *, error: str = "") -> None:
        """Nothing if it began elsewhere."""
        if span := self._open.pop(key, None):
            span.set_attributes(attributes)
            _fail(span, error)
            span.end(_ns(at))

    def _settle(self, at: float) -> None:
        """What was still going on; the newest first, for one may stand within another."""
        for key in reversed(tuple(self._open)):
            self._close(key, at, {}, error=_INTERRUPTED)

    def _end(self, entry: RunEnded) -> None:
        self._settle(entry.at)
        run = self._span_of_run(entry.at)
        run.set_attribute(names.END_REASON, entry.reason.value)
        _fail(run, entry.reason.value if entry.reason in _FAILED else "")
        run.end(_ns(entry.at))
        self.over = True

    def _shown(self, name: str) -> str:
        return shortened(self._mask(plain(name)), LABEL_CHARS)


def _fail(span: Span, error: str) -> None:
    """The sort alone: sentences about failures quote others."""
    if error:
        span.set_attribute(names.ERROR_TYPE, error)
        span.set_status(Status(StatusCode.ERROR))


def _call(call_id: str) -> str:
    return f"call {call_id}"


def _tool(call_id: str, above: str = "", task: int = 0) -> str:
    """A sub-agent's is known by the call above it and its number."""
    return f"tool {above} {task} {call_id}"


def _ns(at: float) -> int:
    return int(at * 1_000_000_000)
