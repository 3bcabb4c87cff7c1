"""What a run that posts nothing asks of GitLab, beside its model's tools: it only reads, and only where there happens
to be a token for the forge. What is not known without one is left open, and no reason to stop (G6).
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from hummingbird.agent.tools.findings import ReportFinding
from hummingbird.assembly.forges import ForgesOf
from hummingbird.config.configuration import Applied, Configuration
from hummingbird.config.tokens import ORCHESTRATOR_VARIABLE
from hummingbird.domain.diffs import Diff
from hummingbird.domain.errors import CredentialRefused, ForgeError, MissingSetting, UsageFault
from hummingbird.ports.forge import Forge, MergeRequest
from hummingbird.ports.tool import Tool
from hummingbird.service.findings import earlier_of

_log = logging.getLogger("hummingbird")


@dataclass(frozen=True, slots=True)
class Looking:
    """`forge` None: there is no token for it."""

    forge: Forge | None

    @classmethod
    def at(cls, project: str, forges: ForgesOf, configuration: Configuration) -> Self:
        try:
            return cls(forges(configuration).of(project))
        except MissingSetting:
            return cls(None)

    async def bot_ids(self) -> frozenset[int]:
        """Nobody, if nobody knows."""
        if self.forge is None:
            return frozenset()
        try:
            return await self.forge.bot_ids()
        except (ForgeError, CredentialRefused) as error:
            _log.warning("Which notes are our own is not known. %s", error)
            return frozenset()

    async def request(self, iid: int) -> MergeRequest | None:
        if self.forge is None:
            return None
        try:
            return await self.forge.merge_request(iid)
        except (ForgeError, CredentialRefused) as error:
            _log.warning("The head of !%d is not known, so the event's commit is taken. %s", iid, error)
            return None

    async def requests_at(self, sha: str) -> Sequence[MergeRequest]:
        """Raises UsageFault if nobody can be asked, ForgeError, CredentialRefused."""
        if self.forge is None:
            raise UsageFault(
                "The event names no merge request, and only GitLab knows which one has this commit as its head: set "
                f"{ORCHESTRATOR_VARIABLE}, or name it with --workflow, --project and --event '{{\"iid\": 7}}'."
            )
        return await self.forge.requests_at(sha)

    async def tools(self, applied: Applied, iid: int) -> Sequence[Tool]:
        """W2: findings are only collected. Without the diff, they stand in the answer."""
        if self.forge is None or not iid or not applied.declared.inline_findings:
            return ()
        try:
            diff = Diff(await self.forge.diffs(iid))
            head = (await self.forge.merge_request(iid)).change.head
            return (ReportFinding(diff, earlier_of(await self.forge.threads(iid)), head=head),)
        except (ForgeError, CredentialRefused) as error:
            _log.warning("Findings are not put on lines of the diff. %s", error)
            return ()
