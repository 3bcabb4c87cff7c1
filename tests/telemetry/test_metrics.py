"""What Prometheus is told agrees with the journal, counts nothing twice, and tells nothing about anybody."""

import gc
import math
import re
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import prometheus_client
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families

from hummingbird.core.events import TextDelta
from hummingbird.core.journal import (
    Compacted,
    CompactionSkipped,
    Delegated,
    EndReason,
    JournalEntry,
    ModelFailed,
    ModelSwitched,
    RunEnded,
    RunStarted,
    ToolDecided,
    ToolFinished,
    ToolOutcome,
    ToolStarted,
)
from hummingbird.core.projections import UsageLedger
from hummingbird.core.usage import Charge, TokenUsage
from hummingbird.core.votes import VoteCount
from hummingbird.telemetry.metric_definitions import ALL_METRICS, LABEL_VALUES, MetricKind, PolledGauge, metrics_table
from hummingbird.telemetry.metrics import DOOR_OUTCOMES, Metrics
from tests.core.entries import entries
from tests.telemetry.collecting import ORDER, a_run, mistaken, order, see

DOCUMENT = Path(__file__).parents[2] / "docs" / "observing.md"


Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples(metrics: Metrics | Samples) -> Samples:
    if isinstance(metrics, dict):
        return metrics
    families = text_string_to_metric_families(metrics.exposition()[0].decode())
    return {(one.name, tuple(sorted(one.labels.items()))): one.value for family in families for one in family.samples}


def value(metrics: Metrics, name: str, **labels: str) -> float:
    return samples(metrics).get((f"hummingbird_{name}", tuple(sorted(labels.items()))), math.nan)


def total(metrics: Metrics | Samples, name: str, **labels: str) -> float:
    """Over all other labels."""
    wanted = set(labels.items())
    return sum(
        value
        for (found, given), value in samples(metrics).items()
        if found == f"hummingbird_{name}" and wanted <= {*given}
    )


def seen(*written: JournalEntry) -> Metrics:
    metrics = Metrics("1.2")
    see(metrics(order()), written)
    return metrics


def test_a_run_is_counted_as_it_happens() -> None:
    metrics = seen(*a_run())
    assert value(metrics, "runs_begun_total", workflow="analyze-failures") == 1
    assert value(metrics, "runs_ended_total", workflow="analyze-failures", reason="completed") == 1
    assert total(metrics, "runs_ended_total") == 1
    assert value(metrics, "run_duration_seconds_sum", workflow="analyze-failures") == 9
    assert value(metrics, "model_calls_total", model="anthropic:claude", outcome="answered") == 2
    assert value(metrics, "model_calls_total", model="anthropic:claude", outcome="unavailable") == 1
    assert value(metrics, "model_call_duration_seconds_sum", model="anthropic:claude") == 2
    assert value(metrics, "model_tokens_total", model="anthropic:claude", kind="cache_read") == 400
    assert value(metrics, "model_cost_usd_total", model="anthropic:claude") == 0.25
    assert value(metrics, "model_calls_unpriced_total", model="anthropic:claude") == 1
    assert value(metrics, "tool_calls_total", tool="read_log", outcome="ok") == 1
    assert value(metrics, "tool_duration_seconds_sum", tool="read_log") == 0.75
    assert value(metrics, "runs_under_way") == 0
    assert value(metrics, "build_info", version="1.2") == 1


