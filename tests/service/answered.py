"""An investigator whose answer is given: for tests of what is done with one."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hummingbird.config.configuration import Applied, Configuration
from hummingbird.domain.findings import Finding
from hummingbird.domain.orders import WorkOrder
from hummingbird.ports.tool import Tool
from hummingbird.service.investigating import NO_OPINION, NOT_LOOKED, Conducted, Looked, Opinion
from tests.service.publication.stage import conducted


@dataclass
class Answered:
    """Fulfils service.investigating.Investigator. `findings` can be told only with a tool for them."""

    text: str = "The struct lacks a field."
    findings: Sequence[Finding] = ()
    ran: list[WorkOrder] = field(default_factory=list)

    async def known(self, order: WorkOrder) -> bool:
        return True

    async def look(
        self,
        order: WorkOrder,
        configuration: Configuration,
        applied: Applied,
        target_branch: str,
        *,
        bot_ids: frozenset[int] = frozenset(),
    ) -> Looked:
        return NOT_LOOKED

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
        self.ran.append(order)
        return replace(conducted(self.text), findings=self.findings if tools else ())
