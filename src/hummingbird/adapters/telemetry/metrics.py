"""Prometheus metrics (O1): a fold over what happens in this process, and nothing else.

What an earlier process wrote is never counted here, so the sums over all processes are right. Knows neither sessions
nor projects. Belongs to one event loop.
"""

import logging
from collections.abc import Iterator, Mapping
from weakref import WeakSet

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

from hummingbird.adapters.telemetry.labels import OTHER, Labels
from hummingbird.adapters.telemetry.measures import (
    BEGUN,
    BUILD,
    CALL_SECONDS,
    CALLS,
    COMPACTIONS,
    COST,
    ENDED,
    EVENTS,
    LEVELS,
    RUN_SECONDS,
    SWITCHES,
    TOKENS,
    TOOL_SECONDS,
    TOOLS,
    UNDER_WAY,
    UNPRICED,
    VOTES,
    Level,
    Measure,
    Reading,
)
from hummingbird.domain.events import Event, Left, Recorded
from hummingbird.domain.journal import (
    Compacted,
    CompactionSkipped,
    Delegated,
    EndReason,
    Entry,
    Happening,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    ModelSwitched,
    RunEnded,
    RunStarted,
    ToolDecided,
    ToolFinished,
    ToolOutcome,
    ToolStarted,
)
from hummingbird.domain.orders import WorkOrder
from hummingbird.domain.usage import LOST, Charge, Usage
from hummingbird.domain.votes import Votes

_log = logging.getLogger("hummingbird")
ANSWERED, LOST_LABEL = "answered", "lost"
DOOR_OUTCOMES = ("queued", "ignored", "refused", "failed")
_CALL_OUTCOMES = {ANSWERED: ANSWERED, LOST: LOST_LABEL, **{one.value: one.value for one in Happening}}
_RAN = (ToolOutcome.OK, ToolOutcome.ERROR)
_OPENMETRICS = "application/openmetrics-text"


class Metrics:
    """Fulfils ports.observer.RunWatcher. Nothing of it is global: two of them know nothing of each other."""

    def __init__(self, version: str = "") -> None:
        self._registry = CollectorRegistry()
        self._workflows, self._models, self._tools = Labels(), Labels(), Labels()
        self._runs: WeakSet[_Run] = WeakSet()  # one that goes on elsewhere is forgotten by all and never ends here
        self._levels: dict[Level, Reading] = {}
        self._events, self._compactions = self._counter(EVENTS), self._counter(COMPACTIONS)
        self._begun, self._ended = self._counter(BEGUN), self._counter(ENDED)
        self._run_seconds = self._histogram(RUN_SECONDS)
        self._calls, self._tokens, self._switches = (self._counter(one) for one in (CALLS, TOKENS, SWITCHES))
        self._cost, self._unpriced = self._counter(COST), self._counter(UNPRICED)
        self._call_seconds = self._histogram(CALL_SECONDS)
        self._tool_calls, self._tool_seconds = self._counter(TOOLS), self._histogram(TOOL_SECONDS)
        self._begin(version)

    def _counter(self, measure: Measure) -> "_Counted":
        return _Counted(Counter(measure.name, measure.means, measure.labels, registry=self._registry))

    def _histogram(self, measure: Measure) -> Histogram:
        return Histogram(measure.name, measure.means, measure.labels, registry=self._registry, buckets=measure.buckets)

    def _begin(self, version: str) -> None:
        for outcome in DOOR_OUTCOMES:
            self._events.expect(outcome)
        for outcome in ("done", "skipped"):
            self._compactions.expect(outcome)
        Gauge(BUILD.name, BUILD.means, BUILD.labels, registry=self._registry).labels(version).set(1)
        under_way = Gauge(UNDER_WAY.name, UNDER_WAY.means, registry=self._registry)
        under_way.set_function(lambda: sum(run.under_way for run in self._runs))
        self._registry.register(_Levels(self._levels))
        self._votes = Gauge(VOTES.name, VOTES.means, VOTES.labels, registry=self._registry)
        ProcessCollector(registry=self._registry)

    def __call__(self, order: WorkOrder) -> "_Run":
        workflow = self._workflows.learned(order.workflow)
        self._begun.expect(workflow)
        for reason in EndReason:
            self._ended.expect(workflow, reason.value)
        run = _Run(self, order.id, workflow)
        self._runs.add(run)
        return run

    def event(self, outcome: str) -> None:
        """What became of a webhook: one of DOOR_OUTCOMES."""
        self._events.add(1, outcome if outcome in DOOR_OUTCOMES else OTHER)

    def voted(self, figures: Mapping[str, Votes]) -> None:
        """What people think of the results of each workflow, now."""
        self._votes.clear()
        for workflow, votes in figures.items():
            label = self._workflows.learned(workflow)
            self._votes.labels(label, "up").inc(votes.up)  # several may be `other`
            self._votes.labels(label, "down").inc(votes.down)

    def observe(self, level: Level, reading: Reading) -> None:
        """`reading` is asked at every exposition, and must not wait for anything. While it knows nothing, or fails,
        there is no such metric."""
        self._levels[level] = reading

    def exposition(self, accept: str = "") -> tuple[bytes, str]:
        """All of it and its content type: OpenMetrics for those who ask for it, else Prometheus' own text."""
        shown = _WithoutCreation(self._registry)
        if _OPENMETRICS in accept.lower():
            return openmetrics.generate_latest(shown), openmetrics.CONTENT_TYPE_LATEST  # type: ignore[no-untyped-call]
        return generate_latest(shown), CONTENT_TYPE_PLAIN_0_0_4

    def begun(self, workflow: str) -> None:
        self._begun.add(1, workflow)

    def ended(self, workflow: str, reason: EndReason, seconds: float | None) -> None:
        self._ended.add(1, workflow, reason.value)
        if seconds is not None:
            self._run_seconds.labels(workflow).observe(max(0.0, seconds))

    def called(self, model: str) -> None:
        label = self._models.learned(model)
        for outcome in _CALL_OUTCOMES.values():
            self._calls.expect(label, outcome)

    def charged(self, charge: Charge, seconds: float | None = None) -> None:
        """One attempt, as the ledger has it."""
        model = self._models.learned(charge.model)
        self._calls.add(1, model, _CALL_OUTCOMES.get(charge.outcome, OTHER))
        if charge.usage is not None:
            self._used(model, charge.usage)
        if charge.cost_usd is not None:
            self._cost.add(float(charge.cost_usd), model)
        elif charge.usage is not None:
            self._unpriced.add(1, model)
        if seconds is not None:
            self._call_seconds.labels(model).observe(max(0.0, seconds))

    def _used(self, model: str, usage: Usage) -> None:
        self._tokens.add(usage.fresh, model, "input")
        self._tokens.add(usage.cache_read, model, "cache_read")
        self._tokens.add(usage.cache_write, model, "cache_write")
        self._tokens.add(usage.output, model, "output")

    def switched(self, model: str) -> None:
        self._switches.add(1, self._models.learned(model))

    def compacted(self, outcome: str) -> None:
        self._compactions.add(1, outcome)

    def there_is(self, tool: str) -> None:
        """A call of it was judged or began, so there is such a tool."""
        self._tools.learned_name(tool)

    def settled(self, call: ToolFinished) -> None:
        tool = self._tools.known(call.name)
        self._tool_calls.add(1, tool, call.outcome.value)
        if call.outcome in _RAN or call.seconds > 0:
            self._tool_seconds.labels(tool).observe(call.seconds)


