"""Check again, right before a run starts, that the people behind it may still start it.

Between an event and its run lie a queue and, for pipelines, up to hours of waiting. Meanwhile a member can lose the
role, a person can delete the command, and the operator can narrow what may be chosen. So the run is decided on what
GitLab and the configuration say now. What the event said is kept for one thing alone: the words of a command or reply,
which the first stage compared with the note in GitLab. A later edit of that note does not change them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hummingbird.config.configuration import Applied
from hummingbird.config.settings import Settings
from hummingbird.domain.orders import WorkOrder
from hummingbird.ports.forge import DEVELOPER, Forge, MergeRequest, Thread
from hummingbird.service import wording
from hummingbird.service.answers import faulty
from hummingbird.service.gates import begun
from hummingbird.service.overrides import overrides_fault


@dataclass(frozen=True, slots=True)
class StartRefusal:
    """Why a run must not start. `answer` is for the person who asked; empty if nobody is told."""

    reason: str
    answer: str = ""


@dataclass(frozen=True, slots=True)
class StartChecks:
    """Look at one order. A run that has begun is finished, and what the operator forces by hand is not questioned."""

    order: WorkOrder
    request: MergeRequest
    threads: Sequence[Thread]
    applied: Applied
    settings: Settings
    forge: Forge

    async def find_refusal(self) -> StartRefusal | None:
        """Return why the run must not start, or None. Raises ForgeError and CredentialRefused."""
        if self.order.forced or begun(self.order, self.threads):
            return None
        if not self.order.cause.automatic and not self._note_is_there():
            return StartRefusal("the note that asked for it is gone")
        if await self.forge.access(self.order.actor_id) < DEVELOPER:
            reason = f"{self.order.actor or 'whoever caused it'} is not a developer of the project any more"
            return StartRefusal(reason, "" if self.order.cause.automatic else wording.refusal())
        if self.order.cause.automatic:
            return await self._check_author()
        fault = overrides_fault(self.order.overrides, self.applied, self.settings.models_allowed)
        if fault:
            return StartRefusal("what was chosen is not allowed any more", faulty(fault, self.settings.trigger_prefix))
        return None

    def _note_is_there(self) -> bool:
        """Return whether the same person's note still stands; GitLab gives the notes of deleted users to its ghost."""
        notes = (note for thread in self.threads for note in thread.notes)
        return any(note.id == self.order.note_id and note.author_id == self.order.actor_id for note in notes)

    async def _check_author(self) -> StartRefusal | None:
        change = self.request.change
        if await self.forge.access(change.author_id) >= DEVELOPER:
            return None
        return StartRefusal(f"the author of !{change.iid} is not a developer of the project any more")
