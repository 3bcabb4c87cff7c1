"""Telemetry put together from the environment, watching real runs."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from hummingbird.app.investigation import AgentInvestigator
from hummingbird.app.service import Telemetry, start_telemetry
from hummingbird.core.errors import MissingSetting
from hummingbird.core.journal import ToolFinished
from hummingbird.core.masking import Secrets
from hummingbird.core.orders import order_id_for
from hummingbird.core.projections import UsageLedger
from hummingbird.service.protocols import InvestigationRequest
from hummingbird.storage.folder_sessions import FolderSessionStore
from hummingbird.telemetry.metrics import Metrics
from tests.app.conducting import TASK, WORKFLOW, Stage, applied, order, shell, staged
from tests.standins.vendors.script import Turn
from tests.telemetry.collecting import Collector, attributes, collecting

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
CANARY = "canary-of-a-secret-0123456789"
NONE = Secrets()


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    for name in [name for name in os.environ if name.startswith(("OTEL_", "SENTRY_"))]:
        monkeypatch.delenv(name)
    with collecting() as found:
        yield found


def total(metrics: Metrics, name: str, **labels: str) -> float:
    families = text_string_to_metric_families(metrics.exposition()[0].decode())
    wanted = labels.items()
    samples = (sample for family in families for sample in family.samples if sample.name == f"hummingbird_{name}")
    return sum(sample.value for sample in samples if wanted <= sample.labels.items())


async def conducted(stage: Stage, telemetry: Telemetry, order_id: str) -> None:
    investigator = AgentInvestigator(
        FolderSessionStore(stage.sessions), stage.environment, clock=stage.clock, watchers=telemetry.watchers
    )
    configuration = stage.configuration()
    await investigator.investigate(
        InvestigationRequest(order(order_id=order_id), configuration, applied(configuration), TASK)
    )


async def test_a_real_run_is_measured_as_its_journal_has_it_and_traced(tmp_path: Path, collector: Collector) -> None:
    """With a command that fails and a tool that the model makes up."""
    order_id = order_id_for("session", "event")
    turns = [shell(f"echo {CANARY}; false"), Turn(text="The compiler is missing.")]
    with staged(tmp_path, *turns) as stage:
        telemetry = start_telemetry({ENDPOINT: collector.url}, "1.2", NONE)
        await conducted(stage, telemetry, order_id)
        await conducted(stage, telemetry, order_id)  # it comes again: there is nothing left to do, nor to count
        await telemetry.close()
        written = stage.entries()
    bill, metrics = UsageLedger.from_entries(written).bill(), telemetry.metrics
    assert total(metrics, "runs_begun_total", workflow=WORKFLOW) == 1
    assert total(metrics, "runs_ended_total", reason="completed") == 1
    assert total(metrics, "runs_under_way") == 0
    assert total(metrics, "model_calls_total") == bill.attempts == 2
    assert total(metrics, "model_tokens_total", kind="output") == bill.usage.output > 0
    assert total(metrics, "model_tokens_total") == bill.usage.context + bill.usage.output
    assert total(metrics, "model_cost_usd_total") == pytest.approx(float(bill.known_usd))
    finished = [one for one in written if isinstance(one, ToolFinished)]
    assert total(metrics, "tool_calls_total", tool="sandbox_exec") == len(finished) == 1
    assert {span.trace_id.hex() for span in collector.spans} == {order_id}
    assert sorted(span.name.split()[0] for span in collector.spans) == ["chat", "chat", "execute_tool", "invoke_agent"]
    chats = [attributes(span) for span in collector.spans if span.name.startswith("chat")]
    assert sum(chat["gen_ai.usage.output_tokens"] for chat in chats) == bill.usage.output
    assert CANARY.encode() not in collector.body
    assert "acme/widgets" not in metrics.exposition()[0].decode()


async def test_bugs_traces_and_metrics_are_all_there_and_all_end(collector: Collector) -> None:
    handlers = list(logging.getLogger().handlers)
    environment = {ENDPOINT: collector.url, "SENTRY_DSN": collector.dsn}
    telemetry = start_telemetry(environment, "1.2", Secrets([CANARY]))
    assert telemetry.watchers[0] is telemetry.metrics
    assert len(telemetry.watchers) == 2
    logging.getLogger("hummingbird").error("It failed: %s", CANARY, exc_info=KeyError(CANARY))
    await telemetry.close()
    assert [event["logentry"]["message"] for event in collector.events] == ["It failed: [masked]"]
    assert CANARY.encode() not in collector.body
    assert logging.getLogger().handlers == handlers


async def test_without_any_variable_there_are_metrics_alone() -> None:
    telemetry = start_telemetry({}, "1.2", NONE)
    assert telemetry.watchers == (telemetry.metrics,)
    assert total(telemetry.metrics, "build_info", version="1.2") == 1
    await telemetry.close()


async def test_credentials_for_the_collector_are_in_no_report(collector: Collector) -> None:
    environment = {"SENTRY_DSN": collector.dsn, "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer {CANARY}"}
    telemetry = start_telemetry(environment, "1", NONE)
    logging.getLogger("hummingbird").error("It failed.", exc_info=KeyError(f"refused: {CANARY}"))
    await telemetry.close()
    assert len(collector.events) == 1
    assert CANARY.encode() not in collector.body


@pytest.mark.parametrize("environment", [{ENDPOINT: "nowhere"}, {"SENTRY_DSN": "nonsense"}])
def test_when_one_cannot_be_used_nothing_has_begun(environment: dict[str, str], collector: Collector) -> None:
    given = {"SENTRY_DSN": collector.dsn, ENDPOINT: collector.url, **environment}
    before = (list(logging.getLogger().handlers), set(logging.getLogger("opentelemetry").handlers))
    with pytest.raises(MissingSetting):
        start_telemetry(given, "1", NONE)
    assert logging.getLogger().handlers == before[0]
    assert set(logging.getLogger("opentelemetry").handlers) <= before[1]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("statement", "loaded"),
    [
        ("import hummingbird.cli.main", []),
        ("import hummingbird.app.library", []),
        ("import hummingbird.app.doctor.runner", []),
        (
            "from hummingbird.app.service import start_telemetry as made; from hummingbird.core.masking import "
            "Secrets; made({}, '1', Secrets())",
            ["prometheus_client"],
        ),
    ],
)
def test_what_nobody_wants_is_not_loaded(statement: str, loaded: list[str]) -> None:
    heavy = ["opentelemetry.sdk", "prometheus_client", "sentry_sdk"]
    code = f"import json, sys; {statement}; print(json.dumps([name for name in {heavy} if name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == loaded
