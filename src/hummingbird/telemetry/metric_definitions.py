"""Define all metrics with their labels and meaning, in one table for the code and the documentation."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from hummingbird.core.text import replace_surrogates, shorten_line

# Limits of the telemetry, each with its unit.


LABEL_VALUES = 100  # different values of a label; later ones count as "other"
LABEL_CHARS = 100
TRACED_RUNS = 1_000  # open traces; a run that continues in another process never ends here
TELEMETRY_CLOSE_S = 5.0  # to deliver what is left when the service stops
TRACES_TRIED_S = 5.0  # for a collector to answer `doctor`, including retries
DELIVERY_REASON_CHARS = 300  # of the reason why a delivery failed
BUG_TEXT_CHARS = 2_000  # of one text in an error report
BUG_WARNINGS = 20  # warnings of the same order that go into an error report
BUG_WARNINGS_KEPT = 500  # warnings of all orders together
DEAD_LETTERS_S = 60.0  # between two counts of the dead letters

OTHER = "other"
_NAME = re.compile(r"[\w.:/@+-]+", re.ASCII)


def safe_label(name: str) -> str:
    """Return the name if it can be a label, else OTHER. A model may have written any text in place of a tool's name."""
    return name if len(name) <= LABEL_CHARS and _NAME.fullmatch(name) else OTHER


class LabelSet:
    """Limit the values of one label (workflows, models or tools) to the first `most` names; others become OTHER.

    Every new value creates a time series that Prometheus keeps for weeks.
    """

    def __init__(self, most: int = LABEL_VALUES) -> None:
        self._most = most
        self._known: dict[str, str] = {}

    def label_for(self, name: str) -> str:
        """Return the label of a trusted name: one from the configuration, or of an existing tool."""
        found = self._known.get(name)
        if found is not None:
            return found
        if len(self._known) >= self._most:
            return OTHER
        label = shorten_line(replace_surrogates(name), LABEL_CHARS) or OTHER
        self._known[name] = label
        return label

    def label_for_spelling(self, name: str) -> str:
        """Return the label of an existing tool whose name a model wrote."""
        return self.label_for(safe_label(name))

    def existing_label(self, name: str) -> str:
        """Return the label of a name that a model may have invented: OTHER unless it was seen before."""
        return self._known.get(name, OTHER)


class MetricKind(StrEnum):
    """The Prometheus type of a metric."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class PolledGauge(StrEnum):
    """Gauges whose value is read from a callback whenever the metrics are scraped."""

    SLOTS_TAKEN = "hummingbird_slots_taken"
    SLOTS = "hummingbird_slots"
    DEAD_LETTERS = "hummingbird_dead_letters"


ReadGauge: TypeAlias = Callable[[], float | None]  # None: currently unknown


@dataclass(frozen=True, slots=True)
class MetricDefinition:
    """One metric: its type, name, meaning, labels and, for a histogram, buckets."""

    kind: MetricKind
    name: str
    description: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def exposed_name(self) -> str:
        return f"{self.name}_total" if self.kind is MetricKind.COUNTER else self.name


def _define_counter(name: str, means: str, *labels: str) -> MetricDefinition:
    return MetricDefinition(MetricKind.COUNTER, f"hummingbird_{name}", means, labels)


_RUN_S = (5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_200.0, 1_800.0, 3_600.0)
_CALL_S = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0)
_TOOL_S = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 180.0, 600.0)

EVENTS = _define_counter(
    "events", "Webhooks: queued, ignored, refused (no secret, no event) or failed (not kept)", "outcome"
)
RUNS_BEGUN = _define_counter("runs_begun", "Runs that began here; one that goes on here began elsewhere", "workflow")
RUNS_ENDED = _define_counter("runs_ended", "Runs that ended here, by the reason in their journal", "workflow", "reason")
UNDER_WAY = MetricDefinition(
    MetricKind.GAUGE, "hummingbird_runs_under_way", "Runs that have begun or gone on here and have not ended"
)
RUN_SECONDS = MetricDefinition(
    MetricKind.HISTOGRAM,
    "hummingbird_run_duration_seconds",
    "From begin to end, of runs that did both here",
    ("workflow",),
    _RUN_S,
)
CALLS = _define_counter(
    "model_calls", "Attempts: answered, lost (sent, end unknown), or the kind of failure", "model", "outcome"
)
CALL_SECONDS = MetricDefinition(
    MetricKind.HISTOGRAM, "hummingbird_model_call_duration_seconds", "Of calls that were answered", ("model",), _CALL_S
)
TOKENS = _define_counter(
    "model_tokens", "By kind: input (not cached), cache_read, cache_write, output", "model", "kind"
)
COST = _define_counter("model_cost_usd", "What calls cost, as far as their price is known", "model")
UNPRICED = _define_counter("model_calls_unpriced", "Answered calls whose price is not known", "model")
SWITCHES = _define_counter("model_switches", "Changes to this model within a run", "model")
TOOLS = _define_counter("tool_calls", "Tool calls by how they were settled", "tool", "outcome")
TOOL_SECONDS = MetricDefinition(
    MetricKind.HISTOGRAM, "hummingbird_tool_duration_seconds", "Of tool calls that ran", ("tool",), _TOOL_S
)
COMPACTIONS = _define_counter("compactions", "Conversations made shorter: done, or skipped", "outcome")
BUILD = MetricDefinition(MetricKind.GAUGE, "hummingbird_build_info", "1, with the version", ("version",))
VOTES = MetricDefinition(
    MetricKind.GAUGE,
    "hummingbird_votes",
    "Thumbs (up, down) on results of the last 90 days, as last counted; all processes of a store tell the same",
    ("workflow", "vote"),
)
POLLED_GAUGES = (
    MetricDefinition(MetricKind.GAUGE, PolledGauge.SLOTS_TAKEN, "Orders that hold a slot now"),
    MetricDefinition(MetricKind.GAUGE, PolledGauge.SLOTS, "Slots there are (max_concurrent_agents)"),
    MetricDefinition(MetricKind.GAUGE, PolledGauge.DEAD_LETTERS, "Messages that were given up, as last seen"),
)
ALL_METRICS = (
    *(EVENTS, RUNS_BEGUN, RUNS_ENDED, UNDER_WAY, RUN_SECONDS, CALLS, CALL_SECONDS, TOKENS, COST, UNPRICED, SWITCHES),
    *(TOOLS, TOOL_SECONDS, COMPACTIONS, *POLLED_GAUGES, VOTES, BUILD),
)


def metrics_table() -> str:
    """Return the table of metrics in docs/observing.md."""
    rows = (
        f"| `{one.exposed_name}` | {one.kind} | {', '.join(one.labels)} | {one.description} |" for one in ALL_METRICS
    )
    return "\n".join(["| metric | type | labels | meaning |", "|---|---|---|---|", *rows, ""])
