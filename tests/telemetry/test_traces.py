"""A run as a trace, at a collector that takes OTLP over HTTP; and one that does not."""

import logging
import threading
from collections.abc import Sequence
from functools import partial

import pytest
from opentelemetry import trace
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from opentelemetry.semconv._incubating.attributes import error_attributes, gen_ai_attributes

from hummingbird.core.events import RunDetached
from hummingbird.core.journal import (
    Compacted,
    Delegated,
    EndReason,
    JournalEntry,
    ModelFailed,
    ModelFailureKind,
    ModelSwitched,
    RunEnded,
    ToolFinished,
    ToolOutcome,
    ToolStarted,
    UserSaid,
)
from hummingbird.core.masking import MASK, Secrets
from hummingbird.core.orders import session_id_for
from hummingbird.telemetry.delivery import create_traces as made
from hummingbird.telemetry.delivery import header_secrets
from hummingbird.telemetry.traces import SpanAttribute, Traces, provider_and_model, trace_id_from_order
from tests.telemetry.collecting import ORDER, Collector, a_run, attributes, called, mistaken, named, order, see

CANARY = "canary-of-a-secret-0123456789"
GENERAL, OWN = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"


def tracing(collector: Collector, *secrets: str) -> Traces:
    found = made({GENERAL: collector.url}, "1.2", Secrets(secrets))
    assert found is not None
    return found


async def spans_of(collector: Collector, written: Sequence[JournalEntry]) -> list[Span]:
    traces = tracing(collector)
    see(traces(order()), written)
    await traces.close(30)
    return collector.spans


async def test_a_run_is_one_trace_with_the_conventions_names_and_the_entries_times(collector: Collector) -> None:
    spans = await spans_of(collector, a_run())
    assert {span.trace_id.hex() for span in spans} == {ORDER}
    run, first, answer, tool = (
        named(spans, "invoke_agent analyze-failures"),
        *sorted((span for span in spans if span.name == "chat claude"), key=lambda span: span.start_time_unix_nano)[:2],
        named(spans, "execute_tool read_log"),
    )
    assert [(span.start_time_unix_nano, span.end_time_unix_nano) for span in (run, first, answer, tool)] == [
        (1_000_000_000_000, 1_009_000_000_000),
        (1_001_000_000_000, 1_002_000_000_000),
        (1_003_000_000_000, 1_004_000_000_000),
        (1_005_000_000_000, 1_006_000_000_000),
    ]
    assert run.parent_span_id == b""
    assert {span.parent_span_id for span in spans if span is not run} == {run.span_id}
    assert attributes(run) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "analyze-failures",
        "gen_ai.conversation.id": "session-1",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "claude",
        "hummingbird.order.id": ORDER,
        "hummingbird.run.resumed": False,
        "hummingbird.run.end_reason": "completed",
    }
    assert attributes(answer) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "claude",
        "gen_ai.response.model": "claude",
        "gen_ai.conversation.id": "session-1",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.input_tokens": 240,
        "gen_ai.usage.output_tokens": 44,
        "gen_ai.usage.cache_read.input_tokens": 200,
        "gen_ai.usage.cache_creation.input_tokens": 30,
        "gen_ai.usage.reasoning.output_tokens": 4,
        "hummingbird.call.cost_usd": 0.25,
        "hummingbird.call.purpose": "turn",
    }
    assert answer.kind == Span.SPAN_KIND_CLIENT
    assert (first.status.code, attributes(first)["error.type"]) == (Status.STATUS_CODE_ERROR, "unavailable")
    assert first.status.message == "", "a sentence about a failure quotes others"
    assert attributes(tool) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "read_log",
        "gen_ai.tool.call.id": "t1",
        "gen_ai.tool.type": "function",
        "hummingbird.tool.outcome": "ok",
    }


def test_every_name_of_the_conventions_is_one_that_is_installed() -> None:
    modules = (gen_ai_attributes, error_attributes)
    known = {value for module in modules for name, value in vars(module).items() if name.isupper()}
    known |= {one.value for one in gen_ai_attributes.GenAiOperationNameValues}
    ours = {name: value for name, value in vars(SpanAttribute).items() if name.isupper() and isinstance(value, str)}
    assert len(ours) > 20
    foreign = {value for value in ours.values() if not value.startswith("hummingbird")}
    assert foreign - known == set()
    providers = {provider_and_model(f"{name}:m")[0] for name in ("anthropic", "vertex-gemini", "gemini")}
    assert providers <= {one.value for one in gen_ai_attributes.GenAiProviderNameValues}


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("openai-chat:org/llama:8b", ("openai", "org/llama:8b")),
        ("vertex-anthropic:claude@1", ("gcp.vertex_ai", "claude@1")),
        ("digest", ("hummingbird", "digest")),
        ("anthropic", ("hummingbird", "anthropic")),
    ],
)
def test_a_models_provider_is_told_by_its_usual_name(name: str, told: tuple[str, str]) -> None:
    assert provider_and_model(name) == told


