"""Count the events of this process as Prometheus metrics.

Journal entries that an earlier process wrote are not counted again, so sums over all processes are correct. No label
contains a session or a project. The metrics belong to one event loop.
"""

import logging
from collections.abc import Iterator, Mapping
from weakref import WeakSet

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

from hummingbird.core.events import EntryRecorded, RunDetached, RunEvent
from hummingbird.core.journal import (
    Compacted,
    CompactionSkipped,
    Delegated,
    EndReason,
    JournalEntry,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    ModelFailureKind,
    ModelSwitched,
    RunEnded,
    RunStarted,
    ToolDecided,
    ToolFinished,
    ToolOutcome,
    ToolStarted,
)
from hummingbird.core.orders import WorkOrder
from hummingbird.core.usage import OUTCOME_UNKNOWN, Charge, TokenUsage
from hummingbird.core.votes import VoteCount
from hummingbird.telemetry.metric_definitions import (
    BUILD,
    CALL_SECONDS,
    CALLS,
    COMPACTIONS,
    COST,
    EVENTS,
    OTHER,
    POLLED_GAUGES,
    RUN_SECONDS,
    RUNS_BEGUN,
    RUNS_ENDED,
    SWITCHES,
    TOKENS,
    TOOL_SECONDS,
    TOOLS,
    UNDER_WAY,
    UNPRICED,
    VOTES,
    LabelSet,
    MetricDefinition,
    PolledGauge,
    ReadGauge,
)

_log = logging.getLogger("hummingbird")
ANSWERED, LOST_LABEL = "answered", "lost"
DOOR_OUTCOMES = ("queued", "ignored", "refused", "failed")
_CALL_OUTCOMES = {ANSWERED: ANSWERED, OUTCOME_UNKNOWN: LOST_LABEL, **{one.value: one.value for one in ModelFailureKind}}
_RAN = (ToolOutcome.OK, ToolOutcome.ERROR)
_OPENMETRICS = "application/openmetrics-text"