@pytest.mark.thorough
@given(st.lists(entries, max_size=12))
def test_the_sums_are_those_of_the_bill_whatever_happened(written: Sequence[JournalEntry]) -> None:
    metrics, ledger = samples(seen(*written)), UsageLedger.from_entries(written)
    settled = ledger.settled
    used = sum((charge.usage for charge in settled if charge.usage), TokenUsage())
    kinds = {"input": used.fresh, "cache_read": used.cache_read, "cache_write": used.cache_write, "output": used.output}
    assert {kind: total(metrics, "model_tokens_total", kind=kind) for kind in kinds} == kinds
    assert total(metrics, "model_calls_total") == len(settled)
    assert total(metrics, "model_calls_unpriced_total") == ledger.unknown
    assert math.isclose(total(metrics, "model_cost_usd_total"), ledger.known_usd, abs_tol=1e-6)
    finished = [one for one in written if isinstance(one, ToolFinished)]
    below = [one.entry for one in written if isinstance(one, Delegated) and isinstance(one.entry, ToolFinished)]
    outcomes = Counter(one.outcome for one in (*finished, *below))
    assert {one: total(metrics, "tool_calls_total", outcome=one) for one in ToolOutcome} == {
        one: outcomes[one] for one in ToolOutcome
    }
    assert total(metrics, "runs_ended_total") == sum(isinstance(one, RunEnded) for one in written)


def test_the_share_of_the_cache_can_be_derived_as_the_bill_has_it() -> None:
    written = a_run()
    metrics = seen(*written)
    tokens = {one: total(metrics, "model_tokens_total", kind=one) for one in ("input", "cache_read", "cache_write")}
    assert tokens["cache_read"] / sum(tokens.values()) == UsageLedger.from_entries(written).bill().cache_share


def test_what_a_sub_agent_paid_is_counted_once_and_by_its_own_model() -> None:
    paid = Charge("gemini:flash", "delegate", "answered", TokenUsage(fresh=5), Decimal("0.5"))
    inner = ToolFinished(call_id="i", name="search", text="")
    metrics = seen(
        ToolStarted(call_id="d", name="delegate", arguments="{}"),
        Delegated(call_id="d", task=1, entry=ToolStarted(call_id="i", name="search", arguments="{}")),
        Delegated(call_id="d", task=1, entry=inner),
        ToolFinished(call_id="d", name="delegate", text="", charges=(paid,)),
    )
    assert value(metrics, "model_cost_usd_total", model="gemini:flash") == 0.5
    assert value(metrics, "tool_calls_total", tool="search", outcome="ok") == 1
    assert value(metrics, "tool_calls_total", tool="delegate", outcome="ok") == 1


def test_a_run_that_goes_on_in_another_process_is_one_run() -> None:
    """Neither counts what the other one saw, so that the sum over both is right."""
    first, second, written = Metrics(), Metrics(), a_run()
    see(first(order()), written[:6])
    see(second(order()), written[6:])
    assert [total(one, "runs_begun_total") for one in (first, second)] == [1, 0]
    assert [total(one, "runs_ended_total") for one in (first, second)] == [0, 1]
    assert [total(one, "model_calls_total") for one in (first, second)] == [2, 1]
    assert total(second, "run_duration_seconds_count") == 0, "nobody here knows when it began"


def test_an_earlier_run_that_is_closed_by_the_next_has_ended_and_is_not_this_one() -> None:
    """The process of the first died; its session's next run says so in the journal."""
    metrics = Metrics()
    run = metrics(order())
    see(run, [RunEnded(run_id="the one before", reason=EndReason.INTERRUPTED, text="", at=5.0)])
    see(run, [RunStarted(run_id=ORDER, model="digest", at=6.0)])
    assert value(metrics, "runs_ended_total", workflow="analyze-failures", reason="interrupted") == 1
    assert total(metrics, "run_duration_seconds_count") == 0
    assert value(metrics, "runs_under_way") == 1


@pytest.mark.thorough
def test_a_run_that_was_parked_is_not_under_way_once_nobody_holds_it() -> None:
    metrics = Metrics()
    run = metrics(order())
    see(run, a_run()[:3])
    assert value(metrics, "runs_under_way") == 1
    del run
    gc.collect()
    assert value(metrics, "runs_under_way") == 0


