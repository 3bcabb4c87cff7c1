"""Orders, outcomes and a configuration for what is said about them."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from hummingbird.config.configuration import Configuration, ResolvedWorkflow
from hummingbird.config.settings import ChatSettings, ProjectSettings, Settings, WorkflowSettings
from hummingbird.core.events import RunOutcome
from hummingbird.core.journal import EndReason
from hummingbird.core.orders import OrderCause, WorkOrder
from hummingbird.core.usage import Bill, TokenUsage
from hummingbird.core.verdicts import ObservedFailure
from hummingbird.service.protocols import InvestigationResult

DEVELOPER = 21  # of the case
WORKFLOW = "analyze-failures"
PROJECT = "labri-progress/cidiff"
SHA = "f6887281fd53075915bb6320e4a3f352b2c22dcb"
IID = 11
BILL = Bill(3, 3, TokenUsage(fresh=1000, cache_read=3000, output=250), Decimal("0.0421"), 0)


def configured(settings: Mapping[str, Any] | None = None, **workflow: Any) -> Configuration:
    written = {"prompt": "look.md", "projects": {"*": ProjectSettings()}, **workflow}
    return Configuration(
        name="test",
        settings=Settings(**{"gitlab_url": "https://gitlab.example", **(settings or {})}),
        workflows=MappingProxyType({WORKFLOW: WorkflowSettings(**written)}),
        chat=ChatSettings(),
        prompts=MappingProxyType({WORKFLOW: "Look."}),
    )


def applied_of(configuration: Configuration) -> ResolvedWorkflow:
    found = configuration.resolve(WORKFLOW, PROJECT)
    assert found is not None
    return found


def ordered(cause: OrderCause = OrderCause.PIPELINE, **changes: Any) -> WorkOrder:
    values = {
        "id": "order-1",
        "session_id": "session-1",
        "workflow": WORKFLOW,
        "project": PROJECT,
        "mr_iid": IID,
        "sha": SHA,
        "actor_id": DEVELOPER,
        **changes,
    }
    return WorkOrder(cause=cause, **values)


def outcome(text: str = "The parser throws.", **changes: Any) -> RunOutcome:
    values: dict[str, Any] = {
        "session_id": "session-1",
        "run_id": "run-1",
        "reason": EndReason.COMPLETED,
        "text": text,
        "answered": True,
        "sentence": "",
        "messages": (),
        "iterations": 4,
        "bill": BILL,
        **changes,
    }
    return RunOutcome(**values)


def conducted(
    text: str = "The parser throws.",
    *,
    transcript: str = "# Session session-1",
    failures: Sequence[ObservedFailure] = (),
    trouble: Sequence[str] = (),
    **changes: Any,
) -> InvestigationResult:
    return InvestigationResult(
        outcome=outcome(text, **changes),
        model="vendor/model-1",
        seconds=125.2,
        transcript=transcript,
        failures=failures,
        trouble=trouble,
    )
