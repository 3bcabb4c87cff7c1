"""What the service asks of the agent: conduct one order, however often it is asked to. Assembly says how."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hummingbird.config.configuration import Applied, Configuration
from hummingbird.domain.failures import FailureSeen
from hummingbird.domain.findings import Finding
from hummingbird.domain.orders import WorkOrder
from hummingbird.domain.runs import Outcome
from hummingbird.ports.tool import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Conducted:
    """`trouble` are sentences for the operator and the note: what could not be kept. `transcript` is this run's, and
    so are `findings` (W2), read off its journal: what was reported before a crash is among them."""

    outcome: Outcome
    model: str
    seconds: float
    transcript: str
    failures: Sequence[FailureSeen] = ()
    findings: Sequence[Finding] = ()
    trouble: Sequence[str] = ()


class Investigator(Protocol):
    async def known(self, order: WorkOrder) -> bool:
        """Whether the order's session is there to go on with (S3), and was begun for the same merge request: markers
        can be edited by whoever maintains a project, and another project's session is none of theirs."""
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
    ) -> Conducted:
        """The outcome of the order's run: the one it has if it has ended, the rest of it if its process died, else a
        new one that begins with `text`. Raises OperatorError for settings, SandboxUnavailable among them, and
        PlatformError. Cancelling it leaves a journal that goes on elsewhere."""
        ...
