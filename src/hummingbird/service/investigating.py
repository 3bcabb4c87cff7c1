"""What the service asks of the agent: look at what failed, and conduct one order, however often it is asked to.
Assembly says how."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hummingbird.config.configuration import Applied, Configuration
from hummingbird.domain.failures import FailureSeen
from hummingbird.domain.findings import Finding
from hummingbird.domain.orders import WorkOrder
from hummingbird.domain.runs import Outcome
from hummingbird.domain.verdicts import Verdict
from hummingbird.evidence.citations.checking import Tallies
from hummingbird.evidence.citations.coverage import Coverage
from hummingbird.evidence.verdicts.facts import Facts
from hummingbird.ports.tool import Tool

KNOWN_FAILURE = "known-failure"  # the name, where models have theirs, of who says that a failure was analysed before


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What rules may weigh before a model speaks (N8). `verdict`: what the order's journal says already; then nobody
    looks or judges again. `failures`: what the logs say that failed."""

    facts: Facts | None = None
    verdict: Verdict | None = None
    failures: tuple[FailureSeen, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """What rules say of an order before it is conducted. `verdict` None: nothing that failed is known. `instead`: what
    is to be said in place of an analysis, for there is one of the same failure; empty otherwise."""

    verdict: Verdict | None = None
    instead: str = ""
    failures: tuple[FailureSeen, ...] = ()


NO_OPINION = Opinion()
NOT_LOOKED = Looked()


@dataclass(frozen=True, slots=True, kw_only=True)
class Conducted:
    """`trouble` are sentences for the operator and the note: what could not be kept. `transcript` is this run's, and
    so are `findings` (W2) and `verdict` (N8), read off its journal: what was reported before a crash is among them. The
    outcome's text and those of the findings are as they may be posted: checked against what was fetched (N6), of which
    `tallies` and `coverage` tell. What the model wrote is in the journal. `stopgap`: no model could be asked, so rules
    alone wrote it."""

    outcome: Outcome
    model: str
    seconds: float
    transcript: str
    failures: Sequence[FailureSeen] = ()
    findings: Sequence[Finding] = ()
    trouble: Sequence[str] = ()
    verdict: Verdict | None = None
    tallies: Tallies = field(default_factory=Tallies)
    coverage: Coverage = field(default_factory=Coverage)
    stopgap: bool = False

    @property
    def repeats(self) -> bool:
        """It says that there is an analysis, and is none."""
        return self.model == KNOWN_FAILURE


class Investigator(Protocol):
    async def known(self, order: WorkOrder) -> bool:
        """Whether the order's session is there to go on with (S3), and was begun for the same merge request: markers
        can be edited by whoever maintains a project, and another project's session is none of theirs."""
        ...

    async def look(
        self,
        order: WorkOrder,
        configuration: Configuration,
        applied: Applied,
        target_branch: str,
        *,
        bot_ids: frozenset[int] = frozenset(),
    ) -> Looked:
        """What failed, with the workflow's own tools that read; nothing for an order that asks for something else.
        Raises nothing of its own: what could not be seen is in the facts."""
        ...

    async def conduct(
        self,
        order: WorkOrder,
        configuration: Configuration,
        applied: Applied,
        text: str,
        *,
        tools: Sequence[Tool] = (),
        bot_ids: frozenset[int] = frozenset(),
        opinion: Opinion = NO_OPINION,
    ) -> Conducted:
        """The outcome of the order's run: the one it has if it has ended, the rest of it if its process died, else a
        new one that begins with `text`, and with the verdict in its journal. Raises OperatorError for settings,
        SandboxUnavailable among them, and PlatformError. Cancelling it leaves a journal that goes on elsewhere."""
        ...
