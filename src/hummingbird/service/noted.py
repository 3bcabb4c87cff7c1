"""What people ask for in notes (R3, R5, R6): commands, and replies in our threads. Whoever meant us gets an answer."""

import logging
import re
from dataclasses import dataclass
from functools import reduce

import msgspec

from hummingbird.config.configuration import Applied, Configuration
from hummingbird.domain.dismissals import dismisses
from hummingbird.domain.errors import ForgeDown
from hummingbird.domain.incoming import NoteWritten
from hummingbird.domain.limits import NOTE_APPEARS_S
from hummingbird.domain.notes import Marker, Part, digest_of
from hummingbird.domain.orders import Arrived, Cause, Overrides, WorkOrder, order_of, session_of
from hummingbird.ports.forge import DEVELOPER, Forge, Thread
from hummingbird.service import wording
from hummingbird.service.decisions import Command, Continue, Say
from hummingbird.service.gates import session_overrides
from hummingbird.service.overrides import overrides_fault
from hummingbird.service.publication import Publication

_log = logging.getLogger("hummingbird.service")
_SESSION = re.compile(r"[0-9A-Za-z_-]{1,64}")  # it names folders, objects and groups of a queue


@dataclass(frozen=True, slots=True)
class Asked:
    event: Arrived
    note: NoteWritten
    configuration: Configuration
    forge: Forge
    publication: Publication
    now: float

    async def orders(self, decision: Command | Say | Continue) -> tuple[WorkOrder, ...]:
        thread = await self.forge.thread(self.note.change.iid, self.note.discussion_id)
        if isinstance(decision, Continue) and not _ours(thread):
            self._skip("the thread is not ours")
            return ()
        if thread is None or not self._vouched(thread):
            return self._unseen()
        if isinstance(decision, Continue):
            return await self._continued(decision, thread)
        if not await self._welcome():
            return ()
        return await (self._say(decision.text) if isinstance(decision, Say) else self._commanded(decision))

    async def _commanded(self, decision: Command) -> tuple[WorkOrder, ...]:
        project, iid = self.note.project.path, self.note.change.iid
        applied = self.configuration.applied(decision.workflow, project)
        assert applied is not None, "routing names what is for the project"
        if fault := self._fault(decision.overrides, applied):
            return await self._say(fault)
        head = (await self.forge.merge_request(iid)).change.head
        session_id = session_of(project, iid, decision.workflow, f"note {self.note.note_id}")
        order = self._order(Cause.COMMAND, decision.workflow, session_id, head, decision.message)
        return (msgspec.structs.replace(order, overrides=decision.overrides),)

    def _vouched(self, thread: Thread) -> bool:
        """I7, I9: whoever knows a hook's secret, which projects may share, or may write to a queue of events, can say
        anything in anybody's name. GitLab knows who wrote what."""
        said = digest_of(self.note.text)
        found = next((note for note in thread.notes if note.id == self.note.note_id), None)
        return found is not None and found.author_id == self.note.author.id and found.words == said

    def _unseen(self) -> tuple[WorkOrder, ...]:
        """Raises ForgeDown while it may only be slow to appear."""
        if 0 <= self.now - self.event.at < NOTE_APPEARS_S and not self.event.forced:
            raise ForgeDown(f"Note {self.note.note_id} is not to be seen in GitLab yet. It is looked for again later.")
        self._skip("GitLab knows of no such note by this author: it is gone, or was edited, or the event is forged")
        return ()

    async def _continued(self, decision: Continue, thread: Thread) -> tuple[WorkOrder, ...]:
        marker = thread.marker
        assert marker is not None, "or the thread is not ours"
        if not await self._welcome():
            return ()
        if marker.part is Part.FINDING and dismisses(decision.message):
            self._skip("the finding is dismissed")
            await self.publication.dismissed(self.note)
            return ()
        applied = self._workflow(marker)
        if applied is None:
            return await self._say(wording.workflow_gone(marker.wf, self.configuration.settings))
        if fault := decision.fault or self._fault(decision.overrides, applied):
            return await self._say(fault)
        order = self._order(Cause.REPLY, applied.workflow, marker.id, marker.sha, decision.message)
        return (msgspec.structs.replace(order, overrides=decision.overrides.over(self._still(thread, applied))),)

    def _workflow(self, marker: Marker) -> Applied | None:
        """The one that the thread is of; old markers do not say, and then it is the project's first."""
        found = self.configuration.on(self.note.project.path)
        return next((one for one in found if one.workflow == marker.wf or not marker.wf), None)

    def _order(self, cause: Cause, workflow: str, session_id: str, sha: str, message: str) -> WorkOrder:
        return WorkOrder(
            id=order_of(session_id, f"note {self.note.note_id}"),
            session_id=session_id,
            cause=cause,
            workflow=workflow,
            project=self.note.project.path,
            mr_iid=self.note.change.iid,
            sha=sha,
            actor_id=self.note.author.id,
            actor=self.note.author.username,
            discussion_id=self.note.discussion_id,
            note_id=self.note.note_id,
            internal=self.note.internal,
            message=message,
            made_at=self.now,
        )

    async def _welcome(self) -> bool:
        """R5, I7: others are told so, in their thread."""
        if await self.forge.access(self.note.author.id) >= DEVELOPER:
            return True
        self._skip(f"{self.note.author.username or 'its author'} is not a developer of the project")
        await self.publication.refuse(self.note)
        return False

    async def _say(self, text: str) -> tuple[WorkOrder, ...]:
        await self.publication.answer(self.note, text)
        return ()

    def _skip(self, reason: str) -> None:
        _log.info("Event %s: nothing is begun, for %s.", self.event.identity, reason)

    def _fault(self, overrides: Overrides, applied: Applied) -> str:
        return overrides_fault(overrides, applied, self.configuration.settings.models_allowed)

    def _still(self, thread: Thread, applied: Applied) -> Overrides:
        """What was wanted earlier in the session (R6), as far as it is still allowed."""
        earlier = session_overrides(thread)
        model, limit = Overrides(model=earlier.model), Overrides(max_iterations=earlier.max_iterations)
        allowed = [one for one in (model, limit) if not self._fault(one, applied)]
        return reduce(Overrides.over, allowed, Overrides())


def _ours(thread: Thread | None) -> bool:
    """Whoever maintains a project can edit our notes too: then a marker may say anything."""
    marker = None if thread is None else thread.marker
    return marker is not None and bool(_SESSION.fullmatch(marker.id))