def test_switches_compactions_and_lost_calls_are_counted() -> None:
    metrics = seen(
        ModelSwitched(model="digest", reason="the first one is away"),
        Compacted(first=1, last=2, summary="", since=1, until=2),
        CompactionSkipped(reason="nothing gained"),
        ModelFailed(call_id="c", model="digest", happening="unavailable", sentence="", lost=True),  # type: ignore[arg-type]
    )
    assert value(metrics, "model_switches_total", model="digest") == 1
    assert value(metrics, "compactions_total", outcome="done") == 1
    assert value(metrics, "compactions_total", outcome="skipped") == 1
    assert value(metrics, "model_calls_total", model="digest", outcome="lost") == 1


def test_deltas_are_nothing_to_count() -> None:
    metrics = Metrics()
    before = samples(metrics)
    metrics(order(workflow="w"))(TextDelta("Hello"))
    assert {name for name, _ in samples(metrics)} >= {name for name, _ in before}
    assert total(metrics, "model_calls_total") == 0


def test_the_first_of_a_kind_is_seen_as_an_increase() -> None:
    """`increase()` knows nothing of a series that begins with 1: there is a 0 before it can happen."""
    metrics = Metrics()
    run = metrics(order())
    assert value(metrics, "runs_ended_total", workflow="analyze-failures", reason="model_error") == 0
    see(run, a_run()[:2])
    assert value(metrics, "model_calls_total", model="anthropic:claude", outcome="credential") == 0
    assert {one: value(metrics, "events_total", outcome=one) for one in DOOR_OUTCOMES} == dict.fromkeys(
        DOOR_OUTCOMES, 0
    )


@pytest.mark.thorough
def test_the_number_of_series_is_bounded_whatever_comes() -> None:
    metrics = Metrics()
    for number in range(LABEL_VALUES + 50):
        see(metrics(order(workflow=f"workflow-{number}")), [RunStarted(run_id="r", model="digest")])
        metrics.count_webhook(f"outcome-{number}")
    begun = [labels for (name, labels) in samples(metrics) if name == "hummingbird_runs_begun_total"]
    assert len(begun) == LABEL_VALUES + 1
    assert value(metrics, "runs_begun_total", workflow="other") == 50
    assert value(metrics, "events_total", outcome="other") == LABEL_VALUES + 50


def test_no_label_has_words_of_others() -> None:
    """A model makes up names of tools, and spells real ones as it likes; both may be what somebody told it to write."""
    secret = "hunter2-is-the-password"
    metrics = seen(
        mistaken("t1", secret),
        ToolStarted(call_id="t2", name=f"read log\n{secret}", arguments=secret),
        ToolFinished(call_id="t2", name=f"read log\n{secret}", text=secret),
        ToolDecided(call_id="t3", name="write_file", by="rule", decision="denied", reason=secret),
        ToolFinished(call_id="t3", name="write_file", text=secret, outcome=ToolOutcome.DENIED),
        *a_run(),
    )
    text = metrics.exposition()[0].decode()
    assert value(metrics, "tool_calls_total", tool="other", outcome="mistake") == 1
    assert value(metrics, "tool_calls_total", tool="other", outcome="ok") == 1
    assert value(metrics, "tool_calls_total", tool="write_file", outcome="denied") == 1
    for word in (secret, "acme/widgets", "session-1", ORDER, "gcc: not found"):
        assert word not in text


def test_half_characters_in_a_name_do_not_break_the_exposition() -> None:
    metrics = Metrics()
    metrics(order(workflow="look\ud800"))
    assert total(metrics, "runs_begun_total", workflow="look?") == 0


def test_levels_are_asked_when_they_are_wanted_and_one_that_fails_hides_no_other() -> None:
    metrics, taken = Metrics(), [1.0]

    def broken() -> float:
        raise OSError("no disk")

    metrics.register_gauge(PolledGauge.SLOTS_TAKEN, lambda: taken[0])
    metrics.register_gauge(PolledGauge.SLOTS, broken)
    metrics.register_gauge(PolledGauge.DEAD_LETTERS, lambda: None)
    assert value(metrics, "slots_taken") == 1
    taken[0] = 3
    found = {name for name, _ in samples(metrics)}
    assert value(metrics, "slots_taken") == 3
    assert not found & {"hummingbird_dead_letters", "hummingbird_slots"}