class Metrics:
    """The metrics of one service; call it with an order to observe a run (it is a `RunWatcher`).

    Each instance has its own registry, so two of them do not share any state.
    """

    def __init__(self, version: str = "") -> None:
        self._registry = CollectorRegistry()
        self._workflows, self._models, self._tools = LabelSet(), LabelSet(), LabelSet()
        # Weak, because a run that continues in another process never ends here and is simply forgotten.
        self._runs: WeakSet[_RunMetrics] = WeakSet()
        self._levels: dict[PolledGauge, ReadGauge] = {}
        self._events, self._compactions = self._counter(EVENTS), self._counter(COMPACTIONS)
        self._begun, self._ended = self._counter(RUNS_BEGUN), self._counter(RUNS_ENDED)
        self._run_seconds = self._histogram(RUN_SECONDS)
        self._calls, self._tokens, self._switches = (self._counter(one) for one in (CALLS, TOKENS, SWITCHES))
        self._cost, self._unpriced = self._counter(COST), self._counter(UNPRICED)
        self._call_seconds = self._histogram(CALL_SECONDS)
        self._tool_calls, self._tool_seconds = self._counter(TOOLS), self._histogram(TOOL_SECONDS)
        self._register_metrics(version)

    def _counter(self, measure: MetricDefinition) -> "_CachedCounter":
        return _CachedCounter(Counter(measure.name, measure.description, measure.labels, registry=self._registry))

    def _histogram(self, measure: MetricDefinition) -> Histogram:
        return Histogram(
            measure.name, measure.description, measure.labels, registry=self._registry, buckets=measure.buckets
        )

    def _register_metrics(self, version: str) -> None:
        for outcome in DOOR_OUTCOMES:
            self._events.expect(outcome)
        for outcome in ("done", "skipped"):
            self._compactions.expect(outcome)
        Gauge(BUILD.name, BUILD.description, BUILD.labels, registry=self._registry).labels(version).set(1)
        under_way = Gauge(UNDER_WAY.name, UNDER_WAY.description, registry=self._registry)
        under_way.set_function(lambda: sum(run.under_way for run in self._runs))
        self._registry.register(_PolledGaugeCollector(self._levels))
        self._votes = Gauge(VOTES.name, VOTES.description, VOTES.labels, registry=self._registry)
        ProcessCollector(registry=self._registry)

    def __call__(self, order: WorkOrder) -> "_RunMetrics":
        workflow = self._workflows.label_for(order.workflow)
        self._begun.expect(workflow)
        for reason in EndReason:
            self._ended.expect(workflow, reason.value)
        run = _RunMetrics(self, order.id, workflow)
        self._runs.add(run)
        return run

    def count_webhook(self, outcome: str) -> None:
        """Count a webhook by its outcome, one of DOOR_OUTCOMES."""
        self._events.add(1, outcome if outcome in DOOR_OUTCOMES else OTHER)

    def set_votes(self, figures: Mapping[str, VoteCount]) -> None:
        """Set the current number of votes for the results of each workflow."""
        self._votes.clear()
        for workflow, votes in figures.items():
            label = self._workflows.label_for(workflow)
            self._votes.labels(label, "up").inc(votes.up)  # `inc`, because workflows may share the label `other`
            self._votes.labels(label, "down").inc(votes.down)

    def register_gauge(self, level: PolledGauge, reading: ReadGauge) -> None:
        """Register the callback of a gauge.

        `reading` is called at every exposition and must not block. While it returns None or fails, the metric is
        left out.
        """
        self._levels[level] = reading

    def exposition(self, accept: str = "") -> tuple[bytes, str]:
        """Return all metrics and their content type: OpenMetrics if `accept` asks for it, else Prometheus' text."""
        shown = _NoCreatedSamples(self._registry)
        if _OPENMETRICS in accept.lower():
            return openmetrics.generate_latest(shown), openmetrics.CONTENT_TYPE_LATEST  # type: ignore[no-untyped-call]
        return generate_latest(shown), CONTENT_TYPE_PLAIN_0_0_4

    def count_run_begun(self, workflow: str) -> None:
        self._begun.add(1, workflow)

    def count_run_ended(self, workflow: str, reason: EndReason, seconds: float | None) -> None:
        self._ended.add(1, workflow, reason.value)
        if seconds is not None:
            self._run_seconds.labels(workflow).observe(max(0.0, seconds))

    def expect_model_call(self, model: str) -> None:
        label = self._models.label_for(model)
        for outcome in _CALL_OUTCOMES.values():
            self._calls.expect(label, outcome)

    def count_model_call(self, charge: Charge, seconds: float | None = None) -> None:
        """Count one attempt to call a model, with its tokens and cost."""
        model = self._models.label_for(charge.model)
        self._calls.add(1, model, _CALL_OUTCOMES.get(charge.outcome, OTHER))
        if charge.usage is not None:
            self._count_tokens(model, charge.usage)
        if charge.cost_usd is not None:
            self._cost.add(float(charge.cost_usd), model)
        elif charge.usage is not None:
            self._unpriced.add(1, model)
        if seconds is not None:
            self._call_seconds.labels(model).observe(max(0.0, seconds))

    def _count_tokens(self, model: str, usage: TokenUsage) -> None:
        self._tokens.add(usage.fresh, model, "input")
        self._tokens.add(usage.cache_read, model, "cache_read")
        self._tokens.add(usage.cache_write, model, "cache_write")
        self._tokens.add(usage.output, model, "output")

    def count_model_switch(self, model: str) -> None:
        self._switches.add(1, self._models.label_for(model))

    def count_compaction(self, outcome: str) -> None:
        self._compactions.add(1, outcome)

    def register_tool(self, tool: str) -> None:
        """Remember a tool's name as a label. Call this only when a call was judged or started: then the tool exists."""
        self._tools.label_for_spelling(tool)

    def count_tool_call(self, call: ToolFinished) -> None:
        tool = self._tools.existing_label(call.name)
        self._tool_calls.add(1, tool, call.outcome.value)
        if call.outcome in _RAN or call.seconds > 0:
            self._tool_seconds.labels(tool).observe(call.seconds)