class _Run:
    """One run, for as long as it is ours. An observer."""

    def __init__(self, metrics: Metrics, run_id: str, workflow: str) -> None:
        self._metrics, self._run_id, self._workflow = metrics, run_id, workflow
        self._began: float | None = None
        self._called: dict[str, float] = {}
        self.under_way = True

    def __call__(self, event: Event) -> None:
        if isinstance(event, Recorded):
            self._fold(event.entry)
        elif isinstance(event, Left):
            self.under_way = False

    def _fold(self, entry: Entry) -> None:
        metrics = self._metrics
        match entry:
            case ToolStarted(name=name) | ToolDecided(name=name):
                metrics.there_is(name)
            case ToolFinished(charges=charges):
                metrics.settled(entry)
                for charge in charges:
                    metrics.charged(charge)
            case ModelCalled(call_id=call_id, model=model, at=at):
                self._called[call_id] = at
                metrics.called(model)
            case ModelAnswered(model=model, usage=usage, cost_usd=cost):
                metrics.charged(Charge(model, "", ANSWERED, usage, cost), self._since_call(entry))
            case ModelFailed(model=model, happening=happening, lost=lost):
                self._called.pop(entry.call_id, None)
                metrics.charged(Charge(model, "", LOST if lost else happening.value))
            case Delegated(entry=below):
                self._delegated(below)
            case ModelSwitched(model=model):
                metrics.switched(model)
            case Compacted():
                metrics.compacted("done")
            case CompactionSkipped():
                metrics.compacted("skipped")
            case RunStarted(at=at):
                self._began = at
                metrics.begun(self._workflow)
            case RunEnded():
                self._end(entry)
            case _:
                pass

    def _since_call(self, entry: ModelAnswered) -> float | None:
        called = self._called.pop(entry.call_id, None)
        return None if called is None else entry.at - called

    def _delegated(self, below: ToolDecided | ToolStarted | ToolFinished) -> None:
        """What it paid is on the entry of the call that delegated."""
        if isinstance(below, ToolFinished):
            self._metrics.settled(below)
        else:
            self._metrics.there_is(below.name)

    def _end(self, entry: RunEnded) -> None:
        """Of another run: the session had one whose process died, and this one closes it."""
        own = entry.run_id == self._run_id
        seconds = entry.at - self._began if own and self._began is not None else None
        self._metrics.ended(self._workflow, entry.reason, seconds)
        if own:
            self.under_way = False


class _Counted:
    """A counter whose series are found in a fifth of the library's time."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._series: dict[tuple[str, ...], Counter] = {}

    def expect(self, *labels: str) -> None:
        """It may come: there is a 0 until then, or nobody would see that the first one is an increase."""
        if labels not in self._series:
            self.add(0, *labels)

    def add(self, amount: float, *labels: str) -> None:
        series = self._series.get(labels)
        if series is None:
            series = self._series[labels] = self._counter.labels(*labels)
        series.inc(amount)


class _Levels(Collector):
    def __init__(self, readings: dict[Level, Reading]) -> None:
        self._readings = readings

    def collect(self) -> Iterator[Metric]:
        for measure in LEVELS:
            reading = self._readings.get(Level(measure.name))
            value = None if reading is None else _read(reading)
            if value is not None:
                yield GaugeMetricFamily(measure.name, measure.means, value=value)


def _read(reading: Reading) -> float | None:
    try:
        return reading()
    except Exception:  # noqa: BLE001 - border: one that cannot be read must not take all the others away
        _log.debug("A level could not be read and is left out of the metrics.", exc_info=True)
        return None


class _WithoutCreation(Collector):
    """Without the times at which series were made: nobody asks for them, and they double everything."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        for metric in self._registry.collect():
            metric.samples = [one for one in metric.samples if not one.name.endswith("_created")]
            yield metric
