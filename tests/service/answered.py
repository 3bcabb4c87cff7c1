"""An investigator whose answer is given: for tests of what is done with one."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hummingbird.config.configuration import Configuration, ResolvedWorkflow
from hummingbird.core.findings import ReviewFinding
from hummingbird.core.orders import WorkOrder
from hummingbird.core.protocols.tools import Tool
from hummingbird.service.protocols import NO_OPINION, NO_RULE_INPUT, InvestigationResult, RuleInput, RuleOpinion
from tests.service.publication.stage import conducted


@dataclass
class Answered:
    """Fulfils service.investigating.Investigator. `findings` can be told only with a tool for them."""

    text: str = "The struct lacks a field."
    findings: Sequence[ReviewFinding] = ()
    ran: list[WorkOrder] = field(default_factory=list)

    async def has_session(self, order: WorkOrder) -> bool:
        return True

    async def gather_facts(
        self,
        order: WorkOrder,
        configuration: Configuration,
        applied: ResolvedWorkflow,
        target_branch: str,
        *,
        bot_ids: frozenset[int] = frozenset(),
    ) -> RuleInput:
        return NO_RULE_INPUT

    async def investigate(
        self,
        order: WorkOrder,
        configuration: Configuration,
        applied: ResolvedWorkflow,
        text: str,
        *,
        tools: Sequence[Tool] = (),
        bot_ids: frozenset[int] = frozenset(),
        opinion: RuleOpinion = NO_OPINION,
    ) -> InvestigationResult:
        self.ran.append(order)
        return replace(conducted(self.text), findings=self.findings if tools else ())