class _RunMetrics:
    """Observe one run while this process works on it."""

    def __init__(self, metrics: Metrics, run_id: str, workflow: str) -> None:
        self._metrics, self._run_id, self._workflow = metrics, run_id, workflow
        self._began: float | None = None
        self._called: dict[str, float] = {}
        self.under_way = True

    def __call__(self, event: RunEvent) -> None:
        if isinstance(event, EntryRecorded):
            self._record_entry(event.entry)
        elif isinstance(event, RunDetached):
            self.under_way = False

    def _record_entry(self, entry: JournalEntry) -> None:
        metrics = self._metrics
        match entry:
            case ToolStarted(name=name) | ToolDecided(name=name):
                metrics.register_tool(name)
            case ToolFinished(charges=charges):
                metrics.count_tool_call(entry)
                for charge in charges:
                    metrics.count_model_call(charge)
            case ModelCalled(call_id=call_id, model=model, at=at):
                self._called[call_id] = at
                metrics.expect_model_call(model)
            case ModelAnswered(model=model, usage=usage, cost_usd=cost):
                metrics.count_model_call(Charge(model, "", ANSWERED, usage, cost), self._seconds_since_call(entry))
            case ModelFailed(model=model, happening=happening, lost=lost):
                self._called.pop(entry.call_id, None)
                metrics.count_model_call(Charge(model, "", OUTCOME_UNKNOWN if lost else happening.value))
            case Delegated(entry=below):
                self._record_delegated_tool(below)
            case ModelSwitched(model=model):
                metrics.count_model_switch(model)
            case Compacted():
                metrics.count_compaction("done")
            case CompactionSkipped():
                metrics.count_compaction("skipped")
            case RunStarted(at=at):
                self._began = at
                metrics.count_run_begun(self._workflow)
            case RunEnded():
                self._end_run(entry)
            case _:
                pass

    def _seconds_since_call(self, entry: ModelAnswered) -> float | None:
        called = self._called.pop(entry.call_id, None)
        return None if called is None else entry.at - called

    def _record_delegated_tool(self, below: ToolDecided | ToolStarted | ToolFinished) -> None:
        """Count a sub-agent's tool call. Its model cost is counted with the call that delegated."""
        if isinstance(below, ToolFinished):
            self._metrics.count_tool_call(below)
        else:
            self._metrics.register_tool(below.name)

    def _end_run(self, entry: RunEnded) -> None:
        """Count the end of a run. It may be another one, which this run closes because its process died."""
        own = entry.run_id == self._run_id
        seconds = entry.at - self._began if own and self._began is not None else None
        self._metrics.count_run_ended(self._workflow, entry.reason, seconds)
        if own:
            self.under_way = False


class _CachedCounter:
    """A counter that caches its series: looking one up takes a fifth of the time that `Counter.labels` needs."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._series: dict[tuple[str, ...], Counter] = {}

    def expect(self, *labels: str) -> None:
        """Create the series with 0. Without it, Prometheus could not see that the first count is an increase."""
        if labels not in self._series:
            self.add(0, *labels)

    def add(self, amount: float, *labels: str) -> None:
        series = self._series.get(labels)
        if series is None:
            series = self._series[labels] = self._counter.labels(*labels)
        series.inc(amount)


class _PolledGaugeCollector(Collector):
    def __init__(self, readings: dict[PolledGauge, ReadGauge]) -> None:
        self._readings = readings

    def collect(self) -> Iterator[Metric]:
        for measure in POLLED_GAUGES:
            reading = self._readings.get(PolledGauge(measure.name))
            value = None if reading is None else _read_gauge(reading)
            if value is not None:
                yield GaugeMetricFamily(measure.name, measure.description, value=value)


def _read_gauge(reading: ReadGauge) -> float | None:
    try:
        return reading()
    except Exception:  # noqa: BLE001 - border: one that cannot be read must not take all the others away
        _log.debug("A gauge could not be read and is left out of the metrics.", exc_info=True)
        return None


class _NoCreatedSamples(Collector):
    """Leave out the `_created` samples: nobody uses them, and they double the size of the output."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        for metric in self._registry.collect():
            metric.samples = [one for one in metric.samples if not one.name.endswith("_created")]
            yield metric
