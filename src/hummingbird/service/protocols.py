"""Interfaces between the worker, the stages and the agent, and the data that passes through them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hummingbird.config.configuration import Configuration, ResolvedWorkflow
from hummingbird.core.background import PipelineStatus, RunBackground
from hummingbird.core.errors import HummingbirdError
from hummingbird.core.events import RunOutcome
from hummingbird.core.findings import ReviewFinding
from hummingbird.core.orders import EventEnvelope, WorkOrder
from hummingbird.core.protocols.tools import Tool
from hummingbird.core.verdicts import FailureVerdict, ObservedFailure
from hummingbird.evidence.citations.checker import CitationCounts
from hummingbird.evidence.citations.coverage import Coverage
from hummingbird.evidence.verdict_rules import FailureFacts


@dataclass(frozen=True, slots=True)
class RetryLater:
    """Look at `successor` again in that many seconds; this takes no slot and does not count as a try."""

    seconds: float
    successor: WorkOrder
    reason: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """Nothing runs for an event or an order; `reason`, without a full stop, was logged as well."""

    reason: str


@dataclass(frozen=True, slots=True)
class FailedOrder:
    """The run of an order ended with an error, which was reported to whoever waits for it."""

    error: HummingbirdError


class EventProcessor(Protocol):
    """The first stage, which the worker calls for each event; it may be called again for the same event at any time."""

    async def __call__(self, event: EventEnvelope, /) -> tuple[WorkOrder, ...] | Skipped:
        """Return the orders that the event leads to; the caller queues them before it deletes the event.

        Raises HummingbirdError if another try may succeed. The event is then received again, and is a dead letter after
        QUEUE_RECEIVES tries.
        """
        ...


class OrderProcessor(Protocol):
    """The second stage, which the worker calls for each order; it may be called again for the same order at any time.

    Raises HummingbirdError if another try may succeed, as the first stage does.
    """

    async def __call__(self, order: WorkOrder, /, *, last_try: bool) -> RetryLater | Skipped | FailedOrder | None:
        """Run the order, or return when to look at it again.

        With `last_try` there will be no other try, so a failure has to be posted in the thread. Cancelling it parks the
        run: the same order continues where it was.
        """
        ...


KNOWN_FAILURE = "known-failure"  # stands in place of a model's name in a result that only links to an earlier analysis


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleInput:
    """What rules may weigh before a model is asked.

    `verdict` is the one that the order's journal holds already; then nothing is gathered or judged again. `failures`
    are those that the logs show, `pipelines` those whose jobs were listed.
    """

    facts: FailureFacts | None = None
    verdict: FailureVerdict | None = None
    failures: tuple[ObservedFailure, ...] = ()
    pipelines: tuple[PipelineStatus, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleOpinion:
    """What rules say about an order before the agent investigates it.

    `verdict` is None if no failure is known. `instead` is the text to post in place of an analysis, because the same
    failure was analysed before; empty otherwise. `background` is what the journal keeps about the subject. `facts` are
    what was judged, to which the run adds; None if they are not known here or the order is not about a failure.
    """

    verdict: FailureVerdict | None = None
    facts: FailureFacts | None = None
    instead: str = ""
    failures: tuple[ObservedFailure, ...] = ()
    background: RunBackground | None = None


NO_OPINION = RuleOpinion()
NO_RULE_INPUT = RuleInput()


@dataclass(frozen=True, slots=True, kw_only=True)
class InvestigationResult:
    """The outcome of investigating one order.

    `failures` are those that were known before the run, and then those that the run saw.
    `trouble` are sentences for the operator and the note about what could not be stored. `transcript`, `findings` and
    `verdict` are of this run and read from its journal, so they include what was reported before a crash. The texts of
    the outcome and of the findings are ready to be posted: they were checked against what was fetched, with the counts
    in `tallies` and `coverage`. What the model wrote itself is in the journal. `no_model_because` says which
    models failed and why if rules alone wrote the text in their place.
    """

    outcome: RunOutcome
    model: str
    seconds: float
    transcript: str
    failures: Sequence[ObservedFailure] = ()
    findings: Sequence[ReviewFinding] = ()
    trouble: Sequence[str] = ()
    verdict: FailureVerdict | None = None
    tallies: CitationCounts = field(default_factory=CitationCounts)
    coverage: Coverage = field(default_factory=Coverage)
    no_model_because: str = ""

    @property
    def is_known_failure(self) -> bool:
        """Return whether the result only links to an earlier analysis."""
        return self.model == KNOWN_FAILURE


@dataclass(frozen=True, slots=True)
class InvestigationRequest:
    """An order to run, and what the run gets.

    `text` is its first message, `tools` are those of the service beside the workflow's own. `bot_ids` are the authors
    of our own notes. `opinion` is what rules say about the failure.
    """

    order: WorkOrder
    configuration: Configuration
    applied: ResolvedWorkflow
    text: str
    tools: Sequence[Tool] = ()
    bot_ids: frozenset[int] = frozenset()
    opinion: RuleOpinion = NO_OPINION


class Investigator(Protocol):
    """What the service asks of the agent; the same order may be asked for any number of times."""

    async def has_session(self, order: WorkOrder) -> bool:
        """Return whether the order's session exists and was started for the same merge request.

        Maintainers of a project can edit markers, and must not get at another project's session.
        """
        ...

    async def gather_facts(
        self,
        order: WorkOrder,
        configuration: Configuration,
        applied: ResolvedWorkflow,
        target_branch: str,
        *,
        bot_ids: frozenset[int] = frozenset(),
    ) -> RuleInput:
        """Return what failed, as the workflow's own reading tools show it; nothing for an order about something else.

        Raises nothing of its own: the facts say what could not be read.
        """
        ...

    async def investigate(self, request: InvestigationRequest) -> InvestigationResult:
        """Return the outcome of the order's run.

        A run that has ended is not repeated, one whose process died is continued, and a new one starts with the
        text and writes the verdict to its journal. Raises PlatformError, and OperatorError for wrong settings,
        SandboxUnavailable among them. Cancelling it leaves a journal that can be continued elsewhere.
        """
        ...
