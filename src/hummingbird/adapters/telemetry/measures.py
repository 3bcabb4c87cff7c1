"""What is measured, each with its unit, its labels and what it means: one table, for the code and for the document."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias


class Kind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Level(StrEnum):
    """What somebody else knows, and is asked for when it is wanted."""

    SLOTS_TAKEN = "hummingbird_slots_taken"
    SLOTS = "hummingbird_slots"
    DEAD_LETTERS = "hummingbird_dead_letters"


Reading: TypeAlias = Callable[[], float | None]  # None: not known now


@dataclass(frozen=True, slots=True)
class Measure:
    kind: Kind
    name: str
    means: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def shown(self) -> str:
        return f"{self.name}_total" if self.kind is Kind.COUNTER else self.name


def _counter(name: str, means: str, *labels: str) -> Measure:
    return Measure(Kind.COUNTER, f"hummingbird_{name}", means, labels)


_RUN_S = (5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_200.0, 1_800.0, 3_600.0)
_CALL_S = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0)
_TOOL_S = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 180.0, 600.0)

EVENTS = _counter("events", "Webhooks: queued, ignored, refused (no secret, no event) or failed (not kept)", "outcome")
BEGUN = _counter("runs_begun", "Runs that began here; one that goes on here began elsewhere", "workflow")
ENDED = _counter("runs_ended", "Runs that ended here, by the reason in their journal", "workflow", "reason")
UNDER_WAY = Measure(Kind.GAUGE, "hummingbird_runs_under_way", "Runs that have begun or gone on here and have not ended")
RUN_SECONDS = Measure(
    Kind.HISTOGRAM,
    "hummingbird_run_duration_seconds",
    "From begin to end, of runs that did both here",
    ("workflow",),
    _RUN_S,
)
CALLS = _counter(
    "model_calls", "Attempts: answered, lost (sent, end unknown), or the kind of failure", "model", "outcome"
)
CALL_SECONDS = Measure(
    Kind.HISTOGRAM, "hummingbird_model_call_duration_seconds", "Of calls that were answered", ("model",), _CALL_S
)
TOKENS = _counter("model_tokens", "By kind: input (not cached), cache_read, cache_write, output", "model", "kind")
COST = _counter("model_cost_usd", "What calls cost, as far as their price is known", "model")
UNPRICED = _counter("model_calls_unpriced", "Answered calls whose price is not known", "model")
SWITCHES = _counter("model_switches", "Changes to this model within a run", "model")
TOOLS = _counter("tool_calls", "Tool calls by how they were settled", "tool", "outcome")
TOOL_SECONDS = Measure(
    Kind.HISTOGRAM, "hummingbird_tool_duration_seconds", "Of tool calls that ran", ("tool",), _TOOL_S
)
COMPACTIONS = _counter("compactions", "Conversations made shorter: done, or skipped", "outcome")
BUILD = Measure(Kind.GAUGE, "hummingbird_build_info", "1, with the version", ("version",))
VOTES = Measure(
    Kind.GAUGE,
    "hummingbird_votes",
    "Thumbs (up, down) on results of the last 90 days, as last counted; all processes of a store tell the same",
    ("workflow", "vote"),
)
LEVELS = (
    Measure(Kind.GAUGE, Level.SLOTS_TAKEN, "Orders that hold a slot now"),
    Measure(Kind.GAUGE, Level.SLOTS, "Slots there are (max_concurrent_agents)"),
    Measure(Kind.GAUGE, Level.DEAD_LETTERS, "Messages that were given up, as last seen"),
)
ALL = (
    *(EVENTS, BEGUN, ENDED, UNDER_WAY, RUN_SECONDS, CALLS, CALL_SECONDS, TOKENS, COST, UNPRICED, SWITCHES),
    *(TOOLS, TOOL_SECONDS, COMPACTIONS, *LEVELS, VOTES, BUILD),
)


def reference() -> str:
    """The table of docs/observing.md."""
    rows = (f"| `{one.shown}` | {one.kind} | {', '.join(one.labels)} | {one.means} |" for one in ALL)
    return "\n".join(["| metric | type | labels | meaning |", "|---|---|---|---|", *rows, ""])
