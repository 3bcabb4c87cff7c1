"""An investigator whose answer is given: for tests of what is done with one."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hummingbird.config.configuration import Configuration, ResolvedWorkflow
from hummingbird.core.findings import ReviewFinding
from hummingbird.core.orders import WorkOrder
from hummingbird.service.protocols import NO_RULE_INPUT, InvestigationRequest, InvestigationResult, RuleInput
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

    async def investigate(self, request: InvestigationRequest) -> InvestigationResult:
        self.ran.append(request.order)
        return replace(conducted(self.text), findings=self.findings if request.tools else ())