@pytest.mark.parametrize(
    "accept",
    [
        "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
        "application/openmetrics-text; version=nonsense",
    ],
)
def test_openmetrics_is_there_for_those_who_ask(accept: str) -> None:
    body, kind = seen(*a_run()).exposition(accept)
    families = openmetrics_families(body.decode())  # type: ignore[no-untyped-call]
    found = {sample.name: sample for family in families for sample in family.samples}
    assert found["hummingbird_model_cost_usd_total"].value == 0.25
    assert kind.startswith("application/openmetrics-text")


@pytest.mark.parametrize("accept", ["", "*/*", "text/html", "text/plain;version=;;=;q=x"])
def test_others_get_plain_text(accept: str) -> None:
    body, kind = seen(*a_run()).exposition(accept)
    assert kind == "text/plain; version=0.0.4; charset=utf-8"
    assert b"_created" not in body
    assert not body.endswith(b"# EOF\n")


def test_nothing_of_it_is_global() -> None:
    one, other = seen(*a_run()), Metrics()
    assert total(one, "runs_begun_total") == 1
    assert total(other, "runs_begun_total") == 0
    assert b"hummingbird" not in prometheus_client.generate_latest()


def test_every_metric_of_the_table_is_there_and_no_other() -> None:
    metrics = seen(*a_run())
    for level in PolledGauge:
        metrics.register_gauge(level, lambda: 1)
    types = {
        line.split()[2]: line.split()[3]
        for line in metrics.exposition()[0].decode().splitlines()
        if line.startswith("# TYPE hummingbird_")
    }
    assert types == {one.exposed_name: one.kind for one in ALL_METRICS}
    assert {
        one.name for one in ALL_METRICS if one.kind is MetricKind.HISTOGRAM and not one.name.endswith("_seconds")
    } == set()


def test_the_documents_table_is_the_table_of_the_code() -> None:
    """To renew it: put what `reference()` returns below the heading "Every metric"."""
    assert metrics_table() in DOCUMENT.read_text(encoding="utf-8")


def test_the_documents_examples_name_metrics_that_there_are() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    named = set(re.findall(r"\bhummingbird_[a-z_]+[a-z]", text))
    known = {one.exposed_name for one in ALL_METRICS}
    series = {
        f"{one.name}{end}"
        for one in ALL_METRICS
        if one.kind is MetricKind.HISTOGRAM
        for end in ("_bucket", "_sum", "_count")
    }
    assert named - known - series == set()
    assert named >= known


def test_votes_are_told_as_they_are_now_and_a_workflow_that_has_none_any_more_is_gone() -> None:
    metrics = Metrics()
    metrics.set_votes({"analyze-failures": VoteCount(3, 1), "code-review": VoteCount(0, 2)})
    assert value(metrics, "votes", workflow="analyze-failures", vote="up") == 3
    assert value(metrics, "votes", workflow="code-review", vote="down") == 2
    metrics.set_votes({"code-review": VoteCount(1, 0)})
    assert total(metrics, "votes", workflow="analyze-failures") == 0
    assert value(metrics, "votes", workflow="code-review", vote="down") == 0
    assert value(metrics, "votes", workflow="code-review", vote="up") == 1


def test_votes_of_too_many_workflows_are_added_up() -> None:
    metrics = Metrics()
    metrics.set_votes({f"workflow {number}": VoteCount(1, 0) for number in range(LABEL_VALUES + 5)})
    assert total(metrics, "votes", workflow="other") == 5
    assert total(metrics, "votes") == LABEL_VALUES + 5