async def test_the_service_and_its_version_are_told_and_the_environment_has_the_last_word(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=stage")
    await spans_of(collector, a_run())
    monkeypatch.setenv("OTEL_SERVICE_NAME", "our-agent")
    await spans_of(collector, a_run())
    first, second = (
        {one.key: one.value.string_value for one in found.resource.attributes} for found in collector.resources
    )
    assert (first["service.name"], first["service.version"]) == ("hummingbird", "1.2")
    assert first["deployment.environment.name"] == "stage"
    assert second["service.name"] == "our-agent"


async def test_nothing_that_anybody_said_is_in_a_span(collector: Collector) -> None:
    """Nor a secret, wherever a name has one."""
    said = "what-somebody-said-0123456789"
    traces = tracing(collector, CANARY)
    see(
        traces(order(session_id=f"session {CANARY}", workflow=f"look {CANARY}")),
        [
            UserSaid(text=said),
            called("c1", 1.0, model=f"openai-chat:{CANARY}"),
            ModelFailed(call_id="c1", model="m", happening=ModelFailureKind.REFUSED, sentence=said, at=2.0),
            ToolStarted(call_id=f"call {CANARY}", name=f"read\n{said}", arguments=said, at=3.0),
            ToolFinished(call_id=f"call {CANARY}", name=f"read\n{said}", text=said, outcome=ToolOutcome.ERROR, at=4.0),
            mistaken("t2", said, 4.5),
            ModelSwitched(model=f"openai-chat:{CANARY}", reason=said, at=5.0),
            Compacted(first=1, last=2, summary=said, since=1, until=2, tokens_before=9, tokens_after=3, at=6.0),
            RunEnded(run_id=ORDER, reason=EndReason.MODEL_ERROR, text=said, sentence=said, at=7.0),
        ],
    )
    await traces.close(30)
    assert len(collector.spans) == 4
    assert said.encode() not in collector.body
    assert CANARY.encode() not in collector.body
    assert MASK.encode() in collector.body, "or nothing was masked"
    run = named(collector.spans, f"invoke_agent look {MASK}")
    assert (attributes(run)["error.type"], run.status.code) == ("model_error", Status.STATUS_CODE_ERROR)
    assert [event.name for event in run.events] == ["hummingbird.model_switched", "hummingbird.compacted"]


async def test_a_tool_that_never_ran_has_an_outcome_and_no_name(collector: Collector) -> None:
    spans = await spans_of(collector, [*a_run()[:2], mistaken("t9", "made_up", 1_002.0), *a_run()[-1:]])
    assert attributes(named(spans, "execute_tool"))["hummingbird.tool.outcome"] == "mistake"


async def test_what_a_sub_agent_calls_stands_below_the_call_that_made_it(collector: Collector) -> None:
    below = partial(Delegated, call_id="d", task=2)
    spans = await spans_of(
        collector,
        [
            ToolStarted(call_id="d", name="delegate", arguments="", at=1.0),
            below(entry=ToolStarted(call_id="i", name="search", arguments="", at=2.0), at=2.0),
            below(entry=ToolFinished(call_id="i", name="search", text="", at=3.0), at=3.0),
            ToolFinished(call_id="d", name="delegate", text="", at=4.0),
            RunEnded(run_id=ORDER, reason=EndReason.COMPLETED, text="", at=5.0),
        ],
    )
    assert named(spans, "execute_tool search").parent_span_id == named(spans, "execute_tool delegate").span_id


async def test_a_run_that_goes_on_elsewhere_goes_on_in_the_same_trace(collector: Collector) -> None:
    """The first process parks it, with a call under way."""
    first, second, written = tracing(collector), tracing(collector), a_run()
    see(first(order()), written[:4])
    await first.close(30)
    see(second(order()), written[4:])
    await second.close(30)
    parked, ended = sorted(
        (span for span in collector.spans if span.name.startswith("invoke_agent")),
        key=lambda span: span.start_time_unix_nano,
    )
    assert {span.trace_id.hex() for span in collector.spans} == {ORDER}
    assert attributes(parked)["hummingbird.run.parked"] is True
    assert "hummingbird.run.end_reason" not in attributes(parked)
    assert attributes(ended)["hummingbird.run.resumed"] is True
    assert attributes(ended)["hummingbird.run.end_reason"] == "completed"
    cut = [span for span in collector.spans if attributes(span).get("error.type") == "interrupted"]
    assert [span.parent_span_id for span in cut] == [parked.span_id]


async def test_a_run_that_is_left_is_told_at_once_and_not_when_the_process_ends(collector: Collector) -> None:
    """Whatever came between: it was parked, or its process lost it to another one."""
    traces = tracing(collector)
    run = traces(order())
    see(run, a_run()[:4])
    run(RunDetached())
    see(run, a_run()[4:])
    assert run.is_over
    await traces.close(30)
    (root,) = (span for span in collector.spans if span.name.startswith("invoke_agent"))
    assert attributes(root)["hummingbird.run.parked"] is True
    assert root.end_time_unix_nano == int(a_run()[3].at * 1e9)
    assert "hummingbird.run.end_reason" not in attributes(root), "nothing is counted after it"


async def test_runs_at_the_same_time_have_traces_of_their_own(collector: Collector) -> None:
    traces, ids = tracing(collector), [session_id_for("p", number, "w", "a") for number in range(3)]
    runs = [(traces(order(one)), a_run(one)) for one in ids]
    for number in range(len(a_run())):
        for run, written in runs:
            see(run, written[number : number + 1])
    await traces.close(30)
    roots = {span.span_id: span.trace_id.hex() for span in collector.spans if not span.parent_span_id}
    assert sorted(roots.values()) == sorted(ids)
    assert all(roots[span.parent_span_id] == span.trace_id.hex() for span in collector.spans if span.parent_span_id)


def test_any_order_has_a_trace_id() -> None:
    assert trace_id_from_order(ORDER) == int(ORDER, 16)
    assert trace_id_from_order("0" * 32) > 0
    assert 0 < trace_id_from_order("order\ud800") < 2**128
    assert trace_id_from_order("a") != trace_id_from_order("b")


async def test_nothing_of_it_is_global(collector: Collector) -> None:
    """Others' libraries trace with the global provider, and their spans are none of ours."""
    before, heard = trace.get_tracer_provider(), set(logging.getLogger("opentelemetry").handlers)
    traces = tracing(collector)
    assert trace.get_tracer_provider() is before
    with trace.get_tracer("of-somebody-else").start_as_current_span("theirs"):
        see(traces(order()), a_run())
    await traces.close(30)
    assert len(collector.spans) == 5
    assert set(logging.getLogger("opentelemetry").handlers) <= heard


async def test_headers_for_the_collector_are_sent_and_told_nobody(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One of them is broken, and the library quotes it in a warning."""
    headers = f"authorization=Bearer%20{CANARY}, {CANARY}-without-a-name"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", headers)
    secrets = header_secrets({"OTEL_EXPORTER_OTLP_HEADERS": headers})
    collector.status = 400
    traces = tracing(collector, *secrets)
    see(traces(order(session_id=CANARY)), a_run())
    await traces.close(30)
    assert collector.requests[0][1]["authorization"] == f"Bearer {CANARY}"
    assert "do not arrive" in caplog.text
    assert CANARY not in caplog.text
    assert CANARY.encode() not in collector.body


def test_secrets_of_headers_are_known_in_every_spelling() -> None:
    found = header_secrets({"OTEL_EXPORTER_OTLP_TRACES_HEADERS": "api-key=a%2Fb=,x-auth=Basic abc, stray"})
    assert {"a%2Fb=", "a/b=", "Basic abc", "abc", "stray"} <= set(found)


@pytest.mark.parametrize("trouble", ["away", "400", "500", "hanging"])
async def test_a_collector_in_trouble_disturbs_no_run_and_is_told_of_once(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, trouble: str
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.2")
    caplog.set_level(logging.INFO)
    url = "http://127.0.0.1:9" if trouble == "away" else collector.url
    if trouble == "hanging":
        collector.gate.clear()
    elif trouble != "away":
        collector.status = int(trouble)
    traces = made({GENERAL: url}, "1", Secrets())
    assert traces is not None
    for number in range(3):
        see(traces(order(f"{number}")), a_run(f"{number}"))
        if trouble != "away":
            collector.wait_for(number + 1)
    await traces.close(30)
    told = [record for record in caplog.records if "Traces" in record.getMessage()]
    assert [record.levelname for record in told] == ["WARNING"]
    assert url in told[0].getMessage()
    assert [record.name for record in caplog.records if record.name.startswith(("opentelemetry", "urllib3"))] == []


async def test_that_they_arrive_again_is_told_too(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
    caplog.set_level(logging.INFO)
    collector.status = 500
    traces = tracing(collector)
    see(traces(order("1")), a_run("1"))
    collector.wait_for(1)
    collector.status = 200
    see(traces(order("2")), a_run("2"))
    await traces.close(30)
    told = [record.getMessage() for record in caplog.records]
    assert "500" in told[0]
    assert told[1:] == [f"Traces arrive at {collector.url}/v1/traces again."]


async def test_the_end_waits_for_no_collector_that_hangs(collector: Collector) -> None:
    """The library still waits when we have ended."""
    collector.gate.clear()
    traces, before = tracing(collector), set(threading.enumerate())
    see(traces(order()), a_run())
    await traces.close(0.05)
    left = set(threading.enumerate()) - before
    assert "telemetry-closing" in {thread.name for thread in left}
    assert all(thread.daemon for thread in left if thread.name == "telemetry-closing")


async def test_what_comes_after_the_end_is_nobodys(collector: Collector) -> None:
    traces = tracing(collector)
    run = traces(order())
    see(run, a_run())
    await traces.close(30)
    see(run, a_run())
    assert len(collector.spans) == 5
